# SPDX-License-Identifier: Apache-2.0
"""State restoration for processes on Linux: a client of restorationd.

    import restorationd

    with restorationd.Session("org.example.Notes", process="editor") as session:
        editor = session.register("Editor")
        text = editor.decode().get("text", "")
        session.complete()
        editor.encode({"text": text + "!"})

`Session` blocks, `AsyncSession` is the same for asyncio. Needs Python 3.9 and nothing else.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import collections
import collections.abc
import concurrent.futures
import contextlib
import contextvars
import copy
import dataclasses
import datetime
import decimal
import difflib
import enum
import functools
import inspect
import itertools
import json
import logging
import math
import os
import pathlib
import re
import select
import shlex
import socket as sockets
import stat
import sys
import threading
import time
import traceback
import types
import uuid
import weakref
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING, Annotated, Any, Awaitable, Callable, ClassVar, ContextManager, Coroutine, Deque, Dict, Final,
    Generator, Generic, Iterable, Iterator, List, Literal, Mapping, NoReturn, Optional, Protocol, Sequence, Set, Tuple,
    Type, TypeVar, TypedDict, Union, cast, get_args, get_origin, get_type_hints, overload,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "AWAITED", "ArchiveLostError", "AsyncRestorableObject", "AsyncSession", "Batch", "BrokerError", "CallTimedOut",
    "CallTimedOutError", "ConnectionLost", "ConnectionLostError", "Delegate", "Discarded", "DiscardedError",
    "DuplicateObject", "DuplicateObjectError", "FORGET", "Instead", "InvalidState", "InvalidStateError", "NoBroker",
    "NoBrokerError", "PASS", "Reference", "RestorableObject", "RestorationError", "Saved", "Session", "SessionEnded",
    "SessionEndedError", "SessionForked", "SessionForkedError", "Snapshot", "Wanted", "default_socket", "load",
    "restorable", "store",
]
__version__ = "0.1.0"

Path = Sequence[str]
#: A value that is no mapping or dataclass, such as a text or a list, is saved as `{"value": …}`.
State = Union[Mapping[str, Any], "_Dataclass", Sequence[Any], float, datetime.datetime, None]
Elements = Sequence[Mapping[str, Any]]
Kind = Literal["object", "viewController", "view"]
Keep = Literal["forever", "normal"]
#: Why a session ends. `restart` and `logout` keep the saved states, `closed` and `userQuit` remove them.
Leaving = Literal["restart", "logout", "closed", "userQuit"]

_T = TypeVar("_T")
_D = TypeVar("_D")
_log = logging.getLogger("restoration")
# The session for which a call of the broker is being answered here, and the task that does it.
_answering: contextvars.ContextVar[Any] = contextvars.ContextVar("answering", default=None)


# Errors


class RestorationError(Exception):
    """The base of all errors that this module raises itself."""


class BrokerError(RestorationError):
    """The broker refused a call. Decide by `kind` (or `code`); `message` and `hint` are for people."""

    def __init__(self, error: Any, params: Optional[Mapping[str, Any]] = None) -> None:
        """`params` are those of a call that the program did not write itself: the error then has its words."""
        error = error if isinstance(error, dict) else {"message": f"an error of an unknown form: {error!r}"}
        data = error.get("data")
        self.data: Mapping[str, Any] = data if isinstance(data, dict) else {}
        code = error.get("code")
        self.code: int = code if isinstance(code, int) else 0
        self.message: str = str(error.get("message", ""))
        self.kind: str = str(self.data.get("kind", ""))
        self.hint: str = str(self.data.get("hint", ""))
        path = self.data.get("path")
        self.path: Optional[Tuple[str, ...]] = tuple(path) if isinstance(path, list) else None
        if params is not None:
            self.message, self.hint = _spoken(self.message), _spoken(self.hint)
            refused = str(self.data.get("pointer", ""))[1:]
            if refused in params:  # as the program has it, instead of as JSON
                self.message = f"{self.message.partition(': ')[0]}: {params[refused]!r:.100}"
            for each in self.path or () if self.kind == "invalidIdentifier" else ():
                if "/" in each.strip("/"):
                    self.hint += f" A path is a list: {each.split('/')}."
        text = f"{self.message} ({self.kind})" if self.kind else self.message
        super().__init__(f"{text}. {self.hint}" if self.hint else text)


#: Members of calls that have other names as arguments here.
_ARGUMENTS = {
    "restorationIdentifier": "identifier", "restorationParent": "parent", "objectClass": "object_class",
    "restorationClass": "restoration_class", "takeOver": "take_over", "progressToken": "progress_token",
    "bundleVersion": "bundle_version", "userInterfaceIdiom": "user_interface_idiom",
    "messageBytesMax": "message_bytes_max", "protocolVersion": "protocol_version",
    "awaitParentMilliseconds": "wait=", "deadlineMilliseconds": "deadline=",
}


def _spoken(text: str) -> str:
    return re.sub(r"\b(?:" + "|".join(_ARGUMENTS) + r")\b", lambda found: _ARGUMENTS[found[0]], text)


class ConnectionLostError(RestorationError, ConnectionError):
    """The broker closed the connection or ended before it answered. The call may have taken effect."""

    _is_broker = True


class NoBrokerError(RestorationError, ConnectionError):
    """No broker listens on the socket."""

    def __init__(self, socket: str, why: str, is_absent: bool = False) -> None:
        super().__init__(why)
        self.socket = socket
        #: Whether there is nothing at all, as before a broker is started; otherwise something is wrong.
        self.is_absent = is_absent


class CallTimedOutError(RestorationError, TimeoutError):
    """No answer came in time. The call was cancelled; it may have taken effect."""


class SessionEndedError(RestorationError):
    """The session was closed, or said goodbye."""


class ArchiveLostError(SessionEndedError):
    """Another host has the application now, and the session has ended (R36): its user continues there.

    Nothing is called again by itself, because that would take the application away from there. If the user is back,
    open another session, with `take_over=True` if the other host does not leave the application.
    """

    def __init__(self, application: str, facts: Mapping[str, Any]) -> None:
        #: The host that has it, and since when; None if that is unknown.
        self.host: Optional[str] = facts.get("host")
        self.since: Optional[str] = facts.get("since")
        super().__init__(
            f"{self.host or 'another host'} has {application} now, and the session has ended; "
            "continue there, or open another session when the user is back")


class DiscardedError(RestorationError):
    """The user has quit the application while this session lived: nothing of it is stored from then on (R30)."""


class DuplicateObjectError(RestorationError):
    """Another object of this program is registered under the path. It stays; this one is not registered."""


class SessionForkedError(SessionEndedError):
    """The session belongs to the process that forked this one. Open another session here."""


class InvalidStateError(RestorationError, ValueError, TypeError):
    """The value cannot be written as JSON or does not fit its type, or what is saved is not of the type asked for."""

    def __init__(self, text: str, path: Optional[Path] = None, field: str = "") -> None:
        super().__init__(text)
        self.path: Optional[Tuple[str, ...]] = None if path is None else tuple(path)
        #: The way to the value from the state, such as `panes[2].width`.
        self.field = field


#: The same by their former names.
CallTimedOut = CallTimedOutError
ConnectionLost = ConnectionLostError
Discarded = DiscardedError
DuplicateObject = DuplicateObjectError
InvalidState = InvalidStateError
NoBroker = NoBrokerError
SessionEnded = SessionEndedError
SessionForked = SessionForkedError


# Values


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[Dict[str, Any]]


class Instead(enum.Enum):
    """What a factory may return that neither makes its object nor leaves it unrestored."""

    #: A process, this one or another, is about to register the object, which is awaited.
    AWAITED = "awaited"
    #: Another process that makes objects of the class is asked.
    PASS = "pass"
    #: The path, and all below it that no session has, are forgotten. None is a no for this restoration only.
    FORGET = "forget"


AWAITED, PASS, FORGET = Instead.AWAITED, Instead.PASS, Instead.FORGET


@dataclass(frozen=True, eq=False)
class Saved(Mapping[str, Any]):
    """The result of `decode`: a mapping, which is empty without a state; true if there is a state."""

    status: str
    state: Optional[Dict[str, Any]] = None
    coder: Optional[Dict[str, Any]] = None
    elements: List[Dict[str, Any]] = field(default_factory=list)
    path: Optional[Tuple[str, ...]] = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.state is not None

    @overload
    def decode(self, kind: Type[_T]) -> Optional[_T]: ...
    @overload
    def decode(self, kind: Type[_T], default: _D) -> Union[_T, _D]: ...
    @overload  # of a type that is no class, such as a Union
    def decode(self, kind: Any, default: Any = None) -> Any: ...
    def decode(self, kind: Any, default: Any = None) -> Any:
        """The state as a value of a type, such as a dataclass; `default` if there is no state.

        Raises TypeError for a value in place of a type, also where nothing is saved yet.
        """
        is_instance = dataclasses.is_dataclass(kind) and not isinstance(kind, type)
        if is_instance or isinstance(kind, (str, bytes, int, float, enum.Enum, Mapping, Sequence, _Object)):
            raise TypeError(f"decode() takes a type, such as int or a dataclass, not {kind!r:.60}; "
                            "an object decodes its own state: session.register(NAME).decode(TYPE)")
        if self.state is None:
            return default
        with _telling(self.path):
            return _typed_state(kind, self.state)

    def _read(self, kind: Any, default: Any) -> Any:
        return self if kind is None else self.decode(kind, default)

    def __getitem__(self, key: str) -> Any:
        return (self.state or {})[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.state or {})

    def __len__(self) -> int:
        return len(self.state or {})


@dataclass(frozen=True)
class Snapshot:
    """An `encode` callback may return this instead of a mapping: it adds selected or topmost elements of a view."""

    state: State
    elements: Elements = ()


@dataclass(frozen=True)
class Wanted:
    """The object that a restoration class or the delegate must make."""

    path: Tuple[str, ...]
    kind: str
    restoration_class: Optional[str]
    object_class: Union[str, List[str], None]
    state: Optional[Dict[str, Any]]
    coder: Optional[Dict[str, Any]]
    #: That is asked.
    session: Any = field(default=None, repr=False, compare=False)

    @property
    def identifier(self) -> str:
        """The last component of the path, without the position."""
        return self.path[-1].partition("#")[0]

    @property
    def position(self) -> Optional[int]:
        position = self.path[-1].partition("#")[2]
        return int(position) if position else None

    def register(self, **options: "Unpack[_Registration]") -> Any:
        """Registers the object at its former place: `options` are those of `register` of the session, as callbacks.

        In an `AsyncSession` the result is awaited.
        """
        place = {
            "kind": self.kind, "object_class": self.object_class, "restoration_class": self.restoration_class,
            "position": self.position,
        }
        return self.session.register(self.identifier, self.path[:-1] or None, **{**place, **options})


class _Registration(TypedDict, total=False):
    """What `register` takes besides identifier and parent."""

    kind: Kind
    object_class: Union[str, Sequence[str], None]
    restoration_class: Optional[str]
    storyboard: Optional[Mapping[str, str]]
    position: Optional[int]
    wait: Optional[float]
    take_over: bool
    confidential: Optional[bool]
    keep: Optional[Keep]
    fresh: bool
    target: Any
    encode: Optional[Callable[[], Any]]
    decode: Optional[Callable[[Saved], Any]]
    finished: Optional[Callable[[], Any]]


class Reference(Dict[str, Any]):
    """A reference to another object in a decoded state. In a state to encode it stands for that object again."""

    _session: Optional["_Session"] = None

    @property
    def path(self) -> Optional[Tuple[str, ...]]:
        """The object's path; None if the object is gone."""
        path = self.get("$restorable")
        return tuple(path) if isinstance(path, (list, tuple)) else None

    @property
    def object(self) -> Any:
        """The object itself if this session has registered it, otherwise None. Its `target` is the program's own."""
        if self._session is None:
            return None
        handle = self.get("object", self.get("$restorable"))
        found = self._session._objects.get(handle) if isinstance(handle, int) else None
        return found or (self.path and self._session.object_at(self.path))


class Delegate:
    """Decides for the whole application. Override what you need; in an `AsyncSession` methods may be coroutines."""

    def should_save(self, state: Optional[Mapping[str, Any]], coder: Optional[Mapping[str, Any]]) -> Any:
        """False: do not save now."""
        return True

    def will_encode(self, round: int) -> Any:
        """The application's own state; None keeps the saved one."""
        return None

    def should_restore(self, state: Optional[Mapping[str, Any]], coder: Optional[Mapping[str, Any]]) -> Any:
        """False: do not restore."""
        return True

    def view_controller(self, wanted: Wanted) -> Any:
        """An object for a view controller without a restoration class; None continues the search."""
        return None

    def did_decode(self, state: Optional[Mapping[str, Any]], coder: Optional[Mapping[str, Any]]) -> Any:
        """All objects have their states."""


def default_socket() -> str:
    """$RESTORATIOND_SOCKET, otherwise restorationd/broker.sock in $XDG_RUNTIME_DIR."""
    named = os.environ.get("RESTORATIOND_SOCKET")
    if named:
        return named
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return os.path.join(runtime, "restorationd", "broker.sock")


# JSON


def _same(result: Any) -> Any:
    return result


_NUMBER = uuid.uuid4().hex  # before the text of a number that the encoder has no way to write


def _special(value: Any) -> Any:
    """Writes values that JSON has no form for."""
    if isinstance(value, _Object):
        return {"$restorable": value._name}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$data": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset()
        if offset is None:
            raise ValueError("a datetime in a state needs a time zone")
        if offset % datetime.timedelta(minutes=1):  # RFC 3339 has no form for it
            value = value.astimezone(datetime.timezone.utc)
        return {"$date": value.isoformat()}
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return f"{_NUMBER}{value}"
    if _is_dataclass(value):
        return _written(value)
    if isinstance(value, Mapping):
        return _keyed(dict(value))
    # An iterator would be empty when the state is written again, for memory or another broker.
    if isinstance(value, (set, frozenset, Iterator)) or not isinstance(value, Iterable):
        raise TypeError(f"{value!r:.60} ({type(value).__name__}) cannot be part of a state")
    return _keyed(list(value))


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_special)


def _keyed(value: Any) -> Any:
    """The value, if the keys in it are text: of a number the encoder would make text, which may be a key already."""
    parts = value
    if isinstance(value, dict):
        for key in list(value):  # at once: another thread may change it
            if type(key) is not str:
                _named_by(key)
        parts = list(value.values())
    for each in parts:
        if type(each) not in _PLAIN and isinstance(each, (dict, list, tuple)):
            _keyed(each)
    return value


def _named_by(key: Any) -> None:
    if not isinstance(key, str):
        raise _Misfit(f"the key {key!r:.60} ({type(key).__name__}) cannot be part of a state; keys are str")


def _text(value: Any) -> str:
    try:
        text = _encoder.encode(value)
        if isinstance(value, (dict, list, tuple)):
            _keyed(value)
        if _NUMBER in text:
            text = re.sub(f'"{_NUMBER}([^"]*)"', r"\1", text)
        return text if text.isascii() else text.encode().decode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidStateError(f"this cannot be sent: {error}") from error


def _seek(value: Any, above: Tuple[int, ...] = ()) -> None:
    """Raises a _Misfit for the first part of a value that cannot be sent: the encoder does not tell which it is."""
    if isinstance(value, (str, float)):
        _written(value)
        return
    if isinstance(value, (Mapping, list, tuple)) and id(value) not in above:
        for part, each in list(value.items()) if isinstance(value, Mapping) else enumerate(list(value)):
            if isinstance(value, Mapping):
                _named_by(part)
                _written(part)
            _within(part, _seek, each, (*above, id(value)))
    try:
        _encoder.encode(value)
    except _Misfit:
        raise
    except (ValueError, TypeError) as error:
        raise _Misfit(str(error)) from error


def _sent(message: Mapping[str, Any], state: Any, path: Optional[Path]) -> str:
    """A message with a state as text. An error says which part of which object's state cannot be sent."""
    try:
        return _text(message)
    except InvalidStateError as error:
        with _telling(path):
            _seek(state)
            raise _Misfit(str(error)) from error


class _JSON(str):
    """A result that is already JSON text."""


def _integer(text: str) -> Union[int, decimal.Decimal]:
    """Python reads an int of thousands of digits slowly or not at all."""
    return int(text) if len(text) <= 640 else decimal.Decimal(text)


def _real(text: str) -> Union[float, decimal.Decimal]:
    """Keeps the digits of a number that is too large for a float."""
    value = float(text)
    if math.isinf(value):
        with contextlib.suppress(ArithmeticError):
            return decimal.Decimal(text)
    return value


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_real)


def _bytes(text: str) -> bytes:
    if len(text) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text):
        raise ValueError("not base64")
    return base64.b64decode(text)


_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"


def _date(text: str) -> datetime.datetime:
    """Reads RFC 3339. What is finer than a microsecond is dropped."""
    day = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    found = re.fullmatch(rf"({day}T{_CLOCK}:[0-5][0-9])(?:\.([0-9]+))?(Z|[+-]{_CLOCK})", text)
    if not found:
        raise ValueError("not a date")
    second, fraction, zone = found.groups()
    date = datetime.datetime.fromisoformat(second + (zone if zone != "Z" else "+00:00"))
    return date.replace(microsecond=int(f"{fraction or ''}000000"[:6]))


def _revived(value: Any, session: Optional["_Session"]) -> Any:
    """Reads back what `_special` has written."""
    if isinstance(value, list):
        return [_revived(element, session) for element in value]
    if not isinstance(value, dict):
        return value
    if "$restorable" in value:
        reference = Reference(value)
        reference._session = session
        return reference
    if "$literal" in value:
        return value
    if len(value) == 1:
        with contextlib.suppress(ValueError):
            if isinstance(value.get("$data"), str):
                return _bytes(value["$data"])
            if isinstance(value.get("$date"), str):
                return _date(value["$date"])
    return {key: _revived(member, session) for key, member in value.items()}


def _saved(entry: Mapping[str, Any], path: Optional[Path] = None, session: Optional["_Session"] = None) -> Saved:
    return Saved(
        status=entry.get("status", "available"), state=_revived(entry.get("state"), session), coder=entry.get("coder"),
        elements=entry.get("elements") or [], path=None if path is None else tuple(path),
    )


# Typed states


class _Misfit(TypeError):
    """A value that cannot be written, or is not of the expected type; `where` leads to it from the state."""

    def __init__(self, why: str, *where: Union[str, int]) -> None:
        super().__init__(why)
        self.where = list(where)

    @property
    def field(self) -> str:
        parts = (
            f".{part}" if isinstance(part, str) and part.isidentifier() else f"[{part!r}]" for part in self.where)
        return "".join(parts).lstrip(".")

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.field, *self.args]))


def _within(part: Union[str, int], work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except _Misfit as misfit:
        misfit.where.insert(0, part)
        raise


@functools.lru_cache(maxsize=1024)
def _hints(kind: Any) -> Dict[str, Any]:
    try:
        return get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise _Misfit(
            f"a type hint of {kind.__qualname__} cannot be read: {error}; define its type in a module") from None


@functools.lru_cache(maxsize=1024)
def _fields(kind: Any) -> List[Tuple[str, bool]]:
    """The fields that the constructor takes, and whether it needs them. The others are the object's own affair."""
    none = dataclasses.MISSING
    return [
        (each.name, each.default is none and each.default_factory is none)
        for each in dataclasses.fields(kind) if each.init]


#: Where the number of a dataclass's form is saved.
_VERSION = "$version"
#: Where a state has what is no object, in Swift as well.
_VALUE = "value"


def _version(kind: Any) -> int:
    """The number of the form that a dataclass has now; 0 if it counts none, or has a field of that name."""
    version = getattr(kind, "state_version", 0)
    return version if version and "state_version" not in dict(_fields(kind)) else 0


def _migrated(kind: Any, value: Dict[str, Any]) -> Dict[str, Any]:
    """What was saved, in the form that the dataclass has now."""
    version, saved = _version(kind), value.get(_VERSION, 0)
    if not version or saved == version:
        return value
    if type(saved) is not int or saved > version:
        raise _Misfit(
            f"{_named(kind)} was saved as version {saved!r}, and this program knows versions up to {version}")
    value = {name: each for name, each in value.items() if name != _VERSION}
    if hasattr(kind, "migrate_state"):
        kind.migrate_state(value, saved)
    return value


def _is_dataclass(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__") and not isinstance(value, (Saved, Snapshot, Wanted))


def _written(value: Any) -> Any:
    """A value of a typed state, as values that JSON or `_special` has a form for. `_typed` reads it."""
    if isinstance(value, enum.Enum):
        return _written(value.value)
    if isinstance(value, str):
        if not value.isascii() and value.encode(errors="ignore").decode() != value:
            raise _Misfit(f"{value!r:.60} is no text: it has half of a surrogate pair")
        return value
    if value is None or isinstance(value, (bool, int, bytes, Reference, _Object)):
        return value
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if _is_dataclass(value):
        kind: Any = type(value)
        written = {name: _within(name, _written, getattr(value, name)) for name, _ in _fields(kind)}
        version = _version(kind)
        return {**written, _VERSION: version} if version else written
    if isinstance(value, datetime.datetime) and value.utcoffset() is not None:
        return value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, pathlib.PurePath):
        name = str(value)
        is_text = name.encode(errors="ignore").decode() == name  # the name of a file need not be
        return name if is_text else os.fsencode(name)
    if isinstance(value, (uuid.UUID, decimal.Decimal)):
        return str(value)
    if isinstance(value, Mapping):
        # Other keys are no names in JSON, or mean something there.
        entries = list(value.items())  # at once: another thread may change it
        pairs = [(_written(key), _within(str(key), _written, each)) for key, each in entries]
        named = all(isinstance(key, str) and not key.startswith("$") for key, _ in pairs)
        return dict(pairs) if named else [list(pair) for pair in pairs]
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [_within(index, _written, each) for index, each in enumerate(list(value))]
    raise _Misfit(f"{value!r:.60} ({type(value).__qualname__}) cannot be part of a state")


def _moment(value: Union[str, datetime.datetime]) -> datetime.datetime:
    """One without a zone is written as text."""
    if not isinstance(value, str):
        return value
    if "T" not in value:
        raise ValueError("a date only")
    return datetime.datetime.fromisoformat(value)


#: What values of a type are read from, and how.
_FORMS: Dict[Any, Tuple[Tuple[type, ...], Callable[[Any], Any]]] = {
    type(None): ((type(None),), _same), bool: ((bool,), _same), int: ((int,), _same), str: ((str,), _same),
    float: ((float, int), float), bytes: ((bytes,), _same), bytearray: ((bytes,), bytearray),
    decimal.Decimal: ((str, int, float, decimal.Decimal), lambda number: decimal.Decimal(str(number))),
    datetime.datetime: ((str, datetime.datetime), _moment), datetime.date: ((str,), datetime.date.fromisoformat),
    datetime.time: ((str,), datetime.time.fromisoformat),
    datetime.timedelta: ((float, int), lambda seconds: datetime.timedelta(seconds=seconds)),
    uuid.UUID: ((str,), uuid.UUID), Reference: ((Reference,), _same),
}
#: Whose values are read from themselves.
_PLAIN = (type(None), bool, int, str, float, bytes)
_CONCRETE: Dict[Any, Any] = {
    collections.abc.Sequence: list, collections.abc.MutableSequence: list, collections.abc.Collection: list,
    collections.abc.Iterable: list, collections.abc.Set: frozenset, collections.abc.MutableSet: set,
    collections.abc.Mapping: dict, collections.abc.MutableMapping: dict,
}
_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_MANY = (list, tuple, set, frozenset, collections.deque)


def _bare(hint: Any) -> Any:
    """Without NewType, Annotated, Final, Required and NotRequired. Any stands for what may be anything."""
    if type(hint) is type and hint is not object:
        return hint
    hint = getattr(hint, "__supertype__", hint)
    if hint is object or isinstance(hint, TypeVar):
        return Any
    if get_origin(hint) in (Annotated, Final) or _necessity(hint):
        return _bare(get_args(hint)[0])
    return hint


def _necessity(hint: Any) -> str:
    """`Required` or `NotRequired`; they are younger than Python 3.9, or come from another module."""
    name = str(get_origin(hint)).rpartition(".")[2]
    return name if name in ("Required", "NotRequired") else ""


def _is_union(origin: Any) -> bool:
    return origin is Union or origin is getattr(types, "UnionType", Union)


def _kind(hint: Any) -> Any:
    """The class that a hint makes values of, or names."""
    return type(None) if hint is None else _CONCRETE.get(get_origin(hint) or hint, get_origin(hint) or hint)


@functools.lru_cache(maxsize=1024)
def _members(kind: Any) -> Optional[Dict[str, Tuple[Any, bool]]]:
    """The hints of a type that is an object in a state, and whether it needs each; None for other types."""
    if hasattr(kind, "__dataclass_fields__"):
        hints = _hints(kind)
        return {name: (hints[name], is_needed) for name, is_needed in _fields(kind)}
    if hasattr(kind, "__required_keys__"):  # a TypedDict, which knows no NotRequired that is still text
        return {
            name: (hint, (_necessity(hint) or name in kind.__required_keys__) not in ("NotRequired", False))
            for name, hint in _hints(kind).items()}
    return None


def _examine(hint: Any, seen: Set[Any]) -> None:
    """Refuses a type that could not be read, before something of it is written."""
    hint = _bare(hint)
    origin, kind = get_origin(hint), _kind(hint)
    if hint is Any or origin is Literal or kind in seen:
        return
    if not _is_union(origin):
        is_own = isinstance(kind, type) and issubclass(kind, (enum.Enum, pathlib.PurePath, *_MANY))
        members = _members(kind) if isinstance(kind, type) else None
        if members is not None:
            seen.add(kind)
            for name, (each, _) in members.items():
                _within(name, _examine, each, seen)
        elif not (is_own or kind in _FORMS or kind in _DICTS):
            raise _Misfit(f"a state cannot be decoded as {_named(hint)}")
        elif hasattr(kind, "_fields"):  # a NamedTuple
            for name, each in _hints(kind).items():
                _within(name, _examine, each, seen)
    for each in get_args(hint):
        if each is not ... and each != ():
            _examine(each, seen)


@functools.lru_cache(maxsize=1024)
def _examined(kind: Any) -> None:
    _examine(kind, set())


def _made(kind: Any, given: Dict[str, Any]) -> Any:
    try:
        return kind(**given)
    except (ValueError, TypeError) as error:
        raise _Misfit(f"{_named(kind)} refuses what was saved: {error}") from error


def _unmade(kind: Any, given: Dict[str, Any]) -> None:
    """Nothing of the program's runs only because a value is checked."""


def _checked(hint: Any, value: Any) -> Any:
    """A value as it is written, if it can be read again as the type."""
    written = _written(value)
    _typed(hint, written, _unmade)
    return written


def _typed(hint: Any, value: Any, make: Callable[[Any, Dict[str, Any]], Any] = _made) -> Any:
    """What was decoded without a type, as a value of the type. `make` gives those of types with members."""
    if hint is type(value) and hint in _PLAIN:
        return value
    hint = _bare(hint)
    if hint is Any:
        return value
    if isinstance(value, _Object):  # which is written, and comes back as a reference
        value = value.reference
    origin, arguments = get_origin(hint), get_args(hint)
    if _is_union(origin):
        return _one_of(hint, arguments, value, make)
    if origin is Literal:
        return _equal(hint, arguments, value)
    kind = _kind(hint)
    if not isinstance(kind, type):
        raise _Misfit(f"a state cannot be decoded as {_named(hint)}")
    members = _members(kind)
    if members is not None:
        parameters = dict(zip(getattr(kind, "__parameters__", ()), arguments))
        return _made_of_members(kind, members, parameters, value, make)
    if issubclass(kind, enum.Flag):
        return _read(kind, ((int,), kind), value)
    if issubclass(kind, enum.Enum):
        return _equal(kind, list(kind), value)
    if kind in _DICTS:
        key, member = (*arguments, int)[:2] if arguments else (Any, Any)  # a Counter has one argument
        if not isinstance(value, (dict, list)):
            raise _unfit(hint, value)
        pairs = value.items() if isinstance(value, dict) else (_typed(Tuple[Any, Any], pair) for pair in value)
        read = {_typed(key, name, make): _within(str(name), _typed, member, each, make) for name, each in pairs}
        if kind is collections.defaultdict:
            factory = _kind(_bare(member))
            return collections.defaultdict(factory if isinstance(factory, type) and factory is not Any else None, read)
        whole: Any = kind
        return whole(read)
    if issubclass(kind, _MANY):
        return _collected(hint, kind, arguments, value, make)
    if issubclass(kind, pathlib.PurePath):
        return _read(kind, ((str, bytes), lambda name: kind(os.fsdecode(name))), value)
    if kind not in _FORMS:
        raise _Misfit(f"a state cannot be decoded as {_named(hint)}")
    return _read(kind, _FORMS[kind], value)


def _typed_state(kind: Any, state: Dict[str, Any]) -> Any:
    """A whole state as a value of the type."""
    bare = _bare(kind)
    kinds = get_args(bare) if _is_union(get_origin(bare)) else (bare,)
    plain = tuple(each for each in kinds if not _is_object(each))
    if len(plain) == len(kinds):
        if _VALUE not in state:
            raise _unfit(kind, state)
        return _within(_VALUE, _typed, kind, state[_VALUE])
    if plain and state.keys() == {_VALUE}:
        for each in kinds:
            if (_members(_kind(_bare(each))) or {}).keys() == {_VALUE}:  # it is saved as a plain value is
                with contextlib.suppress(_Misfit):
                    return _typed(each, state)
        with contextlib.suppress(_Misfit):
            return _typed(Union[plain], state[_VALUE])
    return _typed(kind, state)


def _is_object(hint: Any) -> bool:
    """Whether values of a type can be a whole state."""
    hint, kind = _bare(hint), _kind(_bare(hint))
    return hint is Any or isinstance(kind, type) and (kind in _DICTS or _members(kind) is not None)


def _read(kind: Any, form: Tuple[Tuple[type, ...], Callable[[Any], Any]], value: Any) -> Any:
    found, read = form
    if isinstance(value, found) and (bool in found or not isinstance(value, bool)):
        with contextlib.suppress(ValueError, OverflowError, decimal.InvalidOperation):
            return read(value)
    raise _unfit(kind, value)


def _one_of(hint: Any, kinds: Sequence[Any], value: Any, make: Callable[..., Any]) -> Any:
    """The first type that fits; of dataclasses, the first of those that leave out the fewest keys."""
    if type(value) in (bool, int, float) and type(value) in kinds:  # an int fits a float as well
        return value
    if value is not None:
        kinds = [each for each in kinds if each is not type(None)]
    if len(kinds) == 1:
        return _typed(kinds[0], value, make)

    def left_out(kind: Any) -> int:
        kind = get_origin(kind) or kind
        is_object = isinstance(value, dict) and dataclasses.is_dataclass(kind)
        return len(value.keys() - {_VERSION} - {name for name, _ in _fields(kind)}) if is_object else 0

    for kind in sorted(kinds, key=left_out):
        with contextlib.suppress(_Misfit):
            return _typed(kind, value, make)
    raise _unfit(hint, value)


def _equal(hint: Any, values: Sequence[Any], value: Any) -> Any:
    text = _text(value)
    for each in values:
        if _text(_written(each)) == text:
            return each
    raise _unfit(hint, value)


def _made_of_members(
    kind: Any, members: Mapping[str, Tuple[Any, bool]], parameters: Mapping[Any, Any], value: Any,
    make: Callable[..., Any],
) -> Any:
    if not isinstance(value, dict):
        raise _unfit(kind, value)
    value, given = _migrated(kind, value), {}
    for name, (hint, is_needed) in members.items():
        if name in value:
            given[name] = _within(name, _typed, _replaced(hint, parameters), value[name], make)
        elif is_needed:
            raise _Misfit(f"expected {_named(hint)}, found nothing; give the field a default", name)
    return make(kind, given)


def _replaced(hint: Any, parameters: Mapping[Any, Any]) -> Any:
    """With what stands for the parameters of a generic class: `List[T]` of a `Box[int]` is `List[int]`."""
    inner = () if isinstance(hint, type) else getattr(hint, "__parameters__", ())
    return hint[tuple(parameters.get(each, Any) for each in inner)] if inner else parameters.get(hint, hint)


def _collected(hint: Any, kind: Any, arguments: Sequence[Any], value: Any, make: Callable[..., Any]) -> Any:
    if not isinstance(value, list):
        raise _unfit(hint, value)
    if hasattr(kind, "_fields"):  # a NamedTuple
        arguments = list(_hints(kind).values())
        least = len(arguments) - len(kind._field_defaults)
        return kind(*_each(hint, arguments[:max(least, len(value))], value, make))
    if issubclass(kind, tuple) and arguments and arguments[-1] is not ...:
        return kind(_each(hint, () if arguments == ((),) else arguments, value, make))
    return kind(_each(hint, [arguments[0] if arguments else Any] * len(value), value, make))


def _each(hint: Any, hints: Sequence[Any], values: Sequence[Any], make: Callable[..., Any]) -> List[Any]:
    if len(hints) != len(values):
        raise _unfit(hint, values)
    return [_within(index, _typed, *pair, make) for index, pair in enumerate(zip(hints, values))]


def _unfit(hint: Any, value: Any) -> _Misfit:
    return _Misfit(f"expected {_named(hint)}, found {value!r:.60} ({type(value).__name__})")


def _named(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _stated(state: Any, path: Optional[Path]) -> Any:
    """A state to send."""
    if not _is_dataclass(state):
        is_object = isinstance(state, Mapping) and not isinstance(state, Reference)
        return state if is_object else {_VALUE: state}
    kind: Any = type(state)
    with _telling(path):
        _examined(kind)
        return _checked(kind, state)


@contextlib.contextmanager
def _telling(path: Optional[Path], *where: str) -> Iterator[None]:
    """Tells of which object a state does not fit, and in which attribute if that is known."""
    try:
        yield
    except Exception as error:  # also of the program's own properties and classes
        rule = "; a state is not nested in itself, nor deeper than stateDepthMax, 56 by default"
        why = _described(error) + (rule if isinstance(error, RecursionError) else "")
        misfit = error if isinstance(error, _Misfit) else _Misfit(why, *where)
        cause = error.__cause__ if misfit is error else error
        raise InvalidStateError(f"{_placed(path)}: {misfit}", path, misfit.field) from cause


def _placed(path: Optional[Path]) -> str:
    return "the state" if path is None else "/".join(path) or "the application's state"


# Attributes


_BOUND = "_restoration"
_NONE = dataclasses.MISSING
#: Types of JSON, whose values come back as they are.
_OWN = (type(None), bool, int, float, str, list, dict, bytes)
#: Types of values that cannot be changed, so that only setting the attribute changes it.
_FIXED = frozenset({type(None), bool, int, float, str, bytes, *_FORMS} - {bytearray, Reference})


def _is_fixed(value: Any) -> bool:
    return type(value) in _FIXED or isinstance(value, (enum.Enum, pathlib.PurePath)) or (
        type(value) is tuple and all(map(_is_fixed, value)))


class _Attribute:
    """What `restorable` makes. The value is in the instance's own dictionary."""

    def __init__(self, default: Any, factory: Any, key: Optional[str]) -> None:
        self.default, self.factory, self.key = default, factory, key or ""

    def __set_name__(self, owner: Any, name: str) -> None:
        if not owner.__dictoffset__:
            raise TypeError(f"{owner.__qualname__} has __slots__, which leave no room for restorable attributes")
        self.owner, self.name, self.key = owner, name, self.key or name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        value = self.value(instance)
        if not _is_fixed(value):
            self.mark(instance)  # it may be changed in place
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        if value is self:  # the class is a dataclass, and takes it for the default
            return
        instance.__dict__[self.name] = value
        self.mark(instance)

    def mark(self, instance: Any) -> None:
        bound = instance.__dict__.get(_BOUND)
        if bound is not None:
            bound.thing._session._mark(bound.thing)

    def value(self, instance: Any) -> Any:
        if self.name not in instance.__dict__:
            if not self.has_value(instance):
                raise AttributeError(f"{type(instance).__name__}.{self.name} has no value yet")
            instance.__dict__[self.name] = copy.deepcopy(self.default) if self.factory is _NONE else self.factory()
        return instance.__dict__[self.name]

    def has_value(self, instance: Any) -> bool:
        return self.name in instance.__dict__ or self.default is not _NONE or self.factory is not _NONE

    @functools.cached_property
    def hint(self) -> Any:
        """The annotation, otherwise the default's type."""
        hint = _annotations(self.owner).get(self.name, _NONE)
        if hint is not _NONE:  # only this one: others may name what is known to type checkers only
            named = {"__annotations__": {self.name: hint}, "__module__": self.owner.__module__}
            return _hints(type(self.owner.__name__, (), named))[self.name]
        return Any if isinstance(self.default, (*_OWN, type(_NONE))) else type(self.default)


class _Bound:
    """In an instance: what it is registered as. A copy, or what is pickled, is not registered."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __reduce__(self) -> Any:
        return type(None), ()


def _annotations(kind: Any) -> Dict[str, Any]:
    """Those of the class itself."""
    get = getattr(inspect, "get_annotations", None)  # since Python 3.10
    found: Dict[str, Any] = get(kind) if get else vars(kind).get("__annotations__", {})
    return found


def _attributes(target: Any) -> List[_Attribute]:
    kind: Any = type(target)
    return _class_attributes(kind)


@functools.lru_cache(maxsize=1024)
def _class_attributes(kind: Any) -> List[_Attribute]:
    found = {name: each for base in reversed(kind.__mro__) for name, each in list(vars(base).items())}
    for name, each in getattr(kind, "__dataclass_fields__", {}).items():
        if isinstance(each.default, _Attribute) and not isinstance(found.get(name), _Attribute):
            raise TypeError(f"{kind.__qualname__} has slots=True, which leaves no room for restorable attributes")
    return [each for each in found.values() if isinstance(each, _Attribute)]


@overload
def restorable(default: _T, *, key: Optional[str] = None) -> _T: ...
@overload
def restorable(*, default_factory: Callable[[], _T], key: Optional[str] = None) -> _T: ...
def restorable(default: Any = _NONE, *, default_factory: Any = _NONE, key: Optional[str] = None) -> Any:
    """An attribute that is saved and restored with the object whose `target` the instance is; or, before a class, all
    attributes that the class itself annotates, but those whose names begin with an underscore.

    - default: until it is set or restored; each instance has a copy of its own.
    - default_factory: makes the default.
    - key: the name in the state; by default that of the attribute.
    """
    if not isinstance(default, type):
        return _Attribute(default, default_factory, key)
    fields = getattr(default, "__dataclass_fields__", {})
    for name, hint in _annotations(default).items():
        value = vars(default).get(name, _NONE)
        if name.startswith("_") or "ClassVar" in str(hint) or isinstance(value, _Attribute):
            continue
        given = fields.get(name, value)
        factory: Any = _NONE
        if isinstance(given, dataclasses.Field):  # of a dataclass, or of what is about to be one
            if given is value and not (given.init and given.repr and given.compare and given.hash is None):
                raise TypeError(f"field() of {name} has more than a default; put @restorable above @dataclass")
            value, factory = given.default, given.default_factory
        attribute = _Attribute(value, factory, None)
        attribute.__set_name__(default, name)
        setattr(default, name, attribute)
    return default


def _measure(value: Any) -> Tuple[int, int, int]:
    """Levels, values, and the most keys of one object."""
    depth, values, keys = 0, 0, 0
    level = [value]
    while level:
        values += len(level)
        below: List[Any] = []
        depth += any(isinstance(each, (dict, list)) for each in level)
        for each in level:
            if isinstance(each, dict):
                keys = max(keys, len(each))
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
    return depth, values, keys


def _beyond(text: str, limits: Mapping[str, int]) -> Optional[Dict[str, Any]]:
    """The limit of frames that a text exceeds: the broker could not tell which call it answers."""
    found = {"frameBytesMax": len(text) if text.isascii() else len(text.encode())}
    opened = text.count("{") + text.count("[")
    if opened > limits.get("depthMax", 64) or text.count(",") + opened >= limits.get("keysPerObjectMax", 4096):
        try:
            depth, values, keys = _measure(_decoder.decode(text))
        except RecursionError:
            depth, values, keys = opened, 0, 0
        found.update(depthMax=depth, valuesPerFrameMax=values, keysPerObjectMax=keys)
    defaults = {"frameBytesMax": 4 << 20, "depthMax": 64, "valuesPerFrameMax": 65536, "keysPerObjectMax": 4096}
    for limit, value in found.items():
        largest = limits.get(limit, defaults[limit])
        if value > largest:
            return {
                "code": -32008, "message": f"a message is beyond {limit}: {value}, and {largest} at most",
                "data": {
                    "kind": "limitExceeded", "hint": "Send less, or raise the limit in the broker's configuration.",
                    "limit": limit, "max": largest, "value": value,
                },
            }
    return None


# A broker's frames are no longer: what is, comes from something else, and would fill the memory.
_LINE_BYTES_MAX = 1 << 30


class _Lines:
    """Splits the input at line feeds. A line that is too long counts as an empty one, which is no message."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.searched = 0
        self.held: Deque[Dict[str, Any]] = collections.deque()  # messages that are taken later

    def next(self) -> Optional[bytes]:
        end = self.buffer.find(b"\n", self.searched)
        if end < 0:
            self.searched = len(self.buffer)
            return b"" if self.searched > _LINE_BYTES_MAX else None
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        self.searched = 0
        return line


# What sync and async have in common


@dataclass
class _Call(Generic[_T]):
    """A request, how its answer is read, and whether it may be sent twice."""

    method: str
    params: Dict[str, Any]
    finish: Callable[[Any], _T]
    repeatable: bool
    seconds: float = 0  # beyond the usual patience
    ends: bool = False
    is_raw: bool = False  # the program has written method and parameters
    registered: Any = None  # the object that it has registered


_REPEATABLE = {
    "decodeRestorableState", "describeApplication", "diffGenerations", "explainRestoration",
    "invalidateRestorableState",
    "completeStateRestoration", "limits", "listApplications", "listGenerations", "listPathComponents", "listQuarantine",
    "ping",
    "registerDataSource", "registerObjectForStateRestoration", "registerRestorationClass", "restoreApplicationState",
    "saveApplicationState", "setChildren", "setRestorationIdentifier", "setRestorationParent", "statistics",
    "verifyArchive", "rpc.discover",
}
_NOTIFIED = [
    "pathChanged", "registrationReplaced", "headReplaced", "applicationStateSaved", "stateWanted", "archiveLost",
]
_SERVED = [
    "encodeRestorableStateWithCoder", "decodeRestorableStateWithCoder", "objectWithRestorationIdentifierPath",
    "modelIdentifierForElementAtIndexPath", "indexPathForElementWithModelIdentifier",
    "applicationFinishedRestoringState",
]
_DELEGATED = [
    "shouldSaveApplicationState", "willEncodeRestorableState", "shouldRestoreApplicationState",
    "viewControllerWithRestorationIdentifierPath", "didDecodeRestorableState",
]
_Answering = Generator[Any, Any, _T]


def _object(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _nothing(result: Any) -> None:
    return None


def _pending(result: Any) -> int:
    return int(result["pending"])


class _Object:
    """An object's properties, for both kinds of sessions."""

    def __init__(self, session: "_Session", registration: Dict[str, Any], result: Mapping[str, Any]) -> None:
        self._session = session
        self._registration = registration
        self._callbacks: Dict[str, Optional[Callable[..., Any]]] = {}
        #: What it stands for in the program.
        self.target: Any = None
        self._handle: Optional[int] = None
        self._refusal: Optional[BrokerError] = None  # why it has none for now
        #: The state that the target's attributes are known to have in the broker, and whether there is one.
        self._pushed: Optional[str] = None
        #: What attributes could last be written as.
        self._last: Dict[str, Any] = {}
        self._has_state = False
        #: What was pushed last, if it was not stored because the object is excluded; and whether it is wanted now (R4).
        self._unsaved: Optional[Dict[str, Any]] = None
        self._is_wanted = False
        #: It began without a broker: nothing that is saved at its path is newer than what the program has (R29).
        self._is_fresh = session._is_alone
        self._take(result)

    def _take(self, result: Mapping[str, Any]) -> None:
        self._handle, self._refusal = result["object"], None
        self.path: Optional[Tuple[str, ...]] = None if result["path"] is None else tuple(result["path"])
        self.included: bool = result.get("included", True)
        restoration = result.get("restoration") or {}
        #: `none`, `available`, `unreadable` or `quarantined`: the saved state at registration.
        self.restoration: str = restoration.get("state", "none")
        self.class_matches: bool = restoration.get("classMatches", True)
        #: The broker hands the state out by itself, because the process came late: `decode` is called.
        self.handing: bool = restoration.get("handing", False)
        #: The session had the path already.
        self.existing: bool = result.get("existing", False)
        #: Another session has taken the path over: calls with this object fail.
        self.is_replaced: bool = False
        self._is_gone = False  # the program has unregistered it

    def _tell_withheld(self) -> None:
        """Whoever runs the program is told that there is a state that it is not given (R35)."""
        words = ["restorationctl", "quarantine", "release", self._session.application, "/".join(self.path or ())]
        _log.warning(
            "the saved state of %r is withheld, because its process failed when it was given it; to release it: %s",
            self, shlex.join(words))

    @property
    def handle(self) -> int:
        """Its number in calls. Raises if the object was replaced: the number may be another object's now."""
        if self._handle is None:
            raise self._refusal or BrokerError({
                "code": -32010, "message": f"{self!r} is not registered any more",
                "data": {"kind": "replaced", "hint": "Stop writing to it, or register it again."},
            })
        return self._handle

    @property
    def reference(self) -> Reference:
        """A reference to this object for states of other objects, which may also contain the object itself."""
        memory = self._session._memory
        is_by_path = memory is not None and not memory._is_told and not self._is_gone
        reference = Reference({"$restorable": self.path if is_by_path else self._name})
        reference._session = self._session
        return reference

    @property
    def _name(self) -> Any:
        """What a reference to it has in a message; no object is 0."""
        return 0 if self._is_gone else self.path if self._handle is None else self._handle

    def _belongs(self, callbacks: Dict[str, Optional[Callable[..., Any]]], target: Any) -> bool:
        """Whether the callbacks and the target may be of the object of the program that was registered here first."""
        if target is not None and self.target is not None:
            return target is self.target
        return not any(callbacks.values()) or not any(self._callbacks.values()) or callbacks == self._callbacks

    def _serve(self, callbacks: Dict[str, Optional[Callable[..., Any]]], target: Any) -> None:
        if any(callbacks.values()):
            self._callbacks = callbacks
        self.target = self.target if target is None else target

    def _is_bound(self) -> bool:
        """Whether its state is that of the target's attributes."""
        bound = getattr(self.target, "__dict__", {}).get(_BOUND)
        return bound is not None and bound.thing is self

    def _bind(self) -> _Answering[None]:
        """Gives the target's attributes what is saved. From then on, what they are set to is saved."""
        attributes = _attributes(self.target)
        if not attributes or self._is_bound():
            return
        saved = (yield self._decode()) if self.restoration == "available" else Saved("none")
        is_set = any(each.name in vars(self.target) for each in attributes)
        self._restore(saved)  # first, because another thread may flush
        vars(self.target)[_BOUND] = _Bound(self)
        if is_set and self.restoration == "none":
            self._want()

    def _restore(self, saved: Saved) -> None:
        """Gives the target's attributes what is saved of them."""
        for each in _attributes(self.target):
            if each.key in (saved.state or {}):
                try:
                    with _telling(self.path, each.key):
                        value = _within(each.key, _typed, each.hint, saved[each.key])
                except InvalidStateError as error:
                    _log.warning("%s; the attribute keeps its value", error)
                else:
                    vars(self.target)[each.name] = value
        self._has_state = bool(saved)
        self._pushed = _text(self._values()[0])

    def _values(self) -> Tuple[Dict[str, Any], Optional[InvalidStateError]]:
        """The state of the target's attributes, and the first error: what cannot be written is as it last could."""
        values, failure = {}, None
        for each in _attributes(self.target):
            try:
                with _telling(self.path, each.key):
                    if each.has_value(self.target):
                        values[each.key] = _within(each.key, _checked, each.hint, each.value(self.target))
            except InvalidStateError as error:
                failure = failure or error
                if each.key in self._last:
                    values[each.key] = self._last[each.key]
        self._last = values
        return values, failure

    def _want(self) -> None:
        """The broker needs the state again."""
        if self._is_bound():
            self._pushed = None
            self._session._mark(self)
        elif self._unsaved is not None:
            self._is_wanted = True
            self._session._mark(self)

    def _changed(self) -> Tuple[Optional[Dict[str, Any]], Optional[InvalidStateError]]:
        """The state of the target's attributes, unless the broker has it, and why a part of it is older."""
        if not self._is_bound():
            return None, None
        values, failure = self._values()
        return (None if _text(values) == self._pushed else values), failure

    def _lose(self) -> None:
        """The path belongs to another session, or is unclaimed."""
        self._handle, self.is_replaced = None, True
        if self._session._memory is not None:
            self._session._memory._drop(self)

    def _end(self) -> None:
        """It is unregistered: its number may soon be another object's."""
        if self._handle is not None:
            self._session._objects.pop(self._handle, None)
        if self in self._session._forgotten:
            self._session._forgotten.remove(self)
        self._handle, self._refusal, self._is_gone = None, _unknown(self), True
        if self._session._memory is not None:
            self._session._memory._drop(self)

    def __repr__(self) -> str:
        name = "/".join(map(str, self.path)) if self.path is not None else f"({self._handle})"
        return f"<{type(self).__name__} {name}>"

    def _decode(self) -> _Call[Saved]:
        return self._session._decode(self)

    def _encode(self, state: State, elements: Elements) -> _Call[bool]:
        return self._session._encode(self, state, elements)

    def _invalidate(self) -> _Call[None]:
        return _Call("invalidateRestorableState", {"object": self}, _nothing, True)

    def _unregister(self) -> _Call[None]:
        def finish(result: Any) -> None:
            self._end()

        return _Call("unregisterObject", {"object": self}, finish, False)

    def _moved(self, path: Optional[Path]) -> None:
        """Takes over the path, also for registering again with a broker that has forgotten the session."""
        self.path = None if path is None else tuple(path)
        identifier, _, position = self.path[-1].partition("#") if self.path else (None, "", "")
        self._registration.update(restorationIdentifier=identifier, position=int(position) if position else None)
        if self.path and not isinstance(self._registration.get("restorationParent"), _Object):
            self._registration["restorationParent"] = self.path[:-1] or None

    def _above(self) -> int:
        """How many objects must be registered before this one."""
        if self.path is not None:
            return len(self.path)
        above, parent = 0, self._registration.get("restorationParent")
        while isinstance(parent, _Object) and above < 1000:
            if parent.path is not None:
                return above + len(parent.path) + 1
            above, parent = above + 1, parent._registration.get("restorationParent")
        return above + (len(parent) if isinstance(parent, (list, tuple)) else 1)

    def _move(self, parent: Any, take_over: bool) -> _Call[None]:
        def finish(result: Mapping[str, Any]) -> None:
            self._registration["restorationParent"] = parent
            self._moved(result["path"])

        params = {"object": self, "restorationParent": parent, "takeOver": take_over}
        return _Call("setRestorationParent", params, finish, True)

    def _rename(self, identifier: Optional[str], position: Optional[int], take_over: bool) -> _Call[None]:
        def finish(result: Mapping[str, Any]) -> None:
            self._moved(result["path"])
            self.included = result.get("included", self.included)

        params: Dict[str, Any] = {"object": self, "restorationIdentifier": identifier, "takeOver": take_over}
        if position is not None:
            params["position"] = position
        return _Call("setRestorationIdentifier", params, finish, True)

    def _set_children(self, children: Sequence[Any]) -> _Call[None]:
        def finish(result: Mapping[str, Any]) -> None:
            for child, path in zip(children, result["paths"]):
                if isinstance(child, _Object):
                    child._moved(path)

        params = {"object": self, "children": [[child] if isinstance(child, str) else child for child in children]}
        return _Call("setChildren", params, finish, True)


def _unknown(what: Any) -> BrokerError:
    """What a broker says of an object that it does not know."""
    return BrokerError({
        "code": -32002, "message": f"{what} is not registered",
        "data": {"kind": "unknownObject", "hint": "Register it again, or name it by its path."},
    })


def _is_own(target: Any) -> bool:
    """Whether a call is about the application's own state."""
    return target is None or isinstance(target, (list, tuple)) and not target


def _referred(target: Any) -> Any:
    """References in a call: an object, a handle, a path, the identifier of a root, or a list of those."""
    if isinstance(target, _Object):
        return target.handle
    if isinstance(target, str):
        return [target]
    if isinstance(target, (list, tuple)):
        return [each if isinstance(each, str) else _referred(each) for each in target]
    return target


def _is_passing(error: Exception) -> bool:
    """Whether it may be over in the next turn: another thread has changed what was read, or the broker is away."""
    if isinstance(error, InvalidStateError):
        return isinstance(error.__cause__, RuntimeError) and not isinstance(error.__cause__, RecursionError)
    return True


def _decoded(text: str, number: Callable[[str], Any]) -> Any:
    return json.loads(text, parse_int=_integer, parse_float=number)


#: How many paths that were left or forgotten without a broker are remembered: the newest.
_REMOVED_MAX = 10_000

#: Members of a call that are, or contain, references to objects.
_NAMED = ("object", "objects", "restorationParent", "view", "children")

#: What gives objects other places.
_CHANGES = ("unregisterObject", "setRestorationIdentifier", "setRestorationParent", "setChildren")


@dataclass
class _Kept:
    """A state in memory."""

    text: str  # objects in it have the numbers that memory gives them
    more: Dict[str, Any]  # elements and revision
    is_done: bool = False  # the broker has it, or refuses it for good


class _Memory:
    """Stands in for the broker from the start of a session until one comes, and then repeats all changes there.

    Each method without a leading underscore is one of the protocol, and answers as a broker without an archive would.
    """

    def __init__(self, session: "_Session", why: NoBrokerError) -> None:
        self._session, self._why = session, why
        self._count = itertools.count(-1, -1)  # no broker gives such handles
        self._numbers: Dict[_Object, int] = {}
        self._things: Dict[int, _Object] = {}  # by them
        # The newest states, None being the application's own: all until a broker has everything, then what it has not.
        self._states: Dict[Optional[_Object], _Kept] = {}
        self._is_told = False  # a broker has been told everything, except what it refuses in passing
        # Paths that were left or forgotten, and the registration of the object that had each last.
        self._removed: Dict[Tuple[str, ...], Optional[Dict[str, Any]]] = {}
        self._left: Dict[Tuple[str, ...], Optional[Dict[str, Any]]] = {}  # those that the broker has removed already
        self._held = 0  # how often the program holds back the end of the restoration
        self._has_completed = False  # at a time when it did not
        self._said = 0, False  # both, as a broker knows them
        self._has_announced = False

    def _answer(self, call: _Call[_T]) -> _T:
        answer = None if call.is_raw or call.method.startswith("_") else getattr(self, call.method, None)
        if answer is None:
            raise NoBrokerError(self._session.socket, f"{call.method} needs a broker: {self._why}", is_absent=True)
        params = {key: self._placed(value) if key in _NAMED else value for key, value in call.params.items()}
        self._session._frame(call.method, params, 0)  # refuses what could not be sent
        try:
            answered = answer(**call.params)
        except (TypeError, KeyError, ValueError, AttributeError) as error:  # of a notification that the program writes
            if isinstance(error, RestorationError):
                raise
            raise self._refusal(
                -32602, "invalidParams", f"the parameters of {call.method} are invalid: {error}",
                "Read the page of the method.") from error
        result = call.finish(answered)
        if isinstance(result, _Object):
            self._number(result, result.handle)
        return result

    # Objects

    def _number(self, thing: _Object, new: Optional[int] = None) -> int:
        """The handle that the object has without a broker. States refer to it by that also later."""
        number = self._numbers.get(thing)
        if number is None:
            number = self._numbers[thing] = next(self._count) if new is None else new
            self._things[number] = thing
        return number

    def _drop(self, thing: _Object) -> None:
        """The object is no longer registered."""
        self._states.pop(thing, None)
        self._things.pop(self._numbers.pop(thing, 0), None)

    def _awaits(self, target: Any) -> bool:
        """Whether a broker that is being told has still to be told of an object."""
        return not self._is_told and isinstance(target, _Object) and target in self._session._forgotten

    def _placed(self, target: Any) -> Any:
        """References with paths of objects that have no handle yet."""
        if isinstance(target, (list, tuple)):
            return [self._placed(each) for each in target]
        return target.path or 0 if self._awaits(target) else target

    def _awaited(self, call: _Call[Any]) -> List[_Object]:
        """What a call names that a broker has still to be told of, with what that is below, parents first."""
        values: List[Any] = [call.params.get(key) for key in _NAMED]
        named = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
        awaited = [each for each in named if self._awaits(each)]
        above = {each.path[:length] for each in awaited if each.path for length in range(1, len(each.path))}
        things = awaited and [each for each in self._session._forgotten if each in awaited or each.path in above]
        return sorted(things, key=lambda each: each._above())

    def _everything(self) -> List[Any]:
        return [*self._session._forgotten, *self._session.objects]  # in this order: no object is between them

    def _thing(self, target: Any) -> Optional[_Object]:
        """An object of the session by itself, its handle or its path."""
        found: Optional[_Object] = self._session._found(target)
        if found is None and isinstance(target, _Object):
            raise _unknown(target)
        return found

    def _below(self, parent: Any, identifier: Optional[str], position: Optional[int]) -> Optional[Tuple[str, ...]]:
        """A path; None for what is excluded. Whether somebody has the parent is not known."""
        thing = self._thing(parent) if parent else None
        if thing is None and isinstance(parent, int):
            raise _unknown(f"the object {parent}")
        above = thing.path if thing else () if parent is None else tuple(_referred(parent))
        if identifier is None or above is None:
            return None
        return (*above, identifier if position is None else f"{identifier}#{position}")

    def registerObjectForStateRestoration(
        self, restorationIdentifier: Optional[str] = None, restorationParent: Any = None,
        position: Optional[int] = None, **_: Any,
    ) -> Dict[str, Any]:
        path = self._below(restorationParent, restorationIdentifier, position)
        found = path and self._session.object_at(path)
        return {
            "object": found.handle if found else next(self._count), "path": path, "included": path is not None,
            "restoration": {"state": "available" if found in self._states and found else "none"},
            "existing": bool(found),
        }

    def unregisterObject(self, object: Any) -> Dict[str, Any]:
        thing = self._thing(object)
        path = thing.path if thing else object
        if path:
            self._leave(path, thing)
        if thing:
            thing._end()
        return {}

    def _leave(self, path: Sequence[str], thing: Optional[_Object]) -> None:
        self._removed.pop(tuple(path), None)  # the order is that of the program
        self._removed[tuple(path)] = {**thing._registration, "restorationParent": None} if thing else None
        if len(self._removed) > _REMOVED_MAX:
            del self._removed[next(iter(self._removed))]

    def _note(self, before: List[Tuple[_Object, Path, Dict[str, Any]]]) -> None:
        """Notes what a callback has left at the broker that is told: if that goes, the next one is told as well.

        What is below and awaits that broker has moved as well. If nothing is above it now, the path above is removed
        again when it is registered.
        """
        for thing, left, registration in before:
            path, place = tuple(left), None if thing._is_gone else thing.path
            if place == path:
                continue
            below = [each for each in self._session._forgotten if (each.path or ())[:len(path)] == path]
            (self._removed if below and not place else self._left)[path] = registration
            if place:
                self._carry({each: (*place, *each.path[len(path):]) for each in below})

    def _places(self) -> List[Tuple[_Object, Path, Dict[str, Any]]]:
        """What `_note` compares with."""
        return [
            (each, each.path, {**each._registration, "restorationParent": None})
            for each in self._session.objects if each.path]

    def _place(self, *places: Tuple[_Object, Optional[Tuple[str, ...]]]) -> None:
        """Moves objects with what is below them. What a broker has saved there is left behind."""
        moves = {
            each: (*path, *each.path[len(thing.path):])
            for thing, path in places if path and thing.path and path != thing.path
            for each in self._everything() if (each.path or ())[:len(thing.path)] == thing.path}
        for other in self._everything():
            if other.path in moves.values() and other not in moves:
                raise self._refusal(
                    -32003, "duplicatePath", f"another object is {'/'.join(other.path)}", "Unregister it first.")
        self._carry(moves)

    def _carry(self, moves: Mapping[_Object, Tuple[str, ...]]) -> None:
        for each in sorted(moves, key=lambda each: -each._above()):
            self._leave(each.path or (), each)
            each._moved(moves[each])
            if each in self._states:  # at that path the broker may have newer ones of another object (R15)
                self._states[each].more["revision"] = next(self._session._revisions)

    @staticmethod
    def _refusal(code: int, kind: str, message: str, hint: str) -> BrokerError:
        return BrokerError({"code": code, "message": message, "data": {"kind": kind, "hint": hint}})

    def setRestorationParent(self, object: Any, restorationParent: Any, **_: Any) -> Dict[str, Any]:
        own = object._registration
        path = self._below(restorationParent, own.get("restorationIdentifier"), own.get("position"))
        self._place((object, path))
        return {"path": path}

    def setRestorationIdentifier(
        self, object: Any, restorationIdentifier: Optional[str], position: Optional[int] = None, **_: Any,
    ) -> Dict[str, Any]:
        parent = object.path[:-1] or None if object.path else object._registration.get("restorationParent")
        path = self._below(parent, restorationIdentifier, position)
        self._place((object, path))
        return {"path": path, "included": path is not None}

    def setChildren(self, object: Any, children: Sequence[Any]) -> Dict[str, Any]:
        things = [self._thing(child) for child in children]
        paths = []
        for position, (child, thing) in enumerate(zip(children, things)):
            identifier = thing._registration.get("restorationIdentifier") if thing else child[-1].partition("#")[0]
            paths.append(self._below(object, identifier, position))
        self._place(*((thing, path) for thing, path in zip(things, paths) if thing))
        return {"paths": paths}

    # States

    def _owner(self, target: Any) -> Tuple[Optional[_Object], bool]:
        """The object of a state, or None if that is the application's own, and whether it is of this session."""
        thing = None if _is_own(target) else self._session._found(target)
        return thing, thing is not None or _is_own(target)

    def encodeRestorableState(self, object: Any, state: Any, **more: Any) -> Dict[str, Any]:
        thing, is_here = self._owner(object)
        if not is_here:
            raise NoBrokerError(self._session.socket, f"{object!r} is not of this session: {self._why}", is_absent=True)
        text = _text(state)
        if "$restorable" in text:  # by number: paths and handles may change
            text = _text(self._referring(_decoded(text, decimal.Decimal), self._by_number))
        self._states[thing] = _Kept(text, {"elements": copy.deepcopy(more.pop("elements", [])), **more})
        return {"isKept": True}

    def _renew(self, is_done: bool, object: Any, **more: Any) -> None:
        """The program has given the broker a newer state, also past memory: what is in memory is not to follow.

        - is_done: the broker has it. Otherwise it may have it.
        """
        with self._session._guard:  # another thread's push is newer, and not done
            thing, is_here = self._owner(object)
            if not is_here or self._is_told and thing not in self._states:
                return
            self.encodeRestorableState(object, **more)
            self._states[thing].is_done = is_done
            self._clear()

    def _clear(self) -> None:
        """Forgets what a broker has that was told everything."""
        with self._session._guard:
            if not self._is_told:
                return
            self._states = {thing: kept for thing, kept in self._states.items() if not kept.is_done}

    def _keeps(self, call: _Call[Any]) -> bool:
        """Whether a push, or a decode of what was pushed, needs no broker: none has been told everything."""
        target = call.params.get("object")
        if self._is_told or call.is_raw or not (isinstance(target, _Object) or _is_own(target)):
            return False
        if call.method == "decodeRestorableState":
            return (target or None) in self._states
        return call.method == "encodeRestorableState"

    def _changes(self, call: _Call[Any]) -> bool:
        """Whether a callback changes only an object that the broker will be told of."""
        is_one = call.method in _CHANGES and call.method != "setChildren" and not call.is_raw
        return is_one and self._awaits(call.params["object"])

    def _has(self, call: _Call[Any]) -> bool:
        """Whether the answer to a decode is here: no broker has the state."""
        if call.method != "decodeRestorableState" or call.is_raw:
            return False
        target = call.params["object"]
        kept = self._states.get(target or None) if isinstance(target, _Object) or _is_own(target) else None
        return kept is not None and not kept.is_done

    def decodeRestorableState(self, object: Any) -> Dict[str, Any]:
        thing, is_here = self._owner(object)
        kept = self._states.get(thing)
        if kept is None or not is_here:
            return {"status": "none"}
        elements = [{**each, "resolved": False} for each in kept.more["elements"]]
        state = self._state(kept, _real, lambda thing: {"$restorable": thing.path, "object": thing._handle})
        return {"status": "available", "state": state, "elements": elements}

    def _by_number(self, target: Any) -> Any:
        session = self._session
        if isinstance(target, list):  # what is not of this session stays
            things = [each for each in self._everything() if each.path == tuple(target)]
            return {"$restorable": self._number(things[0])} if things else None
        if not isinstance(target, int) or target < 0:
            return None
        thing = session._objects.get(target)
        return {"$restorable": self._number(thing) if thing else None}

    def _state(self, kept: _Kept, number: Callable[[str], Any], refer: Callable[[_Object], Any]) -> Any:
        """What was pushed. Objects in it may have moved; a reference to what is gone leads to nothing."""
        def read(target: Any) -> Any:
            if not isinstance(target, int):
                return None
            thing = self._things.get(target)
            return refer(thing) if thing is not None and thing.path else {"$restorable": None}

        return self._referring(_decoded(kept.text, number), read)

    def _referring(self, value: Any, read: Callable[[Any], Any]) -> Any:
        """A state with other references, where `read` gives one for what is referred to."""
        if isinstance(value, list):
            return [self._referring(each, read) for each in value]
        if not isinstance(value, dict) or "$literal" in value:
            return value
        if "$restorable" in value:
            return read(value["$restorable"]) or value
        return {key: self._referring(each, read) for key, each in value.items()}

    def _nothing(self, **_: Any) -> Dict[str, Any]:
        return {}

    invalidateRestorableState = registerRestorationClass = registerDataSource = goodbye = _nothing

    def completeStateRestoration(self) -> Dict[str, Any]:
        self._held = max(0, self._held - 1)
        self._has_completed = self._has_completed or not self._held
        return {"pending": min(1, self._held)}

    def extendStateRestoration(self) -> Dict[str, Any]:
        self._held += 1
        return {"pending": 1}

    def restoreApplicationState(self, **_: Any) -> Dict[str, Any]:
        return {"restored": [], "skipped": [], "absent": [], "milliseconds": 0}

    def saveApplicationState(self, **_: Any) -> Dict[str, Any]:
        return {
            "saved": False, "reason": "noBroker", "generation": None, "objects": 0, "bytes": 0, "stale": [],
            "excluded": [], "milliseconds": 0,
        }

    # When a broker is there. What is done is forgotten, so that only the rest is repeated after a lost connection.

    def _removals(self, are_last: bool) -> _Answering[None]:
        """Removes the states of paths that were left, as their owner, so that objects of others below stay.

        - are_last: what can be is registered. A path stays that has other objects of this session below it, which
          would have no parent otherwise.
        """
        session = self._session
        paths = {each.path for each in (*([] if are_last else session.objects), *session._forgotten) if each.path}
        above = {path[:length] for path in paths for length in range(1, len(path))} - paths
        for path in sorted(self._removed, key=len, reverse=are_last):
            if all(each.path != path for each in session.objects):  # otherwise what one saves takes the place
                target, registration = list(path), self._removed[path]
                try:
                    if registration is not None:
                        target = yield self._claim(target, registration)
                    if path in above:
                        continue
                    yield _Call("unregisterObject", {"object": target}, _nothing, True)
                except (BrokerError, CallTimedOutError, DiscardedError) as error:
                    session._raise_if_gone(error)
                    if _is_of_broker(error):
                        session._complain(f"{'/'.join(path)} is removed later: {error}", logging.ERROR)
                        continue
                    _log.debug("%s could not be removed: %s", "/".join(path), error)  # nothing is there, or another's
                self._left[path] = self._removed[path]
            self._removed.pop(path, None)

    def _lacks_parent(self, path: Sequence[str], error: Exception) -> bool:
        """Whether a path has no parent because that was left, and the broker has refused it."""
        above = any(tuple(path[:length]) in self._removed for length in range(1, len(path)))
        return above and getattr(error, "kind", "") == "unknownParent"

    def _claim(self, path: List[str], registration: Mapping[str, Any]) -> _Call[Any]:
        owned = {**registration, "restorationParent": path[:-1] or None, "fresh": None, "takeOver": None}
        owned["awaitParentMilliseconds"] = None
        return _Call("registerObjectForStateRestoration", _present(**owned), lambda result: result["object"], True)

    def _pushes(self) -> _Answering[None]:
        """Saves the pushed states, and has the broker ask for those of the other objects."""
        session = self._session
        if session.delegate is not None and None in self._states:
            # Its own state is early for a delegate that has not decoded it (R19).
            yield from session._repeat(session._decode([]), "the application's state could not be read")
        tried: Dict[Optional[_Object], _Kept] = {}
        if (yield from self._push_states(tried)):
            return
        if not self._has_announced:
            for each in session.objects:
                if each._callbacks.get("encode"):
                    yield from session._repeat(each._invalidate(), f"the state of {each!r} could not be announced")
            self._has_announced = not session._forgotten
        while True:
            held, has_completed = self._said
            completes = held > self._held or not held and self._has_completed and not has_completed
            if not completes and held == self._held:
                break
            if not completes:  # it may take effect without an answer, and one complete too many does nothing
                self._said = held + 1, has_completed
            again = session._call("completeStateRestoration" if completes else "extendStateRestoration", {}, _pending)
            yield from session._repeat(again, f"{again.method} could not be said again")
            if completes:
                self._said = max(0, held - 1), has_completed or held <= 1
        with session._guard:
            self._is_told = True
        self._left.clear()
        yield from self._push_states(tried)  # what was pushed meanwhile
        self._clear()

    def _push_states(self, tried: Dict[Optional[_Object], _Kept]) -> _Answering[bool]:
        """Saves those that were not tried yet; whether the broker answers nothing."""
        session = self._session
        for thing in list(self._states):
            kept = self._states.get(thing)  # by now, what somebody may have renewed
            if kept is None or kept.is_done or tried.get(thing) is kept or thing in session._forgotten:
                continue
            tried[thing] = kept
            state = self._state(kept, decimal.Decimal, _special)  # with all digits
            params = {**_present(**kept.more), "object": [] if thing is None else thing, "state": state}
            push = _Call("encodeRestorableState", params, functools.partial(self._saved, thing), True)
            name = "the application's state" if thing is None else repr(thing)
            error = yield from session._repeat(push, f"{name} in memory could not be saved")
            if self._is_told and isinstance(error, CallTimedOutError):  # each would take as long
                return True
            # Another process may have registered then what is referred to.
            kept.is_done = error is None or not (
                _is_of_broker(error) or getattr(error, "kind", "") == "invalidReference")
        return False

    def _saved(self, thing: Optional[_Object], result: Mapping[str, Any]) -> None:
        if thing is not None and not result.get("discarded", False):
            thing._is_fresh = False

    def _start_over(self) -> None:
        """The broker has gone before it was told everything: the next one is told everything."""
        self._has_announced = False
        self._removed, self._left = {**self._left, **self._removed}, {}
        for thing, kept in list(self._states.items()):
            kept.is_done = False
            if thing is not None:
                thing._is_fresh = True

    def _take_back(self) -> None:
        """Until a broker comes, none is told anything."""
        session = self._session
        with session._guard:
            things, session._objects, session._forgotten = [*session.objects, *session._forgotten], {}, []
            for thing in things:
                thing._handle, thing._refusal = self._number(thing), None
                session._objects[thing._handle] = thing


#: Sessions that this process has connected.
_sessions: "weakref.WeakValueDictionary[int, _Session]" = weakref.WeakValueDictionary()


def _connected_sessions() -> "List[_Session]":
    """All at once: another thread may open one meanwhile."""
    return [session for session in (each() for each in _sessions.valuerefs()) if session is not None]


def _after_fork() -> None:
    for session in _connected_sessions():
        session._leave_to_parent()
    _sessions.clear()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _at_exit() -> None:
    # An exception that ends the program is a failure, which may be that of a state (R31). A prompt has shown others.
    is_failing = isinstance(getattr(sys, "last_value", None), Exception) and not hasattr(sys, "ps1")
    for session in _connected_sessions():
        if isinstance(session, Session):
            session._push_last()
        session._leave_behind(is_failing)


_F = TypeVar("_F", bound=Callable[..., Any])


def _suggesting(function: _F) -> _F:
    """Of an argument that a function does not have, tells the one that may be meant."""
    known = inspect.signature(function).parameters.keys()

    @functools.wraps(function)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        for name in named.keys() - known:
            meant = "".join(f"; did you mean {each}=?" for each in difflib.get_close_matches(name, known, 1))
            raise TypeError(f"{type(self).__name__}() has no argument {name}={meant}")
        return function(self, *arguments, **named)

    return cast(_F, checked)


class _Session:
    """The bookkeeping of a session, without I/O: generators yield the calls they need."""

    _object_type: Type[Any] = _Object
    _serves = False
    _connection: Optional[sockets.socket] = None

    @_suggesting
    def __init__(
        self,
        application: str,
        *,
        process: Optional[str] = None,
        instance: Optional[str] = None,
        affinity: Optional[str] = None,
        socket: Union[str, "os.PathLike[str]", None] = None,
        serving: Optional[bool] = None,
        delegate: Optional[Delegate] = None,
        token: Optional[str] = None,
        leave: Leaving = "restart",
        timeout: float = 30,
        patience: float = 10,
        without_broker: Literal["memory", "fails"] = "memory",
        take_over: bool = False,
        bundle_version: Optional[str] = None,
        user_interface_idiom: Optional[int] = None,
        storyboard: Optional[Mapping[str, str]] = None,
        message_bytes_max: Optional[int] = None,
        aliases: Optional[Mapping[str, Mapping[str, str]]] = None,
        protocol_version: Optional[int] = None,
        on_notification: Optional[Callable[[str, Dict[str, Any]], Any]] = None,
        on_reconnected: Optional[Callable[[bool], Any]] = None,
    ) -> None:
        """
        - instance: the application's instance, or `auto`: the one used last of those that nobody uses.
        - affinity: where the user works with it, such as a directory: `auto` prefers the instance that had the same.
        - serving: the broker may call this process for states to save, and to restore them. By default only an
          AsyncSession serves. A Session that serves must call `serve` whenever it does nothing else.
        - delegate: decides for the application; implies `serving`.
        - token: of the session to resume.
        - leave: the reason of `goodbye` at the end of a `with` block. One that an exception ends, such as the
          KeyboardInterrupt of a signal, removes nothing.
        - timeout: seconds an answer may take, besides the call's own deadline.
        - patience: seconds to wait for a new broker after a loss; 0 raises ConnectionLostError instead.
        - without_broker: what happens if no broker runs at the start. `memory`: the session works as if nothing was
          saved, keeps states in memory, and saves them when a broker comes. `fails`: NoBrokerError.
        - take_over: if another host has the application, take it from there (R36); its sessions there end.
        - on_notification: gets the name and parameters of each notification.
        - on_reconnected: gets True if the session was resumed, and False if the broker had forgotten it, or is the
          first one, and everything was registered again. The descriptor has changed.
        - storyboard: the unit that starts the process again, by default `{"unit": $RESTORATION_UNIT}` if that is set.
        - the others: as in `initialize` of the protocol.
        """
        if not isinstance(application, str):
            raise TypeError(f"an application is named by a string, not by {application!r}")
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[A-Za-z0-9][A-Za-z0-9._-]{0,47})?", application):
            raise ValueError(
                f"{application!r} is not an application name; use letters, digits, '.', '_' and '-', at most 128, "
                "optionally followed by @instance, and begin with a letter or digit")
        if leave not in get_args(Leaving):
            raise ValueError(f"leave= takes {', '.join(get_args(Leaving))}, not {leave!r}")
        if without_broker not in ("memory", "fails"):
            raise ValueError(f"without_broker= takes memory or fails, not {without_broker!r}")
        _seconds("timeout", timeout, 0)
        _seconds("patience", patience, 0)
        self.application = application
        if not isinstance(socket, (str, os.PathLike, type(None))):
            raise TypeError(f"socket= takes a path, not {socket!r}")
        self.socket: str = os.fspath(socket) if socket else default_socket()
        self.token = token
        self.leave: Leaving = leave
        self.timeout: float = timeout
        self.patience: float = patience
        self.without_broker = without_broker
        self.delegate = delegate
        self.serving: bool = (self._serves if serving is None else serving) or delegate is not None
        self.on_notification = on_notification
        self.on_reconnected = on_reconnected
        #: `state`, `reason`, `generation`, `archive`, `coder`: what there is to restore.
        self.restoration: Dict[str, Any] = {}
        self.limits: Dict[str, int] = {}
        self.broker: Dict[str, Any] = {}
        unit = os.environ.get("RESTORATION_UNIT")
        served = (_SERVED if self.serving else []) + (_DELEGATED if delegate is not None else [])
        self._options = _present(
            process=process, instance=instance, affinity=affinity, bundleVersion=bundle_version,
            userInterfaceIdiom=user_interface_idiom,
            storyboard={"unit": unit} if unit and storyboard is None else storyboard, messageBytesMax=message_bytes_max,
            aliases=aliases, protocolVersion=protocol_version, delegate=delegate is not None or None,
            serves=_NOTIFIED + served, takeOver=take_over or None)
        self._objects: Dict[int, Any] = {}
        self._forgotten: List[Any] = []  # objects to register again, parents first
        self._classes: Dict[str, Tuple[Callable[[Wanted], Any], bool]] = {}
        self._sources: List[Tuple[Any, Any]] = []
        self._early: Dict[int, _Call[Any]] = {}  # registrations that have not returned, by their `id`
        self._lines = _Lines()
        self._ids = itertools.count(1)
        # One counter for all objects: it grows for each path, even if objects are moved or registered again. If another
        # process began the session, it may have used small numbers.
        self._revisions = itertools.count(1 if token is None else time.time_ns() // 1000)
        self._marks: Dict[_Object, None] = {}  # objects whose attributes were set since they were pushed
        self._pause = 0.0  # before attributes are pushed again that could not be
        self._complaints: Set[str] = set()  # that were logged over this connection
        self._extends = False
        self._ended = False
        self._is_left = False  # it has ended, but no goodbye was said, nor was it closed
        self._loss: Optional[Mapping[str, Any]] = None  # another host has the application
        self._is_telling = False  # a broker what it does not remember
        self._is_ending = False  # nothing waits for other processes then
        self._forked = False
        self._has_opened = False
        self._is_alone = False  # no broker has come yet
        self._memory: Optional[_Memory] = None  # of that time, until all of it is saved
        self._guard = threading.RLock()  # held while memory answers, and never while a broker does
        self._tries = _pauses(5)  # nothing waits for them
        self._prepare()

    def _prepare(self) -> None:
        """Sets up what only this kind of session has."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # it may be half made, and the interpreter may be ending
            self._leave_behind()

    def _leave_behind(self, is_failing: bool = False) -> None:
        """The program ends by itself, or has dropped the session: who has not closed it has not crashed (R30)."""
        is_open = not self._ended or self._is_left
        self._ended, self._is_left = True, False
        if is_open and not is_failing and self._has_opened:
            with contextlib.suppress(OSError, RestorationError):
                self._send_farewell({"reason": self._leave_keeping()})

    def _send_farewell(self, params: Dict[str, Any]) -> None:
        """Says goodbye, without waiting for more than a second."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.application} on {self.socket}>"

    @property
    def objects(self) -> List[Any]:
        return list(self._objects.values())

    def object_at(self, path: Union[str, Path]) -> Any:
        """The object of this session at that path; None if it has none there."""
        wanted = (path,) if isinstance(path, str) else tuple(path)
        return next((each for each in (*self._forgotten, *self.objects) if each.path == wanted), None)

    def _found(self, target: Any) -> Any:
        """An object of this session by itself, its handle or its path; None for what it does not have."""
        if isinstance(target, (str, list, tuple)):
            return self.object_at(target)
        if isinstance(target, _Object) and target in self._forgotten:
            return target
        handle = target._handle if isinstance(target, _Object) else target
        found = self._objects.get(handle) if isinstance(handle, int) else None
        return found if target is found or target is handle else None

    def _saved(self, target: Any, entry: Mapping[str, Any]) -> Saved:
        return _saved(entry, self._path_of(target), self)

    @staticmethod
    def _path_of(target: Any) -> Optional[Path]:
        """That of an object or a path; None of a handle, which only calls of the program's own have."""
        path: Any = target.path if isinstance(target, _Object) else target
        return path if isinstance(path, (list, tuple)) else None

    def _reopen(self, path: Union[str, Path, None]) -> _Call[Dict[str, Any]]:
        return _Call("reopenObject", _present(path=[path] if isinstance(path, str) else path), _same, False)

    def _forget(self, path: Union[str, Path]) -> _Call[None]:
        return _Call("unregisterObject", {"object": [path] if isinstance(path, str) else list(path)}, _nothing, False)

    # Calls

    def _call(
        self, method: str, params: Optional[Mapping[str, Any]], finish: Callable[[Any], _T], seconds: float = 0,
    ) -> _Call[_T]:
        return _Call(method, dict(params or {}), finish, method in _REPEATABLE, seconds)

    def _raw(
        self, method: str, params: Optional[Mapping[str, Any]], seconds: float, repeatable: Optional[bool],
    ) -> _Call[Any]:
        """A call that the program has written."""
        def finish(result: Any) -> Any:
            if method == "encodeRestorableState":
                self._encoded(call.params, result)
            return result

        call = self._call(method, params, finish, seconds)
        call.is_raw = True
        call.repeatable = call.repeatable if repeatable is None else repeatable
        return call

    def _initialize(self) -> _Call[bool]:
        """Opens or resumes the session; returns whether it is the same one."""
        params = {"application": self.application, **self._options}
        if self.token is not None:
            params["session"] = self.token
            params.pop("instance", None)

        def finish(result: Mapping[str, Any]) -> bool:
            same = self.token in (None, result["session"])
            self.application, self.token = result["application"], result["session"]
            self.restoration, self.broker = _object(result.get("restoration")), _object(result.get("broker"))
            self.limits = {key: each for key, each in _object(result.get("limits")).items() if isinstance(each, int)}
            for once in ("instance", "takeOver"):
                self._options.pop(once, None)
            if self._has_opened:
                told = "the session continues" if same else "the session is new, and everything is registered again"
                _log.log(logging.INFO if same else logging.WARNING, "connected to %s again; %s", self.socket, told)
            self._has_opened = True
            self._complaints.clear()
            if not same and self._memory is not None and not self._memory._is_told:
                self._memory._said = 0, False
            return same

        return _Call("initialize", params, finish, False)

    # Without a broker

    def _absence(self, error: RestorationError) -> NoBrokerError:
        """Why no broker is there at the start; raises what is something else. One that is ending is gone soon."""
        if isinstance(error, NoBrokerError):
            return error
        is_ending = getattr(error, "_is_broker", False) or getattr(error, "kind", "") == "shuttingDown"
        if not is_ending or self.without_broker == "fails" or self.token is not None:
            raise error
        return NoBrokerError(self.socket, f"the broker on {self.socket} is ending; {_START}", is_absent=True)

    def _gap(self, error: RestorationError) -> float:
        """Seconds until it counts that no broker is there: where one was, it may be starting again."""
        if not isinstance(error, NoBrokerError):
            return min(self.patience, 1)
        if self.without_broker == "fails" or self.token is not None or not error.is_absent:
            return 0
        directory = os.path.dirname(self.socket)
        # A socket that refuses is left of a broker that was killed. One that ends in order leaves its directory.
        was_there = os.path.basename(directory) == "restorationd" and os.path.isdir(directory)
        return min(self.patience, 1) if was_there or os.path.exists(self.socket) else 0

    def _begin_alone(self, error: NoBrokerError) -> None:
        if self.without_broker == "fails" or self.token is not None or not error.is_absent:
            raise error
        self._is_alone, self._memory = True, _Memory(self, error)
        self.restoration = {"state": "none", "reason": "pristine"}
        _log.warning("the states of %s stay in memory until a broker comes: %s", self.application, error)

    def _still_kept(self, error: Exception) -> None:
        """An attempt to save the states from memory has failed."""
        reason = str(error)
        if not isinstance(error, (ConnectionError, TimeoutError)) and reason not in self._complaints:
            self._complaints.add(reason)
            _log.error("the states of %s stay in memory: %s", self.application, reason)

    def _arrive(self) -> None:
        """A broker has opened the session."""
        self._is_alone = False
        _log.info("a broker has come on %s; saving the states from memory there", self.socket)

    def _stay_alone(self) -> None:
        """After a broker that has gone before it was told everything."""
        if self._memory is not None and self._doubts() and not self._ended:
            self._is_alone, self._tries = True, _pauses(5)
            self._memory._take_back()

    def _remembers(self, call: _Call[Any]) -> bool:
        """Whether memory answers a call: always without a broker, and later if it has what no broker has taken yet."""
        memory = self._memory
        return self._is_alone or memory is not None and (memory._has(call) or memory._changes(call))

    def _at_once(self, call: _Call[_T]) -> List[_T]:
        """The answer of memory, if it needs neither a broker nor the thread that is telling one."""
        self._check()
        memory = self._memory
        if memory is None:
            return []
        with self._guard:
            return [memory._answer(call)] if memory._keeps(call) else []

    def _tell_named(self, call: _Call[Any]) -> _Answering[None]:
        """Tells the broker before all else of the objects that a callback's call names."""
        for thing in self._memory._awaited(call) if self._memory else ():
            if (yield self._again(thing)) and thing in self._forgotten:
                self._forgotten.remove(thing)

    def _doubts(self) -> bool:
        """Whether a broker that fails a call does not count: it has not been told everything."""
        return self._memory is not None and not self._memory._is_told and not self._is_alone

    def _remember(self, call: _Call[_T]) -> _T:
        assert self._memory is not None
        with self._guard:
            return self._memory._answer(call)

    def _register(self, identifier: Optional[str], parent: Any, options: _Registration) -> _Call[Any]:
        callbacks: Dict[str, Any] = {name: options.get(name) for name in ("encode", "decode", "finished")}
        target = options.get("target")
        if not self.serving and any(callbacks.values()):
            raise ValueError("callbacks are called only in a Session with serving=True")
        if target is None:  # that of bound methods
            target = next((each.__self__ for each in callbacks.values() if inspect.ismethod(each)), None)
        if (callbacks["encode"] or callbacks["decode"]) and _attributes(target):
            raise ValueError("the target's restorable attributes are its state; leave out encode= and decode=")
        for each in _attributes(target):  # before something is saved that could not be restored
            with _telling((identifier or type(target).__qualname__,), each.name):
                _within(each.name, lambda: _examine(each.hint, set()))
        wait = options.get("wait", 10)
        awaited = 0 if wait is None or parent is None else _seconds("wait", wait, 0, 86_400)
        registration = {
            "restorationIdentifier": identifier, "restorationParent": parent, "kind": options.get("kind", "object"),
            "objectClass": options.get("object_class"), "restorationClass": options.get("restoration_class"),
            "storyboard": options.get("storyboard"), "position": options.get("position"),
            "awaitParentMilliseconds": round(awaited * 1000) or None, "takeOver": options.get("take_over") or None,
            "confidential": options.get("confidential"), "keep": options.get("keep"),
            "fresh": options.get("fresh") or None,
        }

        def finish(result: Mapping[str, Any]) -> Any:
            found = self._objects.get(result["object"])
            if found is None:
                found = self._objects[result["object"]] = self._object_type(self, registration, result)
            elif found._belongs(callbacks, target):
                found._registration = registration
                found._take(result)
            else:
                raise DuplicateObjectError(
                    f"this process has registered another object as {found!r}; "
                    "give one of them another identifier or position, or unregister the first one")
            found._serve(callbacks, target)
            if found.restoration == "quarantined" and not found.existing:
                found._tell_withheld()
            call.registered = found
            return found

        call = self._call("registerObjectForStateRestoration", _present(**registration), finish, awaited)
        return call

    @contextlib.contextmanager
    def _registering(self, calls: Sequence[_Call[Any]]) -> Iterator[None]:
        """Until this ends the program does not have what is registered, so that nothing may be asked of it."""
        self._early.update((id(call), call) for call in calls)
        try:
            yield
        finally:
            self._has_returned(calls)

    def _has_returned(self, calls: Sequence[_Call[Any]]) -> None:
        for call in calls:
            del self._early[id(call)]

    def _opening(self) -> ContextManager[None]:
        """Until this ends the program does not have the session, as the target of a `with` statement."""
        return self._registering([_Call("initialize", {}, _nothing, False, registered=self)])

    def _is_early(self, message: Mapping[str, Any]) -> bool:
        """Whether a message is about an object, or a session, that the program does not have yet."""
        registered = [call.registered for call in self._early.values() if call.registered is not None]
        if self in registered:
            return True
        early = [each._handle for each in registered]
        params = _object(message.get("params"))
        objects = params.get("objects")
        named = [*(objects if isinstance(objects, list) else []), params.get("object")]
        return any(_object(each).get("object", each) in early for each in named if each is not None)

    def _messages(self, lines: _Lines) -> Iterator[Optional[Dict[str, Any]]]:
        """Those to take now; None for a line that is none.

        An early one waits, and so do those that follow it, except answers.
        """
        while True:
            if lines.held and not self._is_early(lines.held[0]):
                yield lines.held.popleft()
                continue
            line = lines.next()
            if line is None:
                return
            message = _message(line)
            if message is not None and "method" in message and (lines.held or self._is_early(message)):
                lines.held.append(message)
            else:
                yield message

    def _decode(self, target: Any) -> _Call[Saved]:
        return _Call("decodeRestorableState", {"object": target}, functools.partial(self._saved, target), True)

    def _encode(self, target: Any, state: State, elements: Elements = ()) -> _Call[bool]:
        state = _stated(state, self._path_of(target))
        params: Dict[str, Any] = {"object": target, "state": state, "revision": next(self._revisions)}
        if elements:
            params["elements"] = elements
        return _Call("encodeRestorableState", params, functools.partial(self._encoded, params), True)

    def _encoded(self, params: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        if result.get("discarded", False):
            return False
        if "isKept" not in result:
            thing = self._found(params.get("object"))
            if thing is not None:
                thing._is_fresh = False  # what is saved is its own
                given = {name: params[name] for name in ("state", "elements") if name in params}
                thing._unsaved, thing._is_wanted = None if result.get("included", True) else given, False
            self._renew("encodeRestorableState", params, is_done=True)
        return True

    # Attributes

    def _mark(self, thing: _Object) -> None:
        if not self._ended:
            self._marks[thing] = None
            self._wake()

    def _wake(self) -> None:
        """Has the marked objects pushed at the end of this turn, or after a pause."""
        raise NotImplementedError

    def _pushes(self, every: bool = True) -> _Answering[None]:
        """Encodes the objects whose attributes have changed, and raises the first error at the end.

        - every: also unmarked ones, because a list in a variable may be changed at any time.
        """
        failure: Optional[Exception] = None
        again: List[_Object] = []
        try:
            for thing in list(self._objects.values() if every else self._marks):
                self._marks.pop(thing, None)  # before the values are read: whoever sets one now marks it again
                try:
                    again.append(thing)
                    yield from self._push(thing)
                    again.pop()
                except Exception as error:
                    failure = failure or error
                    if isinstance(error, SessionEndedError) or not _is_passing(error):
                        again.pop()
                    if isinstance(error, (ConnectionError, CallTimedOutError)):
                        break
        finally:
            self._pause = min(2 * self._pause + 0.1, 5) if again else 0
            for thing in again:
                self._mark(thing)
        if failure:
            raise failure

    def _push(self, thing: _Object) -> _Answering[None]:
        if thing._is_wanted and thing._unsaved is not None:
            params = {"object": thing, **thing._unsaved, "revision": next(self._revisions)}
            yield _Call("encodeRestorableState", params, functools.partial(self._encoded, params), True)
            return
        try:
            values, failure = thing._changed()
            text = _text(values)
        except Exception as error:
            raise InvalidStateError(f"{thing!r} cannot be saved: {error}", thing.path) from error
        if values is not None and thing._handle in self._objects:
            thing._pushed = None  # it is not known until the answer
            yield self._encode(thing, values)
            thing._has_state = True
            thing._pushed = thing._pushed or text  # unless it was pushed meanwhile, over a new connection
        if failure:
            raise failure

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        """For pushes that the program has not asked for: what prevents them is logged, once for each reason."""
        try:
            yield
        except Exception as error:
            reason = str(error) or _described(error)
            if not self._ended and reason not in self._complaints:
                self._complaints.add(reason)
                _log.error("attributes are not saved: %s", reason)

    def _has_attributes(self) -> bool:
        return any(each._is_bound() for each in self.objects)

    def _task(self) -> Any:
        """Who calls, apart from the thread."""

    def _save(self, reason: Optional[str], deadline: Optional[float], progress_token: Any) -> _Call[Dict[str, Any]]:
        if _answering.get() == (self, self._task()):
            raise RestorationError("save() in a callback would wait for the callback itself; call it when that is over")
        milliseconds = _milliseconds("deadline", deadline, 600)
        params = _present(reason=reason, deadlineMilliseconds=milliseconds, progressToken=progress_token)
        return self._call("saveApplicationState", params, _same, deadline or 5)

    def _restore(self, deadline: Optional[float], progress_token: Any, objects: Any) -> _Call[Dict[str, Any]]:
        milliseconds = _milliseconds("deadline", deadline, 3_600)
        wanted = None if objects is None else [[each] if isinstance(each, str) else each for each in objects]
        params = _present(deadlineMilliseconds=milliseconds, progressToken=progress_token, objects=wanted)
        return self._call("restoreApplicationState", params, _same, deadline or 10)

    def _extend(self) -> _Call[int]:
        self._extends = True
        return self._call("extendStateRestoration", {}, _pending)

    def _complete(self) -> _Call[int]:
        call = self._call("completeStateRestoration", {}, _pending)
        call.repeatable = not self._extends  # then each time counts
        return call

    def _register_class(self, name: str, factory: Callable[[Wanted], Any], shared: bool) -> _Call[None]:
        self._classes[name] = factory, shared  # the broker may call before the answer is read
        params = _present(restorationClass=name, shared=shared or None)
        return self._call("registerRestorationClass", params, _nothing)

    def _register_data_source(self, view: Any, source: Any) -> _Call[None]:
        self._sources = [each for each in self._sources if each[0] != view] + [(view, source)]
        return self._call("registerDataSource", {"view": view}, _nothing)

    def _hurry(self, timeout: float = math.inf) -> None:
        """Before the end: no new broker is awaited for longer than a second."""
        self.patience, self.timeout = min(self.patience, 1), min(self.timeout, timeout)

    def _leave_keeping(self) -> Leaving:
        """The reason if an exception ends a block: a signal may have raised it, which is nobody's wish to remove."""
        return self.leave if self.leave in ("restart", "logout") else "restart"

    def _goodbye(self, reason: Leaving) -> _Call[None]:
        def finish(result: Any) -> None:
            self._ended = True

        return _Call("goodbye", {"reason": reason}, finish, True, ends=True)

    def _go_on(self, same: bool) -> _Answering[None]:
        """Repeats what the broker does not remember after a new connection."""
        self._is_telling = True
        try:
            yield from self._tell(same)
        finally:
            self._is_telling = False

    def _tell(self, same: bool) -> _Answering[None]:
        if not same:
            # Parents first, even if objects were moved. Handles are invalid: the broker may give them to other objects.
            with self._guard:
                self._forgotten = sorted([*self._objects.values(), *self._forgotten], key=lambda each: each._above())
                self._objects = {}
                for each in self._forgotten:
                    each._handle = None
            if self._memory and not self._memory._is_told:
                self._memory._start_over()
        if self._memory:
            yield from self._memory._removals(are_last=False)
        kept: List[Any] = []
        queue = [(each, each.path) for each in self._forgotten]  # after another loss, over the next connection
        for index, (thing, place) in enumerate(queue, 1):
            if thing not in self._forgotten:  # unregistered, or registered already, by a callback
                continue
            path = thing.path or ()
            if thing.path != place and any(each.path == path[:-1] for each, _ in queue[index:]):
                queue.append((thing, place))  # a callback has moved it below what follows
                continue
            above = next((each for each in kept if each.path and path[:len(each.path)] == each.path), None)
            try:
                if above is None and not (yield self._again(thing)):
                    queue.append((thing, place))
                    continue
            except (BrokerError, CallTimedOutError, DiscardedError) as error:
                self._raise_if_gone(error)
                if thing._is_gone or (thing.path or ()) != path:  # a callback has changed it: that was refused
                    queue.append((thing, place))
                    continue
                is_kept = self._memory and thing._is_fresh and (
                    _is_of_broker(error) or self._memory._lacks_parent(path, error))
                if is_kept and isinstance(error, BrokerError):
                    thing._refusal = error
                    self._complain(f"{thing!r} stays in memory: {error}", logging.ERROR)
                    above = thing
                else:
                    _log.warning("%r could not be registered again: %s", thing, error)
                    thing._lose()
            if above is None:
                with contextlib.suppress(ValueError):
                    self._forgotten.remove(thing)
            else:
                thing._refusal = above._refusal
                kept.append(thing)
        again = [self._register_class(name, *factory) for name, factory in self._classes.items()]
        again += [self._register_data_source(view, source) for view, source in self._sources]
        for call in again:
            yield from self._repeat(call, f"{call.method} could not be said again", logging.WARNING)
        if self._memory:
            yield from self._memory._removals(are_last=True)
            yield from self._memory._pushes()
            if not self._memory._states and not self._memory._removed and not self._forgotten:
                self._memory = None
        try:
            yield from self._pushes(every=False)
        except (BrokerError, InvalidStateError) as error:
            with self._quietly():
                raise error

    def _repeat(self, call: _Call[Any], failure: str, level: int = logging.ERROR) -> _Answering[Optional[Exception]]:
        """Makes a call that the broker has missed; returns why it has failed."""
        try:
            yield call
        except (BrokerError, CallTimedOutError, DiscardedError) as error:
            if self._memory is not None and not self._memory._is_told:
                self._raise_if_gone(error)
            self._raise_if_ending(error)
            self._complain(f"{failure}: {error}", level)
            return error
        return None

    def _renew(self, method: str, params: Optional[Mapping[str, Any]], is_done: bool = False) -> None:
        """If a call or a notification has given the broker a state, what is in memory is not to follow it."""
        given = params or {}
        if self._memory is not None and method == "encodeRestorableState" and {"object", "state"} <= given.keys():
            self._memory._renew(is_done, **given)

    def _gives_up(self, call: _Call[Any], error: Exception, attempt: int) -> bool:
        """Whether a call without an answer is not sent again. It may have taken effect."""
        if isinstance(error, ConnectionLostError) and call.repeatable and self.patience and attempt < 3:
            return False
        self._renew(call.method, call.params)
        return True

    def _complain(self, reason: str, level: int) -> None:
        if reason not in self._complaints:
            self._complaints.add(reason)
            _log.log(level, "%s", reason)

    def _raise_if_ending(self, error: Exception) -> None:
        """A broker that is ending refuses nothing for good: the next one is told."""
        if isinstance(error, BrokerError) and error.kind == "shuttingDown":
            raise ConnectionLostError(f"the broker on {self.socket} is ending") from error

    def _raise_if_gone(self, error: Exception) -> None:
        """So is one that says nothing, if it is to take something from memory."""
        self._raise_if_ending(error)
        if self._memory is not None and isinstance(error, CallTimedOutError):
            raise ConnectionLostError(f"the broker on {self.socket} does not answer") from error

    def _again(self, thing: Any) -> _Call[bool]:
        """Registers an object that the broker has forgotten; False if a callback has given it another place."""
        path = thing.path

        def finish(result: Mapping[str, Any]) -> bool:
            if thing._is_gone or thing.path != path:  # what is there now will be removed
                return bool(thing._is_gone)
            thing._take(result)
            self._objects[thing.handle] = thing
            if thing._has_state:
                thing._want()
            return True

        # By now it has been saved, or is not new.
        registration = {**thing._registration, "fresh": thing._is_fresh or None}
        if thing.path:  # the path, not the parent object, which may be lost
            registration["restorationParent"] = thing.path[:-1] or None
        if self._is_ending:
            registration["awaitParentMilliseconds"] = None
        awaited = (registration.get("awaitParentMilliseconds") or 0) / 1000
        return self._call("registerObjectForStateRestoration", _present(**registration), finish, awaited)

    # The broker's messages

    def _notified(self, method: str, params: Dict[str, Any]) -> List[Any]:
        """Takes a notification; awaitable results of callbacks."""
        results: List[Any] = []
        try:
            results = self._noted(method, params)
        except (KeyError, TypeError, ValueError, AttributeError):
            _log.warning("a notification makes no sense: %s %s", method, params)
        if self.on_notification:
            results.append(_guarded(self.on_notification, method, params))
        return [result for result in results if inspect.isawaitable(result)]

    def _noted(self, method: str, params: Dict[str, Any]) -> List[Any]:
        results = []
        if method == "pathChanged" and params["object"] in self._objects:
            self._objects[params["object"]]._moved(params["path"])
        elif method == "registrationReplaced" and params["object"] in self._objects:
            self._objects.pop(params["object"])._lose()
        elif method == "stateWanted" and params["object"] in self._objects:
            self._objects[params["object"]]._want()
        elif method == "encodeFailed":
            told = "{limit} is {max}, this was {value}" if "limit" in params["error"] else "{kind}"
            thing = self._objects.get(params["object"], params["path"]) or "the application itself"
            _log.error("the broker has not stored the state of %r: %s", thing, told.format(**params["error"]))
        elif method == "archiveLost":
            self._lose_archive(params)
        elif method == "applicationFinishedRestoringState":
            for handle in params["objects"]:
                callback = self._objects[handle]._callbacks.get("finished") if handle in self._objects else None
                if callback:
                    results.append(_guarded(callback))
        return results

    def _reply(self, message: Mapping[str, Any]) -> _Answering[str]:
        """The answer to a call of the broker, as a line."""
        number = json.dumps(message["id"])
        answer = getattr(self, f"_answer_{message['method']}", None)
        if answer is None:
            return _refusal(number, -32601, f"{message['method']!a} is not served")
        try:
            result = yield from answer(message.get("params") or {})
            text = result if isinstance(result, _JSON) else _text(result)
            text = f'{{"jsonrpc":"2.0","id":{number},"result":{text}}}'
            text.encode()
            beyond = _beyond(text, self.limits)
            if beyond:
                raise BrokerError(beyond)
            return text
        except Exception as error:  # of a callback: the broker continues without its result
            _log.exception("%s failed", message["method"])
            return _refusal(number, error.code if isinstance(error, BrokerError) else -32603, _described(error))

    def _answer_encodeRestorableStateWithCoder(self, params: Mapping[str, Any]) -> _Answering[_JSON]:
        bytes_left = self.limits.get("frameBytesMax", 4 << 20) // 2
        values_left = self.limits.get("valuesPerFrameMax", 65536) // 2
        pieces: List[str] = []
        for entry in params["objects"]:
            handle = entry["object"]
            try:
                piece = yield from self._piece(handle)
            except Exception as error:
                _log.exception("the state of %r could not be had", self._objects.get(handle, handle))
                piece = _text({"object": handle, "error": {"message": _described(error)}})
            size, values = len(piece.encode()), piece.count(",") + piece.count(":")
            if pieces and (size > bytes_left or values > values_left):
                piece = _text({"object": handle, "later": True})
            else:
                bytes_left, values_left = bytes_left - size, values_left - values
            pieces.append(piece)
        return _JSON('{"states":[' + ",".join(pieces) + "]}")

    def _given(self, target: Any, state: State, **elements: Any) -> None:
        """A round was given a state, which the broker may not store."""
        if self._memory is not None:
            self._memory._renew(False, object=target, state=state, revision=next(self._revisions), **elements)

    def _attributes_of(self, thing: _Object) -> Optional[Dict[str, Any]]:
        values, failure = thing._changed()
        with self._quietly():
            if failure:
                raise failure
        return values

    def _piece(self, handle: int) -> _Answering[str]:
        thing = self._objects.get(handle)
        if thing is None:
            return _text({"object": handle, "error": {"message": "there is no such object"}})
        callback = thing._callbacks.get("encode")
        state = callback() if callback else self._attributes_of(thing)
        if inspect.isawaitable(state):
            state = yield state
        if state is None and thing._unsaved is not None:
            return _sent({"object": handle, **thing._unsaved}, thing._unsaved["state"], thing.path)
        if state is None:
            return _text({"object": handle, "unchanged": True})
        elements = {"elements": state.elements} if isinstance(state, Snapshot) else {}
        state = _stated(state.state if isinstance(state, Snapshot) else state, thing.path)
        piece = _sent({"object": handle, "state": state, **elements}, state, thing.path)
        beyond = _beyond(f"[{piece}]", self.limits)
        if beyond:
            raise BrokerError(beyond)
        self._given(thing, state, **elements)
        return piece

    def _answer_decodeRestorableStateWithCoder(self, params: Mapping[str, Any]) -> _Answering[Any]:
        for entry in params["objects"]:
            thing = self._objects.get(entry["object"])
            callback = thing._callbacks.get("decode") if thing else None
            if thing:
                thing._unsaved = None  # the program shows another one now
            if thing and thing._is_bound():
                if thing._changed()[0] is not None:  # what the program has just set is newer
                    self._mark(thing)
                    continue
                callback = thing._restore
            if thing is None or not callback:
                continue
            saved = (yield thing._decode()) if entry.get("deferred") else self._saved(thing, entry)
            if saved:
                result = callback(saved)
                if inspect.isawaitable(result):
                    yield result
        return {}

    def _answer_objectWithRestorationIdentifierPath(self, params: Mapping[str, Any]) -> _Answering[Any]:
        factory, _ = self._classes.get(params["restorationClass"], (None, False))
        return (yield from self._made(factory, params))

    def _answer_viewControllerWithRestorationIdentifierPath(self, params: Mapping[str, Any]) -> _Answering[Any]:
        return (yield from self._made(self.delegate.view_controller if self.delegate else None, params))

    def _made(self, factory: Optional[Callable[[Wanted], Any]], params: Mapping[str, Any]) -> _Answering[Any]:
        if factory is None:
            return None
        path, state, coder = params["identifierPath"], params.get("state"), params.get("coder")
        if params.get("deferred"):
            saved = yield self._call("decodeRestorableState", {"object": path}, functools.partial(self._saved, path))
            state, coder = saved.state, saved.coder
        made = factory(Wanted(
            tuple(path), params.get("kind", "object"), params.get("restorationClass"), params.get("objectClass"),
            _revived(state, self), coder, self))
        if inspect.isawaitable(made):
            made = yield made
        if isinstance(made, Instead):
            return {"object": None, "forget": True} if made is FORGET else {made.value: True}
        return None if made is None else {"object": made.handle}

    def _source(self, view: Any) -> Any:
        for registered, source in self._sources:
            path = registered.path if isinstance(registered, _Object) else _referred(registered)
            if path == view or (path is not None and not isinstance(path, int) and list(path) == view):
                return source
        return self._sources[0][1] if len(self._sources) == 1 else None

    def _answer_modelIdentifierForElementAtIndexPath(self, params: Mapping[str, Any]) -> _Answering[Any]:
        source = self._source(params["view"])
        result = source.identifier(params["indexPath"]) if source else None
        result = (yield result) if inspect.isawaitable(result) else result
        if result is not None and not isinstance(result, str):
            raise TypeError(f"identifier({params['indexPath']}) gave {result!r}; give a string or None")
        return result

    def _answer_indexPathForElementWithModelIdentifier(self, params: Mapping[str, Any]) -> _Answering[Any]:
        source = self._source(params["view"])
        result = source.index_path(params["identifier"]) if source else None
        return (yield result) if inspect.isawaitable(result) else result

    def _asked(self, name: str, *arguments: Any) -> _Answering[Any]:
        result = getattr(self.delegate, name)(*arguments)
        return (yield result) if inspect.isawaitable(result) else result

    def _answer_shouldSaveApplicationState(self, params: Mapping[str, Any]) -> _Answering[Any]:
        asked = self._asked("should_save", _revived(params.get("state"), self), params.get("coder"))
        return (yield from asked) is not False

    def _answer_willEncodeRestorableState(self, params: Mapping[str, Any]) -> _Answering[Any]:
        state = yield from self._asked("will_encode", params["round"])
        if state is None:
            return {}
        state = _stated(state, [])
        self._given([], state)
        return {"state": state}

    def _answer_shouldRestoreApplicationState(self, params: Mapping[str, Any]) -> _Answering[Any]:
        asked = self._asked("should_restore", _revived(params.get("state"), self), params.get("coder"))
        return (yield from asked) is not False

    def _answer_didDecodeRestorableState(self, params: Mapping[str, Any]) -> _Answering[Any]:
        yield from self._asked("did_decode", _revived(params.get("state"), self), params.get("coder"))
        return {}

    # Connections

    def _frame(self, method: str, params: Mapping[str, Any], number: Optional[int] = None) -> bytes:
        """A request, or a notification if there is no number."""
        # Handles are looked up here: they change if the session was forgotten and the call is sent again.
        members = {key: _referred(value) if key in _NAMED else value for key, value in params.items()}
        message = _present(jsonrpc="2.0", id=number, method=method, params=members)
        if "state" in params:
            text = _sent(message, params["state"], self._path_of(params.get("object")))
        else:
            text = _text(message)
        beyond = _beyond(text, self.limits)
        if beyond:
            if "state" in params:
                beyond["message"] = f"{_placed(self._path_of(params.get('object')))}: {beyond['message']}"
            raise BrokerError(beyond)
        return text.encode() + b"\n"

    def _tell_loss(self) -> None:
        if self._has_opened:
            _log.info("the connection to %s is lost; connecting again for up to %g seconds", self.socket, self.patience)

    def _leave_to_parent(self) -> None:
        """In a forked child. Nothing but the descriptor is closed: the socket is the parent's."""
        self._forked = self._ended = True
        self._is_left = False
        if self._connection is not None:
            self._connection.close()

    def _lose_archive(self, facts: Mapping[str, Any]) -> None:
        """Ends the session: what it called again would take the application from the host that has it."""
        self._loss = facts
        self._ended = True

    def _raise_if_lost(self, error: BrokerError) -> None:
        if error.kind == "fenced":
            self._lose_archive(error.data)
            raise ArchiveLostError(self.application, error.data) from error

    def _check(self) -> None:
        if self._forked:
            raise SessionForkedError(
                f"the session of {self.application} belongs to the process that forked this one; "
                "open another session here")
        if self._loss is not None:
            raise ArchiveLostError(self.application, self._loss)
        if self._ended:
            raise SessionEndedError(f"the session of {self.application} has ended")


def _is_of_broker(error: Exception) -> bool:
    """Whether a broker refuses something because of itself, as with a full disk, and may take it later."""
    kind = error.kind if isinstance(error, BrokerError) else ""
    return isinstance(error, CallTimedOutError) or kind in (
        "archiveUnreadable", "internalError", "storeFailed", "timedOut")


def _guarded(callback: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return callback(*arguments)
    except Exception:
        _log.exception("%r failed", callback)
        return None


def _described(error: Exception) -> str:
    """Type and message, even if the exception fails to give its message."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text[:1000].encode("utf-8", "replace").decode()


def _refusal(number: str, code: int, why: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"error":{_text({"code": code, "message": why})}}}'


def _present(**members: Any) -> Dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def _seconds(name: str, value: Any, least: float, most: float = math.inf) -> float:
    """An argument of the program's that is a time."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}= takes a number of seconds, not {value!r}")
    if not least <= value <= most:
        limits = f"from {least:g} to {most:g} seconds" if math.isfinite(most) else f"at least {least:g} seconds"
        raise ValueError(f"{name}= takes {limits}, not {value!r}")
    return value


def _milliseconds(name: str, seconds: Optional[float], most: float) -> Optional[int]:
    return None if seconds is None else max(1, round(_seconds(name, seconds, 0, most) * 1000))


_START = "start it with `restorationd` or `systemctl --user start restorationd.socket`"


def _unreachable(path: str, error: OSError) -> NoBrokerError:
    if isinstance(error, FileNotFoundError):
        return NoBrokerError(path, f"no broker listens on {path}; {_START}", is_absent=True)
    if isinstance(error, ConnectionRefusedError):
        with contextlib.suppress(OSError):  # a broker that starts may be removing it
            if not stat.S_ISSOCK(os.stat(path).st_mode):
                return NoBrokerError(path, f"{path} is not a socket; name the socket of the broker")
        return NoBrokerError(path, f"no broker listens on {path} any more; {_START}", is_absent=True)
    if isinstance(error, PermissionError):
        return NoBrokerError(path, f"this user may not connect to {path}; every user has their own broker")
    return NoBrokerError(path, f"cannot connect to {path}: {error}")


def _unanswered(call: _Call[Any]) -> CallTimedOutError:
    return CallTimedOutError(f"{call.method} was not answered in time")


def _lost(path: str) -> NoReturn:
    raise ConnectionLostError(f"the broker on {path} closed the connection or ended")


def _foreign(path: str) -> NoReturn:
    error = ConnectionLostError(f"the server on {path} does not speak the restoration protocol")
    error._is_broker = False
    raise error


def _pauses(most: float = 0.5) -> Iterator[float]:
    """Seconds between attempts to connect."""
    pause = 0.01
    while True:
        yield pause
        pause = min(pause * 2, most)


def _pauses_within(seconds: float) -> Iterator[float]:
    """Seconds between attempts that begin within `seconds` of the first one."""
    end: Optional[float] = None
    for pause in _pauses():
        now = time.monotonic()
        end = now + seconds if end is None else end
        if now + pause > end:
            return
        yield pause


def _pause_before_again(error: BrokerError, call: _Call[Any], pauses: Iterator[float]) -> float:
    """A broker that is ending has not done the call. If the connection stays, the next broker reads it there."""
    pause = next(pauses, None) if call.repeatable and error.kind == "shuttingDown" else None
    if pause is None:
        raise error
    return pause


def _message(line: bytes) -> Optional[Dict[str, Any]]:
    try:
        message = _decoder.decode(line.decode())
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _finished(call: _Call[_T], message: Mapping[str, Any]) -> _T:
    result = message.get("result")
    try:
        return call.finish(result)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        if _object(result).get("discarded") is True:
            raise DiscardedError(
                f"{call.method} has no effect: the user has quit the application; "
                "end this session and open another one") from None
        raise RestorationError(f"the answer to {call.method} makes no sense: {str(message)[:200]}") from None


class _Answers:
    """The pending calls of one connection."""

    def __init__(self) -> None:
        self.waiting: Dict[int, Tuple[_Call[Any], Callable[[Any], None], Callable[[BaseException], None]]] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """Handles an answer at once, because the next message may depend on it."""
        number = message.get("id")
        if number is None:
            _log.error("the broker could not read what was sent: %s", BrokerError(message.get("error")))
            number = max(self.waiting, default=None)  # the last call is the likely one
        if not isinstance(number, int) or number not in self.waiting:
            return
        call, succeed, fail = self.waiting.pop(number)
        try:
            if "error" in message:
                raise BrokerError(message["error"], None if call.is_raw else call.params)
            result = _finished(call, message)
        except RestorationError as error:
            fail(error)
        else:
            succeed(result)

    def lose(self, path: str) -> None:
        waiting, self.waiting = self.waiting, {}
        for _, _, fail in waiting.values():
            fail(ConnectionLostError(f"the broker on {path} closed the connection or ended"))


# Blocking


class RestorableObject(_Object):
    """An object that this process has registered. Its callbacks are called while the session serves or waits."""

    _session: "Session"

    @overload
    def decode(self) -> Saved: ...
    @overload
    def decode(self, kind: Type[_T]) -> Optional[_T]: ...
    @overload
    def decode(self, kind: Type[_T], default: _D) -> Union[_T, _D]: ...
    @overload  # of a type that is no class, such as a Union
    def decode(self, kind: Any, default: Any = None) -> Any: ...
    def decode(self, kind: Any = None, default: Any = None) -> Any:
        """The saved state; false if it is missing or withheld (see `status`).

        With a type, such as a dataclass, a value of that type; `default` if there is no state.
        """
        return self._session._perform(self._decode())._read(kind, default)

    def encode(self, state: State, elements: Elements = ()) -> bool:
        """Saves the whole state, on disk when this returns; that of an excluded object is not stored.
        False: the user has quit the application."""
        return self._session._perform(self._encode(state, elements))

    def encode_later(self, state: State, elements: Elements = ()) -> None:
        """Saves the state without waiting; it is on disk within 250 ms. Failures are not reported."""
        self._session.notify("encodeRestorableState", self._encode(state, elements).params)

    def invalidate(self) -> None:
        """Makes the broker ask for the state soon."""
        self._session._perform(self._invalidate())

    def unregister(self) -> None:
        """Removes the object with its state."""
        self._session._perform(self._unregister())

    def move(self, parent: Any, take_over: bool = False) -> None:
        """Moves the object, and what is below it, under another parent; None makes it a root."""
        self._session._perform(self._move(parent, take_over))

    def rename(self, identifier: Optional[str], position: Optional[int] = None, take_over: bool = False) -> None:
        self._session._perform(self._rename(identifier, position, take_over))

    def set_children(self, children: Sequence[Any]) -> None:
        """Gives these children the positions 0, 1, …"""
        self._session._perform(self._set_children(children))


class _Outcome(concurrent.futures.Future[_T]):
    """Of a call of a batch. The thread that makes the calls would wait for itself."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread

    def result(self, timeout: Optional[float] = None) -> _T:
        self._check()
        return super().result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        self._check()
        return super().exception(timeout)

    def _check(self) -> None:
        if threading.get_ident() == self._thread and not self.done():
            raise RuntimeError("this is done when the block of its batch has ended; wait for it after the block")


class Batch:
    """Calls that a `Session` makes together: see `Session.batch`. Each result, or error, comes with its future."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._thread = threading.get_ident()
        self._lock = threading.RLock()
        self._calls: Optional[List[Tuple[_Call[Any], _Outcome[Any]]]] = []  # None: it has ended

    def register(
        self, identifier: Optional[str], parent: Any = None, **options: "Unpack[_Registration]",
    ) -> "concurrent.futures.Future[RestorableObject]":
        """Makes an object known, as `Session.register`. What is in the same batch is named by its path."""
        for name in options.keys() - _Registration.__annotations__.keys():
            raise TypeError(f"register() has no argument {name}=")
        return self._add(self._session._register(identifier, parent, options))

    def encode(
        self, target: Union[RestorableObject, str, Path], state: State, elements: Elements = (),
    ) -> "concurrent.futures.Future[bool]":
        """Saves the whole state of an object, or of what is at a path of this session."""
        return self._add(self._session._encode([target] if isinstance(target, str) else target, state, elements))

    def decode(self, target: Union[RestorableObject, str, Path]) -> "concurrent.futures.Future[Saved]":
        """The saved state."""
        return self._add(self._session._decode([target] if isinstance(target, str) else target))

    def _add(self, call: _Call[_T]) -> "concurrent.futures.Future[_T]":
        future: _Outcome[_T] = _Outcome(self._thread)
        with self._lock:
            if self._calls is None:
                raise RuntimeError("the block of this batch has ended; begin another one: session.batch()")
            self._calls.append((call, future))
        return future

    def _end(self, cancels: bool = False) -> List[Tuple[_Call[Any], _Outcome[Any]]]:
        """What was added and is not cancelled. From here on nothing can be added or cancelled."""
        with self._lock:
            added, self._calls = self._calls or [], None
        if cancels:
            for _, future in added:
                future.cancel()
        return [each for each in added if each[1].set_running_or_notify_cancel()]

    def _make(self) -> None:
        session, made = self._session, self._end()
        calls = [call for call, _ in made]
        try:
            with session._lock, session._registering(calls):
                for (call, future), outcome in zip(made, session._perform_all(calls)):
                    try:
                        if isinstance(outcome, Exception):
                            raise outcome
                        if call.registered is not None:
                            session._drive(call.registered._bind(), session._perform)
                        future.set_result(outcome)
                    except Exception as error:
                        future.set_exception(error)
        except BaseException as error:  # such as KeyboardInterrupt
            for _, future in made:
                if not future.done():
                    future.set_exception(error)
            raise
        for failure in filter(None, [future.exception() for _, future in made]):
            raise failure


class Session(_Session):
    """One process's session with the broker; its objects stay registered during a `with` block.

    Several threads may use it. A call waits for calls of other threads; `serve` lets them pass while nothing comes.
    Callbacks run in the thread that reads, one at a time, and block the others: a callback must not wait for another
    thread that uses the session. Call nothing here while you hold a lock that callbacks need.

    A block that ends normally says goodbye with `leave`, and the saved states stay. A block that ends by an exception
    only closes the connection: if the process ends too, that is a crash, and the next run's reason is `recover`.
    """

    _object_type = RestorableObject

    def _prepare(self) -> None:
        self._lock = threading.RLock()  # held during a call, and by callbacks
        self._polling = threading.RLock()  # held by a serving thread while it waits without the other lock
        self._closing = threading.RLock()  # held while the descriptor is closed: its number may then be reused
        self._timer: Optional[threading.Timer] = None  # of the turn
        self._until = math.inf  # nothing takes longer
        self._is_sighted = False  # a broker accepts connections, and nothing is saved there yet
        self._beacon: Tuple[sockets.socket, ...] = ()  # to wait for the first broker; the first end is read

    def _leave_to_parent(self) -> None:
        super()._leave_to_parent()
        self._connection = None
        self._prepare()  # the parent's threads do not exist here

    def _send_farewell(self, params: Dict[str, Any]) -> None:
        if self._connection is not None:
            self._connection.send(self._frame("goodbye", params))

    def open(self) -> "Session":
        """Connects. A `with` block does this itself."""
        with self._lock:
            self._check()
            if self._connection is None and not self._is_alone:
                with self._opening():
                    self._begin()
            return self

    def __enter__(self) -> "Session":
        return self.open()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Any) -> None:
        try:
            if kind is None:
                self._hurry()
                with contextlib.suppress(ConnectionError, SessionEndedError):
                    self.goodbye(self.leave)
            elif issubclass(kind, (SystemExit, KeyboardInterrupt)):
                self._hurry(timeout=1)
                with contextlib.suppress(Exception):  # the exception that ended the block is raised
                    self.goodbye(self._leave_keeping())
        finally:
            self.close()

    def close(self) -> None:
        """Closes the connection, without goodbye. Calls of other threads raise SessionEndedError."""
        try:
            self._push_last()
        finally:
            self._ended = True
            connection = self._connection
            if connection is not None:
                self._shut(connection)  # the thread that holds the lock may be waiting for an answer
            self._light()
            with self._lock:
                self._disconnect()
                self._put_out()

    def goodbye(self, reason: Leaving) -> None:
        """Ends the session. `restart` and `logout` keep the saved states, `closed` and `userQuit` remove them."""
        with self._lock:
            self._is_ending = True
            self._look()
            with self._quietly():
                self.flush()
            self._perform(self._goodbye(reason))
            self._light()
            self._disconnect()
            self._put_out()

    def register(
        self,
        identifier: Optional[str],
        parent: Any = None,
        *,
        kind: Kind = "object",
        object_class: Union[str, Sequence[str], None] = None,
        restoration_class: Optional[str] = None,
        storyboard: Optional[Mapping[str, str]] = None,
        position: Optional[int] = None,
        wait: Optional[float] = 10,
        take_over: bool = False,
        confidential: Optional[bool] = None,
        keep: Optional[Keep] = None,
        fresh: bool = False,
        target: Any = None,
        encode: Optional[Callable[[], Union[State, Snapshot, None]]] = None,
        decode: Optional[Callable[[Saved], Any]] = None,
        finished: Optional[Callable[[], Any]] = None,
    ) -> RestorableObject:
        """Makes an object known under its path.

        - parent: an object, a handle, a path, or the identifier of a root.
        - storyboard: `{"unit": name}` of the systemd user unit whose process makes the object if it is missing.
        - wait: seconds to wait for a parent that is not registered yet; None or 0 does not wait.
        - fresh: the object is new: the state that was saved at its path is not its own.
        - target: what the object stands for in the program: its `target`. By default the object whose methods the
          callbacks are. Its `restorable` attributes are restored, and from then on saved when they are set.
        - encode: returns the state when the broker saves; None if it has not changed since it was pushed.
        - decode: gets the state when the broker restores the application.
        - finished: all objects of the application are restored.
        """
        call = self._register(identifier, parent, _Registration(
            kind=kind, object_class=object_class, restoration_class=restoration_class, storyboard=storyboard,
            position=position, wait=wait, take_over=take_over, confidential=confidential, keep=keep, fresh=fresh,
            target=target, encode=encode, decode=decode, finished=finished))
        with self._lock, self._registering([call]):
            result: RestorableObject = self._perform(call)
            self._drive(result._bind(), self._perform)
            return result

    def _has_returned(self, calls: Sequence[_Call[Any]]) -> None:
        super()._has_returned(calls)
        if self._lines.held and self._connection is not None:
            # Its answer makes the descriptor readable: a program that waits for that serves then.
            with contextlib.suppress(RestorationError):
                self._send(self._frame("ping", {}, next(self._ids)), self._deadline(0))

    @contextlib.contextmanager
    def batch(self) -> Iterator[Batch]:
        """Registers, encodes and decodes together: a `with` block's calls are sent in their order when it ends.

        All answers are awaited together. If calls fail, the first error is raised then; the others are made all the
        same, and each future has its own result or error. A call whose future is cancelled in the block is not made.
        A block that ends by an exception sends nothing, and cancels all futures.
        """
        batch = Batch(self)
        try:
            yield batch
        except BaseException:
            batch._end(cancels=True)
            raise
        batch._make()

    def complete(self) -> int:
        """Says that this process has restored its objects; returns how many processes are still restoring."""
        return self._perform(self._complete())

    def extend(self) -> int:
        """Holds back the end of the restoration until `complete`."""
        return self._perform(self._extend())

    @overload
    def decode(self) -> Saved: ...
    @overload
    def decode(self, kind: Type[_T]) -> Optional[_T]: ...
    @overload
    def decode(self, kind: Type[_T], default: _D) -> Union[_T, _D]: ...
    @overload  # of a type that is no class, such as a Union
    def decode(self, kind: Any, default: Any = None) -> Any: ...
    def decode(self, kind: Any = None, default: Any = None) -> Any:
        """The application's own state; false if it is missing or withheld (see `status`).

        With a type, such as a dataclass, a value of that type; `default` if there is no state.
        """
        return self._perform(self._decode([]))._read(kind, default)

    def encode(self, state: State) -> bool:
        """Saves the application's own state, on disk when this returns. While there is a delegate, only it may.

        False: the user has quit the application."""
        return self._perform(self._encode([], state))

    def save(
        self, reason: Optional[str] = None, deadline: Optional[float] = None, progress_token: Any = None,
    ) -> Dict[str, Any]:
        """Runs a save round over all processes: `saved`, `generation`, `stale`, …"""
        self.flush()
        return self._perform(self._save(reason, deadline, progress_token))

    def restore(
        self, deadline: Optional[float] = None, progress_token: Any = None, objects: Optional[Sequence[Any]] = None,
    ) -> Dict[str, Any]:
        """Restores all saved objects, or `objects` and what is below them: `restored`, `skipped`, `absent`."""
        self.flush()
        return self._perform(self._restore(deadline, progress_token, objects))

    def register_class(
        self, name: str, factory: Callable[[Wanted], Union[RestorableObject, Instead, None]], shared: bool = False,
    ) -> None:
        """`factory` makes, and registers, the objects of a restoration class; see `Instead` for what else it returns.

        With `shared`, other processes may make objects of the class too, if they say so as well.
        """
        with self._lock:
            self._perform(self._register_class(name, factory, shared))

    def register_data_source(self, view: Any, source: Any) -> None:
        """`source.identifier(index_path)` and `source.index_path(identifier)` find elements of the view."""
        with self._lock:
            self._perform(self._register_data_source(view, source))

    def reopen(self, path: Union[str, Path, None] = None) -> Dict[str, Any]:
        """Opens again what was closed at a path, or last: it is there again, vacant, with its state."""
        return self._perform(self._reopen(path))

    def forget(self, path: Union[str, Path]) -> None:
        """Forgets a path that no session has, with all vacant objects below it."""
        self._perform(self._forget(path))

    def call(
        self, method: str, params: Optional[Mapping[str, Any]] = None, *, timeout: float = 0,
        repeatable: Optional[bool] = None,
    ) -> Any:
        """Calls any method. `repeatable`: it may be sent again if the connection is lost."""
        return self._perform(self._raw(method, params, timeout, repeatable))

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a notification, which has no answer."""
        self._check()
        call = _Call(method, dict(params or {}), _nothing, False)
        if not self._is_sighted and self._at_once(call):
            return
        with self._lock:
            try:
                self._connected()
                if self._is_alone:
                    return self._remember(call)
                self._send(self._frame(method, params or {}), self._deadline(0))
            except ConnectionLostError:
                if not self.patience:
                    raise
                self._connected()
                self._send(self._frame(method, params or {}), self._deadline(0))
            self._renew(method, params)
            with contextlib.suppress(ConnectionLostError):
                self._take_lines()  # input that came meanwhile: select would not report it

    # Attributes

    def flush(self) -> None:
        """Saves at once what attributes were set to; otherwise that happens within 100 ms, in a thread of its own."""
        with self._lock:
            self._drive(self._pushes(), self._perform)

    def _wake(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._pause or 0.05, self._turn)
            self._timer.daemon = True
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                self._timer.start()

    def _turn(self) -> None:
        self._timer = None
        with self._quietly(), self._lock:
            if not self._ended:
                # Not `_perform`, which may connect: callbacks are not called here.
                self._drive(self._pushes(every=False), self._remember if self._is_alone else self._perform)

    def _push_last(self) -> None:
        """Before the connection is closed. It takes a second at most, unless a slow broker is being told of states."""
        is_needed = self._memory is not None or self._has_attributes()
        # Another thread that tells it reads the states in memory, the newest as well.
        wait = max(1, self.patience) if self._memory is not None and self._memory._states else 1
        if not self._ended and is_needed and self._lock.acquire(timeout=wait):
            try:
                self._is_ending, self._until = True, time.monotonic() + 1
                self._hurry(timeout=1)
                self._look()  # a broker may have come just now
                with self._quietly():
                    self.flush()
            finally:
                self._lock.release()

    # Serving

    def fileno(self) -> int:
        """The descriptor, for select: if it is readable, call `serve(0)`. It changes at `on_reconnected`."""
        self._check()
        with self._lock:
            return self._connected().fileno()

    def serve(self, seconds: Optional[float] = None) -> None:
        """Answers the broker for this many seconds, or for ever with None. With 0 it does not wait."""
        if self._forked:
            self._check()
        end = None if seconds is None else time.monotonic() + seconds
        while not self._ended:
            try:
                with self._lock:
                    connection = self._connected()
            except SessionEndedError:  # closed meanwhile
                return
            try:
                with self._lock:
                    if self._take_lines():
                        continue
                if not self._wait(connection, end):
                    return
                with self._lock:
                    if connection is self._connection and self._receive():
                        self._take_lines()
            except ConnectionLostError:
                if not self.patience and not self._ended:
                    raise

    def _wait(self, connection: sockets.socket, end: Optional[float]) -> bool:
        """Whether input comes in time. Meanwhile other threads may make calls, or close the session."""
        if not self._polling.acquire(timeout=-1 if end is None else max(0, end - time.monotonic())):
            return False
        try:
            while connection.fileno() >= 0 and not self._is_sighted:
                # Nothing wakes it to push again what the broker has refused.
                ends = [] if self._memory is None else [time.monotonic() + 1]
                if _readable(connection, min(ends if end is None else [*ends, end], default=None)):
                    break
                if end is not None and time.monotonic() >= end:
                    return False
            return True
        finally:
            self._polling.release()

    # Connection

    def _connected(self) -> sockets.socket:
        """The connection, or what is readable when the first broker is there."""
        if self._connection is None and self.token is None and not self._is_alone:
            self._begin()
        if self._is_sighted:
            self._look()
        if self._is_alone:
            self._beacon = self._beacon or sockets.socketpair()
            return self._beacon[0]
        return self._connection or self._reconnect(go_on=True)

    def _begin(self) -> None:
        """Opens the session, in memory if there is no broker."""
        end: Optional[float] = None
        for pause in _pauses():
            try:
                self._connect()
                return
            except RestorationError as error:
                absence = self._absence(error)
                end = time.monotonic() + self._gap(error) if end is None else end
                if time.monotonic() + pause > end:
                    self._begin_alone(absence)
                    return self._look_later()
            time.sleep(pause)

    def _look_later(self) -> None:
        timer = threading.Timer(next(self._tries), _look, [weakref.ref(self)])
        timer.daemon = True
        with contextlib.suppress(RuntimeError):  # the interpreter ends
            timer.start()

    def _look(self) -> None:
        """Connects if a broker has come, and saves what is still only in memory."""
        with self._lock:
            is_sighted, self._is_sighted = self._is_sighted, False
            if self._ended or self._memory is None or self._is_telling:  # it may be a callback that ends the session
                return
            try:
                if self._is_alone:
                    self._connect()
                    self._arrive()
                    self._drive(self._go_on(False), self._exchange)
                    if self.on_reconnected:
                        _guarded(self.on_reconnected, False)
                elif self._connection is None:
                    self._reconnect(go_on=True)
                else:
                    self._drive(self._go_on(True), self._exchange)
            except (RestorationError, OSError) as error:
                self._still_kept(error)
                self._disconnect()  # the next call continues there
                self._stay_alone()
            if not self._is_alone:
                self._light()
            elif is_sighted and self._beacon:
                with contextlib.suppress(OSError):
                    self._beacon[0].recv(1, sockets.MSG_DONTWAIT)

    def _sight(self) -> None:
        """Has the program's own thread look if a broker has come: callbacks are called where it serves."""
        try:
            with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
                probe.settimeout(self.timeout)
                probe.connect(self.socket)
        except OSError as error:
            return self._still_kept(_unreachable(self.socket, error))
        with self._lock:
            if not self._is_sighted and not self._ended:
                self._is_sighted = True
                for end in self._beacon[1:]:
                    with contextlib.suppress(OSError):
                        end.send(b".")

    def _light(self) -> None:
        """Wakes those who wait for the first broker."""
        for end in self._beacon[1:]:
            end.close()

    def _put_out(self) -> None:
        with self._polling:
            for end in self._beacon:
                end.close()

    def _connect(self) -> bool:
        _sessions[id(self)] = self
        connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        try:
            connection.settimeout(self.timeout)
            connection.connect(self.socket)
        except OSError as error:
            connection.close()
            raise _unreachable(self.socket, error) from error
        connection.setblocking(False)
        self._connection = connection
        self._lines = _Lines()
        self._answers = _Answers()
        try:
            self._check()  # another thread may have closed the session before there was a connection to shut
            return self._exchange(self._initialize())
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._shut(connection)  # wakes a serving thread
            with self._polling, self._closing:
                connection.close()
            self._answers.lose(self.socket)

    def _shut(self, connection: sockets.socket) -> None:
        """Ends a connection for all threads that wait for it."""
        with self._closing, contextlib.suppress(OSError):
            connection.shutdown(sockets.SHUT_RDWR)

    def _reconnect(self, go_on: bool) -> sockets.socket:
        """Connects again, and resumes the session."""
        self._tell_loss()
        end = min(time.monotonic() + self.patience, self._until)
        for pause in _pauses():
            self._check()
            try:
                same = self._connect()
                if go_on:
                    self._drive(self._go_on(same), self._exchange)
                break
            except (NoBrokerError, ConnectionLostError):
                self._disconnect()
                if time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
        if go_on and self.on_reconnected:
            _guarded(self.on_reconnected, same)
        if self._connection is None:
            _lost(self.socket)
        return self._connection

    def _deadline(self, seconds: float) -> float:
        return min(time.monotonic() + self.timeout + seconds, self._until)

    def _perform(self, call: _Call[_T]) -> _T:
        answers = [] if self._is_sighted else self._at_once(call)
        if answers:
            return answers[0]
        with self._lock:
            for attempt in itertools.count(1):
                self._check()
                if self._is_sighted:
                    self._look()
                try:
                    if self._connection is None and not self._is_alone:
                        if self.token is None:
                            self._begin()
                        else:
                            self._reconnect(go_on=not call.ends or self._memory is not None)
                    if self._remembers(call):
                        return self._remember(call)
                    self._drive(self._tell_named(call), self._exchange)
                    before = self._memory._places() if self._memory and call.method in _CHANGES else []
                    result = self._exchange(call)
                    if self._memory and self._doubts():
                        self._memory._note(before)
                    return result
                except (ConnectionLostError, CallTimedOutError) as error:
                    if self._doubts() and not call.is_raw:  # a callback's call
                        self._disconnect()
                        self._stay_alone()
                    elif not self._ended and self._gives_up(call, error, attempt):
                        raise
        raise AssertionError("the loop has no end")

    def _perform_all(self, calls: Sequence[_Call[Any]]) -> List[Any]:
        """Results and exceptions of calls that may be sent twice."""
        outcomes: Dict[int, Any] = {}
        try:
            self._check()
            self._connected()
            if self._memory is None:
                self._ask_all(calls, outcomes)
        except ConnectionLostError as error:
            if not self.patience:
                return [outcomes.get(index, error) for index in range(len(calls))]
        except Exception as error:
            return [error] * len(calls)
        for index, call in enumerate(calls):
            outcome = outcomes.get(index, ConnectionLostError())
            if isinstance(outcome, ConnectionLostError) or getattr(outcome, "kind", "") in ("shuttingDown", "fenced"):
                try:  # alone, in memory, on the next connection, or with the next broker
                    outcomes[index] = self._perform(call)
                except Exception as error:
                    outcomes[index] = error
        return [outcomes[index] for index in range(len(calls))]

    def _ask_all(self, calls: Sequence[_Call[Any]], outcomes: Dict[int, Any]) -> None:
        """Sends calls one behind the other on this connection, and notes what comes of them. Serves meanwhile."""
        answers = self._answers
        waiting: Dict[int, Tuple[_Call[Any], Callable[[Any], None]]] = {}
        seconds = max((call.seconds for call in calls), default=0)
        try:
            for index, call in enumerate(calls):
                number = next(self._ids)
                note = functools.partial(outcomes.__setitem__, index)
                try:
                    request = self._frame(call.method, call.params, number)
                except RestorationError as error:  # it cannot be sent
                    note(error)
                    continue
                answers.waiting[number], waiting[number] = (call, note, note), (call, note)
                self._send(request, self._deadline(seconds))
                self._take_lines()
            while waiting.keys() & answers.waiting.keys():
                if self._answers is not answers or self._connection is None:
                    _lost(self.socket)
                if not self._read(self._deadline(seconds)):  # nothing came for so long
                    late = [number for number in waiting if answers.waiting.pop(number, None)]
                    for number in late:
                        call, tell = waiting[number]
                        tell(_unanswered(call))
                    # All have their outcome: a connection that has no room for this is lost.
                    for number in late:
                        self._cancel(number)
                    return
        finally:
            for number in waiting:
                answers.waiting.pop(number, None)

    def _exchange(self, call: _Call[_T]) -> _T:
        """A call, repeated on this connection if a new broker takes it over."""
        pauses = _pauses_within(self.patience)
        while True:
            try:
                return self._ask(call)
            except BrokerError as error:
                self._raise_if_lost(error)
                time.sleep(_pause_before_again(error, call, pauses))

    def _ask(self, call: _Call[_T]) -> _T:
        """One request on this connection, and its result. Serves meanwhile."""
        if self._connection is None:
            _lost(self.socket)
        if time.monotonic() > self._until:
            raise SessionEndedError(f"the session of {self.application} ends before the broker knows everything")
        answers = self._answers
        number = next(self._ids)
        request = self._frame(call.method, call.params, number)
        results: List[_T] = []
        errors: List[BaseException] = []
        answers.waiting[number] = (call, results.append, errors.append)
        end = self._deadline(call.seconds)
        try:
            self._send(request, end)
            while not results and not errors:
                if self._answers is not answers or self._connection is None:
                    _lost(self.socket)
                if not self._read(end) and not results and not errors:
                    self._cancel(number)
                    raise _unanswered(call)
        finally:
            answers.waiting.pop(number, None)
        if errors:
            raise errors[0]
        return results[0]

    def _cancel(self, number: int) -> None:
        text = _text({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        with contextlib.suppress(OSError, RestorationError):
            self._send(text.encode() + b"\n", time.monotonic())
            self._take_lines()

    def _send(self, data: bytes, end: float) -> None:
        """Writes, and reads meanwhile: the broker may have to send before it reads."""
        connection = self._connection
        try:
            self._write(connection, data, end)
        except BaseException:  # a part of the message may be written, so nothing can follow it
            if connection is self._connection:
                self._disconnect()
            raise

    def _write(self, connection: Optional[sockets.socket], data: bytes, end: float) -> None:
        rest = memoryview(data)
        while rest:
            if connection is None or connection is not self._connection:
                _lost(self.socket)
            try:
                rest = rest[connection.send(rest):]
            except BlockingIOError:
                readable, writable, _ = _poll(connection, True, end - time.monotonic())
                if not readable and not writable:
                    raise CallTimedOutError("the broker does not read") from None
                if readable:
                    self._receive()
            except OSError:
                # The broker may have sent the reason before it closed.
                with contextlib.suppress(ConnectionLostError):
                    while self._receive():
                        pass
                    self._take_lines()
                self._disconnect()
                _lost(self.socket)

    def _receive(self) -> bool:
        """Reads once; false if there is nothing to read."""
        if self._connection is None:
            _lost(self.socket)
        try:
            data = self._connection.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._take_lines()
            self._disconnect()
            _lost(self.socket)
        self._lines.buffer += data
        return True

    def _read(self, end: float) -> bool:
        """Waits for input, and handles all complete messages; false after the end."""
        if self._take_lines():
            return True
        assert self._connection is not None
        if not _readable(self._connection, end):
            return False
        if self._receive():
            self._take_lines()
        return True

    def _take_lines(self) -> bool:
        lines, taken = self._lines, False
        for message in self._messages(lines):
            taken = True
            if message is None:
                self._disconnect()
                _foreign(self.socket)
            self._take(message)
            if lines is not self._lines:
                break
        return taken

    def _take(self, message: Dict[str, Any]) -> None:
        if "method" not in message:
            self._answers.take(message)
        elif "id" not in message:
            for result in self._notified(message["method"], message.get("params") or {}):
                _not_awaited(result)
        else:
            connection, token = self._connection, _answering.set((self, None))
            try:
                line: str = self._drive(self._reply(message), self._perform)
            finally:
                _answering.reset(token)
            if connection is not None and connection is self._connection:
                with contextlib.suppress(ConnectionLostError):
                    self._send(line.encode() + b"\n", self._deadline(0))

    def _drive(self, steps: _Answering[_T], perform: Callable[[_Call[Any]], Any]) -> _T:
        """Performs the calls that a generator yields."""
        step: Callable[[], Any] = lambda: next(steps)
        while True:
            try:
                wanted = step()
            except StopIteration as stop:
                value: _T = stop.value
                return value
            try:
                if not isinstance(wanted, _Call):
                    _not_awaited(wanted)
                    raise TypeError("a callback of a Session cannot be a coroutine; use an AsyncSession")
                result = perform(wanted)
            except Exception as error:
                step = lambda error=error: steps.throw(error)  # type: ignore[misc]
            else:
                step = lambda result=result: steps.send(result)  # type: ignore[misc]


def _look(session: "weakref.ref[Session]") -> None:
    found = session()
    if found is not None:
        if found.serving:
            found._sight()
        else:
            found._look()
        if found._memory is not None and not found._ended:
            found._look_later()


def _not_awaited(result: Any) -> None:
    if inspect.iscoroutine(result):
        result.close()


def _poll(connection: sockets.socket, writing: bool, seconds: Optional[float]) -> Tuple[bool, bool, bool]:
    """Whether a socket can be read, or written. With poll: descriptors may be above 1,023."""
    poll = select.poll()
    poll.register(connection, select.POLLIN | (select.POLLOUT if writing else 0))
    events = poll.poll(None if seconds is None else max(0, seconds) * 1000)
    bits = events[0][1] if events else 0
    broken = bool(bits & (select.POLLERR | select.POLLHUP | select.POLLNVAL))
    return bool(bits & select.POLLIN) or broken, bool(bits & select.POLLOUT), broken


def _readable(connection: sockets.socket, end: Optional[float]) -> bool:
    return _poll(connection, False, None if end is None else end - time.monotonic())[0]


_COMPONENT = re.compile(r"([^/#\0-\x1f\x7f-\x9f\ud800-\udfff]+)(#(0|[1-9][0-9]*))?")


def _possible(path: Any) -> Any:
    """A path that an object can have: the broker looks at none if it has no archive of the application."""
    path = _referred(path)
    is_path = isinstance(path, list) and all(isinstance(each, str) for each in path)
    for each in path if is_path else []:
        found = _COMPONENT.fullmatch(each)
        if found is None or len(found[1].encode()) > 255:
            hint = "Use 1 to 255 bytes of UTF-8 without '/' and control characters, and '#' only before a position."
            raise BrokerError({
                "code": -32004,
                "message": f"a component of the path is an invalid restoration identifier: {each!r:.100}",
                "data": {"kind": "invalidIdentifier", "path": path, "hint": hint},
            }, {})
    return path


def store(application: str, path: Union[str, Path], state: State, socket: Optional[str] = None) -> None:
    """Saves one state without a session, for scripts."""
    path = _possible(path)
    _once(application, "encodeRestorableState", {"object": path, "state": _stated(state, path)}, socket)


def load(application: str, path: Union[str, Path], socket: Optional[str] = None) -> Saved:
    """One saved state, read without a session; false if there is none."""
    path = _possible(path)
    try:
        return _saved(_once(application, "decodeRestorableState", {"object": path}, socket), path)
    except BrokerError as error:
        if error.kind in ("unknownObject", "unknownApplication"):
            return Saved("none")
        raise


class _Once(Session):
    """A connection without a session."""

    def _initialize(self) -> _Call[bool]:
        return _Call("ping", {}, bool, False)


def _once(application: str, method: str, params: Dict[str, Any], socket: Optional[str]) -> Any:
    session = _Once(application, socket=socket, patience=0, without_broker="fails")
    try:
        return session.open()._perform(session._call(method, {"application": application, **params}, _same))
    finally:
        session.close()


# asyncio


class AsyncRestorableObject(_Object):
    """An object that this process has registered: `RestorableObject` with coroutines."""

    _session: "AsyncSession"

    @overload
    async def decode(self) -> Saved: ...
    @overload
    async def decode(self, kind: Type[_T]) -> Optional[_T]: ...
    @overload
    async def decode(self, kind: Type[_T], default: _D) -> Union[_T, _D]: ...
    @overload  # of a type that is no class, such as a Union
    async def decode(self, kind: Any, default: Any = None) -> Any: ...
    async def decode(self, kind: Any = None, default: Any = None) -> Any:
        """The saved state; false if it is missing or withheld (see `status`).

        With a type, such as a dataclass, a value of that type; `default` if there is no state.
        """
        return (await self._session._perform(self._decode()))._read(kind, default)

    async def encode(self, state: State, elements: Elements = ()) -> bool:
        """Saves the whole state, on disk when this returns; that of an excluded object is not stored.
        False: the user has quit the application."""
        return await self._session._perform(self._encode(state, elements))

    async def encode_later(self, state: State, elements: Elements = ()) -> None:
        """Saves the state without waiting; it is on disk within 250 ms. Failures are not reported."""
        await self._session.notify("encodeRestorableState", self._encode(state, elements).params)

    async def invalidate(self) -> None:
        """Makes the broker ask for the state soon."""
        await self._session._perform(self._invalidate())

    async def unregister(self) -> None:
        """Removes the object with its state."""
        await self._session._perform(self._unregister())

    async def move(self, parent: Any, take_over: bool = False) -> None:
        """Moves the object, and what is below it, under another parent; None makes it a root."""
        await self._session._perform(self._move(parent, take_over))

    async def rename(self, identifier: Optional[str], position: Optional[int] = None, take_over: bool = False) -> None:
        await self._session._perform(self._rename(identifier, position, take_over))

    async def set_children(self, children: Sequence[Any]) -> None:
        """Gives these children the positions 0, 1, …"""
        await self._session._perform(self._set_children(children))


class AsyncSession(_Session):
    """`Session` for asyncio. The broker is answered whenever the event loop runs, so it serves unless told otherwise.

    Callbacks may be functions or coroutine functions.
    """

    _object_type = AsyncRestorableObject
    _serves = True

    def _prepare(self) -> None:
        self._writer: Optional[asyncio.StreamWriter] = None  # on `_connection`
        self._answers = _Answers()
        self._tasks: Set["asyncio.Future[Any]"] = set()
        self._reader_task: Optional["asyncio.Task[None]"] = None
        self._reconnecting: Optional["asyncio.Task[Any]"] = None
        self._looking: Optional["asyncio.Task[None]"] = None  # for the first broker
        self._meeting: Optional[asyncio.Lock] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None  # in which it was opened
        self._flushing: Optional[asyncio.Lock] = None
        self._is_woken = False

    def _check(self) -> None:
        super()._check()
        if self._loop not in (None, asyncio.get_running_loop()):
            raise RuntimeError(
                f"the session of {self.application} belongs to another event loop; "
                "call it there, as with asyncio.run_coroutine_threadsafe")

    def _leave_to_parent(self) -> None:
        super()._leave_to_parent()
        self._writer = None  # closing it would remove the descriptor from the parent's epoll instance

    def _send_farewell(self, params: Dict[str, Any]) -> None:
        # Its own connection has ended with the event loop.
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as connection:
            connection.settimeout(1)
            connection.connect(self.socket)
            named = {"application": self.application, "session": self.token, **params}
            connection.sendall(self._frame("goodbye", named, 1))
            connection.recv(1)

    async def open(self) -> "AsyncSession":
        """Connects. An `async with` block does this itself."""
        self._check()
        if self._writer is None and not self._is_alone:
            with self._opening():
                await self._joined(self._begin)
        return self

    async def __aenter__(self) -> "AsyncSession":
        return await self.open()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Any) -> None:
        try:
            if kind is None:
                self._hurry()
                with contextlib.suppress(ConnectionError, SessionEndedError):
                    await self.goodbye(self.leave)
            elif issubclass(kind, (SystemExit, KeyboardInterrupt, asyncio.CancelledError)):
                self._hurry(timeout=1)
                with contextlib.suppress(Exception):  # the exception that ended the block is raised
                    await self.goodbye(self._leave_keeping())
        finally:
            await self.close()

    async def close(self) -> None:
        """Closes the connection, without goodbye."""
        if self._forked:
            return
        if not self._ended:
            self._check()
        try:
            if not self._ended:
                await self._look_last()
            if not self._ended and self._has_attributes():
                with self._quietly():
                    await asyncio.wait_for(self.flush(), 1)
        finally:
            self._ended = True
            await self._close()

    async def _close(self) -> None:
        writer = self._writer
        every = [*self._tasks, self._reader_task, self._reconnecting, self._looking]
        tasks = [task for task in every if task and not task.done()]
        self._disconnect()
        current = asyncio.current_task()
        for task in tasks:
            if task is not current:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not current), return_exceptions=True)
        if writer is not None:
            try:
                await asyncio.wait_for(writer.wait_closed(), 1)
            except (OSError, asyncio.TimeoutError, TimeoutError):  # the broker does not read
                writer.transport.abort()

    async def goodbye(self, reason: Leaving) -> None:
        """Ends the session. `restart` and `logout` keep the saved states, `closed` and `userQuit` remove them."""
        self._check()
        await self._look_last()
        with self._quietly():
            await self.flush()
        await self._perform(self._goodbye(reason))
        self._disconnect()

    async def register(
        self,
        identifier: Optional[str],
        parent: Any = None,
        *,
        kind: Kind = "object",
        object_class: Union[str, Sequence[str], None] = None,
        restoration_class: Optional[str] = None,
        storyboard: Optional[Mapping[str, str]] = None,
        position: Optional[int] = None,
        wait: Optional[float] = 10,
        take_over: bool = False,
        confidential: Optional[bool] = None,
        keep: Optional[Keep] = None,
        fresh: bool = False,
        target: Any = None,
        encode: Optional[Callable[[], Any]] = None,
        decode: Optional[Callable[[Saved], Any]] = None,
        finished: Optional[Callable[[], Any]] = None,
    ) -> AsyncRestorableObject:
        """Makes an object known under its path; see `Session.register`."""
        call = self._register(identifier, parent, _Registration(
            kind=kind, object_class=object_class, restoration_class=restoration_class, storyboard=storyboard,
            position=position, wait=wait, take_over=take_over, confidential=confidential, keep=keep, fresh=fresh,
            target=target, encode=encode, decode=decode, finished=finished))
        with self._registering([call]):
            result: AsyncRestorableObject = await self._perform(call)
            await self._drive(result._bind(), self._perform)
            return result

    def _has_returned(self, calls: Sequence[_Call[Any]], turns: int = 3) -> None:
        # A program that awaits `register` by gather or wait_for has the object two turns of the event loop later.
        if turns and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon(self._has_returned, calls, turns - 1)
                return
        super()._has_returned(calls)
        if self._writer is not None:
            self._take_messages(self._lines, self._writer, self._answers)

    async def complete(self) -> int:
        """Says that this process has restored its objects; returns how many processes are still restoring."""
        return await self._perform(self._complete())

    async def extend(self) -> int:
        """Holds back the end of the restoration until `complete`."""
        return await self._perform(self._extend())

    @overload
    async def decode(self) -> Saved: ...
    @overload
    async def decode(self, kind: Type[_T]) -> Optional[_T]: ...
    @overload
    async def decode(self, kind: Type[_T], default: _D) -> Union[_T, _D]: ...
    @overload  # of a type that is no class, such as a Union
    async def decode(self, kind: Any, default: Any = None) -> Any: ...
    async def decode(self, kind: Any = None, default: Any = None) -> Any:
        """The application's own state; false if it is missing or withheld (see `status`).

        With a type, such as a dataclass, a value of that type; `default` if there is no state.
        """
        return (await self._perform(self._decode([])))._read(kind, default)

    async def encode(self, state: State) -> bool:
        """Saves the application's own state, on disk when this returns. While there is a delegate, only it may.

        False: the user has quit the application."""
        return await self._perform(self._encode([], state))

    async def save(
        self, reason: Optional[str] = None, deadline: Optional[float] = None, progress_token: Any = None,
    ) -> Dict[str, Any]:
        """Runs a save round over all processes: `saved`, `generation`, `stale`, …"""
        await self.flush()
        return await self._perform(self._save(reason, deadline, progress_token))

    async def restore(
        self, deadline: Optional[float] = None, progress_token: Any = None, objects: Optional[Sequence[Any]] = None,
    ) -> Dict[str, Any]:
        """Restores all saved objects, or `objects` and what is below them: `restored`, `skipped`, `absent`."""
        await self.flush()
        return await self._perform(self._restore(deadline, progress_token, objects))

    async def register_class(self, name: str, factory: Callable[[Wanted], Any], shared: bool = False) -> None:
        """`factory` makes, and registers, the objects of a restoration class; see `Session.register_class`."""
        await self._perform(self._register_class(name, factory, shared))

    async def register_data_source(self, view: Any, source: Any) -> None:
        """`source.identifier(index_path)` and `source.index_path(identifier)` find elements of the view."""
        await self._perform(self._register_data_source(view, source))

    async def reopen(self, path: Union[str, Path, None] = None) -> Dict[str, Any]:
        """Opens again what was closed at a path, or last: it is there again, vacant, with its state."""
        return await self._perform(self._reopen(path))

    async def forget(self, path: Union[str, Path]) -> None:
        """Forgets a path that no session has, with all vacant objects below it."""
        await self._perform(self._forget(path))

    async def call(
        self, method: str, params: Optional[Mapping[str, Any]] = None, *, timeout: float = 0,
        repeatable: Optional[bool] = None,
    ) -> Any:
        """Calls any method. `repeatable`: it may be sent again if the connection is lost."""
        return await self._perform(self._raw(method, params, timeout, repeatable))

    async def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a notification, which has no answer."""
        self._check()
        call = _Call(method, dict(params or {}), _nothing, False)
        if self._at_once(call):
            return
        await self._ready()
        if self._is_alone:
            return self._remember(call)
        await self._send(self._frame(method, params or {}))
        self._renew(method, params)

    async def flush(self) -> None:
        """Saves at once what attributes were set to; otherwise that happens in the next turn of the event loop."""
        await self._flush(every=True)

    async def _flush(self, every: bool) -> None:
        if self._flushing is None:
            self._flushing = asyncio.Lock()
        async with self._flushing:
            await self._drive(self._pushes(every), self._perform)

    def _wake(self) -> None:
        if not self._is_woken and self._loop is not None:
            self._is_woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._loop.call_later, self._pause, self._turn)

    def _turn(self) -> None:
        self._is_woken = False
        if not self._ended:
            self._start(self._push_quietly())

    async def _push_quietly(self) -> None:
        with self._quietly():
            await self._flush(every=False)

    async def serve(self) -> None:
        """Waits until the session is closed; raises if the broker is lost for good."""
        if self._forked:
            self._check()
        while not self._ended:
            with contextlib.suppress(SessionEndedError):  # closed meanwhile
                await self._ready()
            task = self._looking if self._is_alone else self._reader_task
            if task is not None:
                await asyncio.wait([task])

    # Connection

    async def _begin(self) -> None:
        """Opens the session, in memory if there is no broker."""
        end: Optional[float] = None
        for pause in _pauses():
            try:
                await self._connect()
                return
            except RestorationError as error:
                absence = self._absence(error)
                end = time.monotonic() + self._gap(error) if end is None else end
                if time.monotonic() + pause > end:
                    self._begin_alone(absence)
                    break
            await asyncio.sleep(pause)
        self._loop = asyncio.get_running_loop()
        self._meeting = asyncio.Lock()
        self._looking = asyncio.ensure_future(self._look())
        self._looking.add_done_callback(_observed)

    async def _look(self) -> None:
        """Connects when a broker has come, and saves what is in memory."""
        while True:
            await asyncio.sleep(next(self._tries))
            await self._meet()
            if self._ended or self._memory is None:  # before Python 3.12, `wait_for` may lose a cancellation
                return

    async def _meet(self) -> None:
        assert self._meeting is not None
        async with self._meeting:
            if self._ended or self._memory is None:
                return
            try:
                if self._is_alone:
                    await self._connect()
                    self._arrive()
                    await self._shared(self._tell_first)
                elif self._writer is None or (self._reconnecting is not None and not self._reconnecting.done()):
                    await self._shared(self._reconnect)
                else:
                    await self._shared(lambda: self._drive(self._go_on(True), self._exchange))
            except (RestorationError, OSError) as error:
                self._still_kept(error)
                self._disconnect()  # the next call continues there

    async def _tell_first(self) -> None:
        """Tells the first broker everything. Calls that wait for that are answered from memory if it is gone."""
        try:
            await self._drive(self._go_on(False), self._exchange)
        except (RestorationError, OSError) as error:
            self._still_kept(error)
            self._disconnect()
            self._stay_alone()
        else:
            self._tell_program(False)

    async def _look_last(self) -> None:
        """Before the session ends: a broker may have come just now."""
        self._is_ending = True
        if self._memory is not None:
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                if self._memory._states:  # a task that tells a slow broker of them reads the newest as well
                    await asyncio.wait_for(self._met(), max(1, self.patience))
                await asyncio.wait_for(self._meet(), 1)

    async def _met(self) -> None:
        assert self._meeting is not None
        async with self._meeting:
            pass

    async def _connect(self) -> bool:
        _sessions[id(self)] = self
        connection = self._connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        connection.setblocking(False)
        lines, number = _Lines(), next(self._ids)
        try:
            try:
                await asyncio.wait_for(
                    asyncio.get_running_loop().sock_connect(connection, self.socket), self.timeout)
            except OSError as error:
                raise _unreachable(self.socket, error) from error
            same = await asyncio.wait_for(self._welcome(connection, lines, number), self.timeout)
            reader, writer = await asyncio.open_unix_connection(sock=connection)
        except (asyncio.TimeoutError, TimeoutError):
            connection.close()
            raise NoBrokerError(self.socket, f"the broker on {self.socket} does not answer; try again later") from None
        except BaseException:
            connection.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._writer, self._answers, self._draining, self._lines = writer, _Answers(), asyncio.Lock(), lines
        self._reader_task = asyncio.ensure_future(self._run(reader, writer, self._answers, lines))
        return same

    async def _welcome(self, connection: sockets.socket, lines: _Lines, number: int) -> bool:
        """Calls `initialize`, without streams: a broker that refuses the connection says why, and closes at once."""
        loop, call = asyncio.get_running_loop(), self._initialize()
        with contextlib.suppress(OSError):
            await loop.sock_sendall(connection, self._frame(call.method, call.params, number))
        while True:
            try:
                data = await loop.sock_recv(connection, 1 << 18)
            except OSError:
                data = b""
            if not data:
                _lost(self.socket)
            lines.buffer += data
            for line in iter(lines.next, None):
                message = _message(line)
                if message is None:
                    _foreign(self.socket)
                if "method" in message or message.get("id") not in (number, None):
                    continue
                if "error" in message:
                    raise BrokerError(message["error"], call.params)
                return _finished(call, message)

    def _disconnect(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            self._answers.lose(self.socket)

    async def _run(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: _Answers, lines: _Lines,
    ) -> None:
        """Reads one connection to its end. Not by lines: those of a StreamReader have a limit."""
        try:
            while True:
                if not self._take_messages(lines, writer, answers):
                    return
                if self._loss is not None and not answers.waiting:
                    return
                data = await reader.read(1 << 18)
                if not data:
                    return
                lines.buffer += data
        except OSError:
            pass
        except asyncio.CancelledError:  # the program ends
            self._is_left = not self._ended
            self._ended = True
            raise
        finally:
            self._broken(writer)

    def _broken(self, writer: asyncio.StreamWriter) -> None:
        """The connection is lost: resumes the session on another one, unless that has begun."""
        if self._writer is not writer:
            return
        self._disconnect()
        if self.token is not None and not self._ended and self.patience:
            self._shared(self._reconnect)

    def _take_messages(self, lines: _Lines, writer: asyncio.StreamWriter, answers: _Answers) -> bool:
        """False if something is no message."""
        for message in self._messages(lines):
            if message is None:
                return False
            self._take(message, writer, answers)
        return True

    def _take(self, message: Dict[str, Any], writer: asyncio.StreamWriter, answers: _Answers) -> None:
        if "method" not in message:
            answers.take(message)
        elif "id" not in message:
            for result in self._notified(message["method"], message.get("params") or {}):
                self._start(result)
        else:
            self._start(self._respond(message, writer))

    def _start(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_logged)

    def _task(self) -> Any:
        return asyncio.current_task()

    async def _respond(self, message: Dict[str, Any], writer: asyncio.StreamWriter) -> None:
        _answering.set((self, self._task()))
        line: str = await self._drive(self._reply(message), self._perform)
        if writer is self._writer:
            with contextlib.suppress(ConnectionLostError):
                await self._send(line.encode() + b"\n")

    async def _drive(self, steps: _Answering[_T], perform: Callable[[_Call[Any]], Awaitable[Any]]) -> _T:
        """Performs the calls, and awaits the callbacks, that a generator yields."""
        step: Callable[[], Any] = lambda: next(steps)
        while True:
            try:
                wanted = step()
            except StopIteration as stop:
                value: _T = stop.value
                return value
            try:
                result = await (perform(wanted) if isinstance(wanted, _Call) else wanted)
            except Exception as error:
                step = lambda error=error: steps.throw(error)  # type: ignore[misc]
            else:
                step = lambda result=result: steps.send(result)  # type: ignore[misc]

    async def _reconnect(self) -> None:
        """Connects again, and resumes the session."""
        self._tell_loss()
        loop = asyncio.get_running_loop()
        end = loop.time() + self.patience
        for pause in _pauses():
            try:
                same = await self._connect()
                await self._drive(self._go_on(same), self._exchange)
                break
            except (NoBrokerError, ConnectionLostError):
                self._disconnect()
                if loop.time() + pause > end:
                    raise
                await asyncio.sleep(pause)
        self._tell_program(same)

    def _tell_program(self, same: bool) -> None:
        if self.on_reconnected:
            result = _guarded(self.on_reconnected, same)
            if inspect.isawaitable(result):
                self._start(result)

    async def _ready(self) -> None:
        """Waits for a connection on which the session is resumed."""
        self._check()
        if self._is_alone:
            return
        if self._writer is None or (self._reconnecting is not None and not self._reconnecting.done()):
            await self._joined(self._begin if self.token is None else self._reconnect)

    async def _joined(self, connect: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        waiting = self._shared(connect)
        connecting = self._reconnecting
        try:
            await waiting
        except asyncio.CancelledError:
            if self._ended and connecting is not None and connecting.cancelled():
                self._check()  # `close` has cancelled that, and not the task that waits
            raise

    def _shared(self, connect: Callable[[], Coroutine[Any, Any, Any]]) -> "asyncio.Future[Any]":
        """Connects once for all waiting calls."""
        if self._reconnecting is None or self._reconnecting.done():
            self._reconnecting = asyncio.ensure_future(connect())
            self._reconnecting.add_done_callback(_observed)
        waiting = asyncio.shield(self._reconnecting)
        waiting.add_done_callback(_observed)
        return waiting

    async def _perform(self, call: _Call[_T]) -> _T:
        answers = self._at_once(call)
        if answers:
            return answers[0]
        for attempt in itertools.count(1):
            try:
                await self._ready()
                return self._remember(call) if self._remembers(call) else await self._exchange(call)
            except (ConnectionLostError, CallTimedOutError) as error:
                if not self._forked and self._gives_up(call, error, attempt):
                    raise
        raise AssertionError("the loop has no end")

    async def _exchange(self, call: _Call[_T]) -> _T:
        """A call, repeated on this connection if a new broker takes it over."""
        pauses = _pauses_within(self.patience)
        writer = self._writer
        while True:
            try:
                return await self._ask(call)
            except BrokerError as error:
                self._raise_if_lost(error)
                await asyncio.sleep(_pause_before_again(error, call, pauses))
            if writer is not self._writer:  # the session may not be resumed yet on another connection
                _lost(self.socket)

    async def _ask(self, call: _Call[_T]) -> _T:
        """One request on this connection, and its result."""
        number = next(self._ids)
        request = self._frame(call.method, call.params, number)
        future: "asyncio.Future[_T]" = asyncio.get_running_loop().create_future()

        def fail(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        def succeed(result: _T) -> None:
            if not future.done():
                future.set_result(result)

        answers = self._answers
        answers.waiting[number] = (call, succeed, fail)
        try:
            await self._send(request)
            return await asyncio.wait_for(future, self.timeout + call.seconds)
        except (asyncio.CancelledError, asyncio.TimeoutError, TimeoutError) as error:
            self._cancel(number, answers)
            if isinstance(error, asyncio.CancelledError):
                raise
            raise _unanswered(call) from None
        finally:
            answers.waiting.pop(number, None)
            if not future.cancel():
                _observed(future)

    def _cancel(self, number: int, answers: _Answers) -> None:
        if self._writer is not None and answers is self._answers:
            text = _text({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
            self._writer.write(text.encode() + b"\n")

    async def _send(self, data: bytes) -> None:
        writer = self._writer
        if writer is None:
            _lost(self.socket)
        try:
            if not writer.is_closing():
                writer.write(data)
                async with self._draining:  # before Python 3.10 only one at a time may wait
                    await writer.drain()
                return
        except OSError:
            pass
        self._broken(writer)
        _lost(self.socket)


def _logged(task: "asyncio.Future[Any]") -> None:
    """Tells of an error that nothing awaits, as that of a callback."""
    if not task.cancelled() and task.exception():
        _log.error("%r failed", task, exc_info=task.exception())


def _observed(task: "asyncio.Future[Any]") -> None:
    """Keeps an error that nothing awaits, and raises it at the next call."""
    if not task.cancelled():
        task.exception()
