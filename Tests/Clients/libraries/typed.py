#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""States of types of the program's own, with Protocol/clients/python: typed.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import collections
import datetime
import decimal
import enum
import pathlib
import random
import re
import sys
import types
import uuid
from dataclasses import dataclass, field
from typing import (
    Any, ClassVar, Counter, DefaultDict, Dict, FrozenSet, Generic, List, Literal, NamedTuple, Optional, Sequence, Set,
    Tuple, TypedDict, TypeVar, Union)

import restorationd

APPLICATION = "org.example.Notes"
UTC = datetime.timezone.utc


class Color(enum.Enum):
    RED = "red"
    BLUE = (0, 0, 255)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Style(enum.Flag):
    BOLD = 1
    ITALIC = 2


class Mode(str, enum.Enum):
    READ = "r"


class Point(NamedTuple):
    x: int
    y: int = 0


class Window(TypedDict):
    width: int
    corners: List[Point]


@dataclass
class Pane:
    name: str
    children: List[Pane] = field(default_factory=list)


@dataclass
class Split:
    ratio: float = 0.5


@dataclass
class Draft:
    text: str = ""
    cursor: int = 0
    zoom: float = 1
    dirty: bool = False
    selection: Optional[Tuple[int, int]] = None
    color: Color = Color.RED
    level: Level = Level.LOW
    style: Style = Style.BOLD
    mode: Mode = Mode.READ
    opened: Optional[datetime.datetime] = None
    alarm: datetime.datetime = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)
    day: datetime.date = datetime.date(2026, 1, 2)
    at: datetime.time = datetime.time(1, 2, 3, 4)
    spent: datetime.timedelta = datetime.timedelta(days=3, microseconds=7)
    file: pathlib.Path = pathlib.Path("/notes/ä.txt")
    odd: pathlib.Path = pathlib.Path("/notes/\udcff")
    identity: uuid.UUID = uuid.UUID(int=5)
    picture: bytes = b"\0\xff"
    buffer: bytearray = field(default_factory=bytearray)
    price: decimal.Decimal = decimal.Decimal("0.10000000000000000000000000001")
    marks: Tuple[int, ...] = ()
    colors: Set[Color] = field(default_factory=set)
    tags: FrozenSet[str] = frozenset()
    points: Dict[str, Point] = field(default_factory=dict)
    lines: Dict[int, str] = field(default_factory=dict)
    grid: Dict[Tuple[int, int], Mode] = field(default_factory=dict)
    tree: Pane = field(default_factory=lambda: Pane("root"))
    window: Window = field(default_factory=lambda: Window(width=1, corners=[]))
    tab: Literal["text", 3] = 3
    shown: Union[Split, Pane, str] = "nothing"
    recent: Sequence[int] = field(default_factory=list)
    front: Optional[restorationd.Reference] = None
    _view: Any = field(default=None, init=False, repr=False)


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T
    more: List[T] = field(default_factory=list)


@dataclass
class Shelf:
    box: Box[pathlib.Path] = field(default_factory=lambda: Box(pathlib.Path("a"), [pathlib.Path("b")]))
    words: Counter[str] = field(default_factory=collections.Counter)
    pages: DefaultDict[str, List[int]] = field(default_factory=lambda: collections.defaultdict(list))


@dataclass
class Choice:
    file: Union[pathlib.Path, str] = ""
    moment: Union[datetime.datetime, datetime.date, None] = None
    number: Union[float, int] = 0
    color: Union[Color, str] = "red"


@dataclass
class Owner:
    view: Optional[restorationd.RestorableObject] = None


@dataclass
class Holder:
    owners: List[Owner] = field(default_factory=list)


def made(seed: int) -> Draft:
    """One with other values in all fields."""
    rng = random.Random(seed)

    def text() -> str:
        return "".join(rng.choice("ab$/.\0\n\"\\äß€😀 ") for _ in range(rng.randrange(6)))

    def some(make: Any) -> List[Any]:
        return [make() for _ in range(rng.randrange(4))]

    def number() -> int:
        return rng.choice([0, -1, 1 << 70, rng.randrange(1000)])

    def point() -> Point:
        return Point(number(), number())

    def pane(depth: int = 3) -> Pane:
        return Pane(text(), some(lambda: pane(depth - 1)) if depth else [])

    moment = datetime.datetime(rng.randrange(1, 9999), 2, 28, 23, 59, 59, rng.randrange(10 ** 6))
    zone = datetime.timezone(datetime.timedelta(minutes=rng.randrange(-800, 800)))
    keys = ["$data", "$date", "$restorable", "$literal", "a/b", "", "2026-02-28T09:05:00Z"]
    return Draft(
        text(), number(), rng.choice([0.1, 1e300, -2.0, 3]), rng.random() < 0.5, (number(), number()),
        rng.choice(list(Color)), rng.choice(list(Level)), Style(rng.randrange(4)), Mode.READ,
        moment.replace(year=2026, tzinfo=zone), moment, moment.date(), moment.time(),
        datetime.timedelta(rng.randrange(-9999, 9999), rng.randrange(86400), rng.randrange(10 ** 6)),
        pathlib.Path("/" + text().replace("\0", "")), pathlib.Path("\udc80" + text().replace("\0", "")),
        uuid.UUID(int=rng.getrandbits(128)), rng.randbytes(rng.randrange(5)), bytearray(rng.randbytes(3)),
        decimal.Decimal(rng.getrandbits(200)).scaleb(-30, decimal.Context(prec=80)), tuple(some(number)),
        set(some(lambda: rng.choice(list(Color)))), frozenset(some(text)),
        {rng.choice(keys): point() for _ in range(2)}, {number(): text() for _ in range(2)},
        {(number(), number()): Mode.READ for _ in range(2)}, pane(), Window(width=number(), corners=some(point)),
        "text" if rng.random() < 0.5 else 3, (pane(), Split(0.25), text())[rng.randrange(3)], some(number))


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def refused(work: Any) -> restorationd.InvalidStateError:
    try:
        work()
    except restorationd.InvalidStateError as error:
        return error
    raise AssertionError("it is not refused")


def comes_back(socket: str) -> None:
    for seed in range(25):
        draft = made(seed)
        with restorationd.Session(APPLICATION, socket=socket) as session:
            draft.front = session.register("Front").reference
            session.register("Editor").encode(draft)
        with restorationd.Session(APPLICATION, socket=socket) as session:
            front = session.register("Front")
            found = session.register("Editor").decode(Draft)
            assert found is not None and found.front is not None
            equal(found.front.object, front)
            equal(found.opened and found.opened.utcoffset(), draft.opened and draft.opened.utcoffset())
            draft.front = found.front
            equal(found, draft)
            equal(type(found.zoom), float)
    restorationd.store(APPLICATION, "Script", made(0), socket)
    equal(restorationd.load(APPLICATION, "Script", socket).decode(Draft), made(0))


def comes_back_in_asyncio(socket: str) -> None:
    async def work() -> None:
        async with restorationd.AsyncSession(APPLICATION, socket=socket) as session:
            editor = await session.register("Editor", encode=lambda: made(2))
            equal(await editor.decode(Draft), None)
            equal(await editor.decode(Draft, Draft("new")), Draft("new"))
            equal(await session.decode(Draft, default=5), 5)
            await editor.encode(made(1))
            equal(await editor.decode(Draft), made(1))
            equal((await session.save())["stale"], [])
            equal(await editor.decode(Draft), made(2))
            await session.encode({"last": made(3)})
            equal(await session.decode(Dict[str, Draft]), {"last": made(3)})

    asyncio.run(work())


def is_of_another_version(socket: str) -> None:
    with restorationd.Session(APPLICATION, socket=socket) as session:
        editor = session.register("Editor", None)
        editor.encode({"text": "old", "removed": 1})
        equal(editor.decode(Draft), Draft("old"))
        wrong: Dict[str, Dict[str, Any]] = {
            "cursor: expected int, found 'x' (str)": {"cursor": "x"},
            "dirty: expected bool, found 1 (int)": {"dirty": 1},
            "zoom: expected float, found None (NoneType)": {"zoom": None},
            "tree.children[1].name: expected str, found 3 (int)":
                {"tree": {"name": "a", "children": [{"name": "b"}, {"name": 3}]}},
            "tree.name: expected str, found nothing; give the field a default": {"tree": {}},
            "color: expected Color, found 'green' (str)": {"color": "green"},
            "day: expected date, found 'today' (str)": {"day": "today"},
            "selection: expected Tuple[int, int], found [1] (list)": {"selection": [1]},
            "points['a/b'][1]: expected int, found '2' (str)": {"points": {"a/b": [1, "2"]}},
            "spent: expected timedelta, found 1e+99 (float)": {"spent": 1e99},
        }
        for said, state in wrong.items():
            editor.encode(state)
            error = refused(lambda: editor.decode(Draft))
            equal(str(error), f"Editor: {said}")
            equal((error.path, error.field), (("Editor",), said.partition(":")[0]))


def is_of_the_first_type_that_fits(socket: str) -> None:
    with restorationd.Session(APPLICATION, socket=socket) as session:
        editor = session.register("Editor")
        # Before anything is saved: a mistake of the first run is not to wait for the second.
        for wrong in ("Editor", ["Editor"], 3, Draft("new"), editor):
            for decode in (editor.decode, session.decode):
                try:
                    decode(wrong, None)
                    raise AssertionError(f"{wrong!r} is taken for a type")
                except TypeError as error:
                    assert "decode() takes a type" in str(error), error
        moment, day = datetime.datetime(2026, 1, 2), datetime.date(2026, 1, 2)
        for choice in (Choice(pathlib.Path("a"), moment, 1, Color.RED), Choice(pathlib.Path("b"), day, 1.0)):
            editor.encode(choice)
            found = editor.decode(Choice)
            assert found is not None
            equal((found.file, found.moment, found.color), (choice.file, choice.moment, Color.RED))
            equal((type(found.number), type(found.moment)), (type(choice.number), type(choice.moment)))
        shelf = Shelf(words=collections.Counter("aab"))
        shelf.pages["x"].append(3)
        editor.encode(shelf)
        found_shelf = editor.decode(Shelf)
        equal(found_shelf, shelf)
        assert found_shelf is not None
        equal((found_shelf.pages["new"], found_shelf.words["c"]), ([], 0))
        editor.encode({"content": 3, "more": ["x"]})
        equal(editor.decode(Box), Box(3, ["x"]))
        if sys.version_info >= (3, 11):
            equal(editor.decode(Partial), {"content": 3})


if sys.version_info >= (3, 11):
    from typing import NotRequired, Required

    class Partial(TypedDict):
        content: int
        gone: NotRequired[int]

    class Rest(TypedDict, total=False):
        gone: Required[int]


def cannot_be_written(socket: str) -> None:
    with restorationd.Session(APPLICATION, socket=socket) as session:
        editor = session.register("Editor")
        draft = Draft(tree=Pane("root", [Pane("a"), Pane(len)]))  # type: ignore[arg-type]
        error = refused(lambda: editor.encode(draft))
        equal((error.path, error.field), (("Editor",), "tree.children[1].name"))
        equal(refused(lambda: session.encode(Draft(zoom=float("nan")))).field, "zoom")
        moment, file = datetime.datetime.now(), pathlib.Path("a")
        states: List[Any] = [{"time": moment}, {"file": file}, {"set": {1}}, {"rows": iter("ab")}]
        for state in states:  # what no type would bring back
            refused(lambda: editor.encode(state))
        around: List[Any] = []
        around.append(around)
        for part, why in (
            (float("nan"), "nan (float) cannot be part of a state"), ({1}, "{1} (set) cannot be part of a state"),
            ("\ud800", "'\\ud800' is no text: it has half of a surrogate pair"),
            ({"\ud800": 1}, "'\\ud800' is no text: it has half of a surrogate pair"),
            ({(1, 2): 3}, "the key (1, 2) (tuple) cannot be part of a state; keys are str"),
            ({1: "one"}, "the key 1 (int) cannot be part of a state; keys are str"),
            ({"1": 3, 1: 2}, "the key 1 (int) cannot be part of a state; keys are str"),
            (types.MappingProxyType({None: 2}), "the key None (NoneType) cannot be part of a state; keys are str"),
            (around, "Circular reference detected"), (moment, "a datetime in a state needs a time zone"),
        ):
            state = {"a": [[], {"b/c": (1, part)}]}
            field = "a[1]['b/c'][1]" + ("[0]" if part is around else "")
            for work in (lambda: editor.encode(state), lambda: editor.encode_later(state)):
                error = refused(work)
                equal((str(error), error.path, error.field), (f"Editor: {field}: {why}", ("Editor",), field))
            equal(refused(lambda: session.encode(state)).path, ())
            equal(refused(lambda: restorationd.store(APPLICATION, ["A", "B"], state, socket)).path, ("A", "B"))
        try:
            editor.encode({"text": "x" * (5 << 20)})
            raise AssertionError("it is not refused")
        except restorationd.BrokerError as beyond:
            assert str(beyond).startswith("Editor: a message is beyond frameBytesMax: 52430"), beyond
        error = refused(lambda: editor.encode({"size": 1, "page": Draft(zoom=float("inf"))}))
        equal(str(error), "Editor: page.zoom: inf (float) cannot be part of a state")
        error = refused(lambda: editor.encode({}, [{"role": "selected", "indexPath": {0}}]))
        equal(str(error), "Editor: this cannot be sent: {0} (set) cannot be part of a state")
        for surrogate in (Draft("\ud800"), Draft(tree=Pane("a", [Pane("\udcff")]))):
            assert refused(lambda: editor.encode(surrogate)).field in ("text", "tree.children[0].name")
        error = refused(lambda: editor.encode(Holder([Owner()])))  # no type hint brings it back
        equal((error.path, error.field), (("Editor",), "owners.view"))
        pane = Pane("root")
        pane.children.append(pane)
        equal(refused(lambda: editor.encode(pane)).path, ("Editor",))
        equal(editor.decode().state, None)
        if sys.version_info >= (3, 11):
            editor.encode({})
            equal(refused(lambda: editor.decode(Rest)).field, "gone")


def is_nested_too_deep(socket: str) -> None:
    """So deep that Python itself gives up."""
    levels: List[Any] = []
    pane = ring = Pane("ring")
    ring.children.append(ring)
    for _ in range(1000):
        levels, pane = [levels], Pane("outer", [pane])
    said = r": RecursionError: .*; a state is not nested in itself, nor deeper than stateDepthMax, 56 by default"
    with restorationd.Session(APPLICATION, socket=socket) as session:
        editor = session.register("Editor")
        states: List[Any] = [levels, {"a": levels}, pane, ring, {"pane": pane}]
        for state in states:
            for path, work in (
                (["Editor"], lambda: editor.encode(state)), (["Editor"], lambda: editor.encode_later(state)),
                ([], lambda: session.encode(state)),
                (["A"], lambda: restorationd.store(APPLICATION, "A", state, socket)),
            ):
                error = refused(work)
                equal(error.path, tuple(path))
                assert re.fullmatch(("/".join(path) or "the application's state") + said, str(error)), error
        equal(editor.decode().state, None)


def fits_its_type_when_it_is_written(socket: str) -> None:
    """What a later start could not read is refused by the one that writes it."""
    made: List[int] = []

    class Title(str):
        pass

    @dataclass
    class Counted:
        count: int = 0
        title: str = ""
        opened: Optional[datetime.datetime] = None
        front: Optional[restorationd.Reference] = None
        owned: Set[Page] = field(default_factory=set)

        def __post_init__(self) -> None:
            made.append(self.count)

    with restorationd.Session(APPLICATION, socket=socket, serving=True) as session:
        draft = Draft(cursor=80)
        editor = session.register("Editor")
        asked: List[Any] = [draft]
        served = session.register("Served", encode=lambda: asked[0])
        editor.encode(draft)
        wrong: Dict[str, Any] = {
            "cursor: expected int, found 120.0 (float)": 80 * 1.5,
            "dirty: expected bool, found 1 (int)": 1,
            "text: expected str, found None (NoneType)": None,
            "selection[1]: expected int, found '2' (str)": (1, "2"),
            "marks: expected Tuple[int, ...], found {'a': 1} (dict)": {"a": 1},
            "tree.children[0].name: expected str, found 3 (int)": Pane("root", [Pane(3)]),  # type: ignore[arg-type]
            f"window.corners: expected List[{__name__}.Point], found nothing; give the field a default": {"width": 1},
            "color: expected Color, found 'green' (str)": "green",
        }
        for said, value in wrong.items():
            name = said.partition(":")[0]
            changed = Draft(cursor=80)
            setattr(changed, name.partition(".")[0].partition("[")[0], value)
            for work in (lambda: editor.encode(changed), lambda: editor.encode_later(changed)):
                error = refused(work)
                equal((str(error), error.path, error.field), (f"Editor: {said}", ("Editor",), name))
            equal(str(refused(lambda: session.encode(changed))), f"the application's state: {said}")
            equal(str(refused(lambda: restorationd.store(APPLICATION, "A", changed, socket))), f"A: {said}")
        equal(editor.decode(Draft), Draft(cursor=80))
        draft.cursor = "x"  # type: ignore[assignment]
        for answer, said in ((draft, "cursor: expected int"), ({"a": {1}}, "a: {1} (set) cannot be part of a state")):
            asked[0] = answer
            [stale] = session.save()["stale"]
            assert f"Served: {said}" in stale["message"], stale
        equal(served.decode().state, None)
        # What comes back otherwise than it was written still fits.
        counted = Counted(1, Title("t"), Moment.now(UTC), editor, {Page(2)})  # type: ignore[arg-type]
        made.clear()
        editor.encode(counted)
        equal(made, [])  # nothing of the program runs because of it
        found = editor.decode(Counted)
        assert found is not None and found.front is not None
        equal((found.title, found.front.object, found.owned), ("t", editor, {Page(2)}))


class Moment(datetime.datetime):
    pass


@dataclass
class FirstNote:
    body: str = "Hello"


@dataclass(unsafe_hash=True)
class Page:
    number: int = 1
    state_version: ClassVar[int] = 3

    @staticmethod
    def migrate_state(saved: Dict[str, Any], version: int) -> None:
        assert "$version" not in saved
        saved.setdefault("number", 10 * version)


@dataclass
class SecondNote:
    text: str
    page: Page = field(default_factory=Page)
    state_version: ClassVar[int] = 2

    @staticmethod
    def migrate_state(saved: Dict[str, Any], version: int) -> None:
        if version < 2:
            saved["text"] = saved.pop("body")


@dataclass
class Numbered:
    state_version: int = 2


def older_forms_are_migrated(socket: str) -> None:
    with restorationd.Session(APPLICATION, socket=socket) as session:
        note = session.register("Note")
        # A field of that name is one like the others.
        note.encode(Numbered(3))
        equal(note.decode().state, {"state_version": 3})
        equal(note.decode(Numbered), Numbered(3))
        note.encode(FirstNote())
        equal(note.decode(SecondNote), SecondNote("Hello"))
        note.encode(SecondNote("Hi"))
        equal(note.decode().state, {"$version": 2, "text": "Hi", "page": {"$version": 3, "number": 1}})
        equal(note.decode(SecondNote), SecondNote("Hi"))
        equal(note.decode(Union[FirstNote, SecondNote]), SecondNote("Hi"))
        equal(note.decode(Union[SecondNote, Dict[str, Any]]), SecondNote("Hi"))
        note.encode({"$version": 2, "text": "Hi", "page": {"$version": 2}})
        equal(note.decode(SecondNote), SecondNote("Hi", Page(20)))
        for newer in (4, "2", True):
            note.encode({"$version": 2, "text": "Hi", "page": {"$version": newer}})
            error = refused(lambda: note.decode(SecondNote))
            equal((error.path, error.field), (("Note",), "page"))
        note.encode({"$version": 1})
        assert "KeyError: 'body'" in str(refused(lambda: note.decode(SecondNote)))


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
