#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tmux comes back with its sessions, windows, panes, layouts and directories: see README.md.
import codecs, contextlib, fcntl, functools, hashlib, itertools, json, os, re, secrets, subprocess, time, urllib.parse

(SOCKET, SERVER, _), LIMIT = os.environ["TMUX"].rsplit(",", 2), os.environ.get("RESTORATION_WAIT", "2")
APPLICATION, SHELLS = "org.tmux.tmux", ("org.gnu.bash", "org.zsh.zsh", "com.fishshell.fish")
RUNTIME = os.environ.get("XDG_RUNTIME_DIR", "")
REPORT = f"{RUNTIME}/restoration-terminal/tmux.{SERVER}"  # for restorationctl
PLACE = re.sub("(/share/restorationd)?(/restorers/terminal)?/[^/]*$", "", os.path.realpath(__file__))
os.environ["PATH"] += f":{os.path.expanduser('~/.local/bin')}:{PLACE}/bin"  # which tmux need not have
AGAIN = (3, 69, 75)  # of restorationctl: the same may succeed later
LAYOUT = re.compile(r"[0-9a-f]{4},(?!.*([0-9]{5}x|x[0-9]{5}))[0-9][0-9x,{}[\]]{1,5000}")  # others can end tmux 3.3
KEY = re.compile("[0-9a-f]{12}")
ELSEWHERE = (os.path.realpath(os.path.expanduser("~")), "/")  # where tmux begins if a directory is missing
FIELDS = ("session_id", "session_name", "window_id", "window_index", "@restoration_window", "automatic-rename",
          "window_active", "window_zoomed_flag", "window_width", "window_height", "window_layout", "pane_id",
          "pane_active", "pane_pid", "@restoration_shell", "@restoration_directory", "window_name")
codecs.register_error("percent", lambda at: ("".join(f"%{byte:02X}" for byte in at.object[at.start:at.end]), at.end))


def identifier(text):
    """A name that no other text has, with the end of the text for people."""
    readable = re.sub("[^A-Za-z0-9]+", "-", text)[-40:].strip("-")
    return f"{readable}-{hashlib.sha256(os.fsencode(text)).hexdigest()[:16]}"


OBJECT = identifier(SOCKET)
# Former builds gave several sockets one name, unless there was nothing but this in them.
FORMER = SOCKET.replace("/", "_") if re.fullmatch("[A-Za-z0-9/-]{1,200}", SOCKET) else None


def run(*words, **more): return subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", **more)


def broker(command, *words, **more):
    return run("restorationctl", "--timeout", LIMIT, command, APPLICATION, *words, **more)


def tmux(*words):
    """Empty if it fails. None stands between commands: `;` at the end of a word would be the end of one."""
    done = run("tmux", "-NuS", SOCKET, *(re.sub(r";\Z", r"\;", word) if word is not None else ";" for word in words))
    return "" if done.returncode else done.stdout.strip("\n")


def table(*words, fields):
    """Of a command that lists; only the last field may have any characters in it."""
    for text in ("\n" + tmux(*words, "-F", "".join(f"\t#{{{field}}}" for field in fields))).split("\n\t")[1:]:
        yield dict(zip(fields, text.split("\t", len(fields) - 1)))


def change(command):
    """Not in the next server of this socket, whose windows and panes have the same numbers."""
    tmux("if-shell", "-F", f"#{{==:#{{pid}},{SERVER}}}", command)


def is_there(): return tmux("display-message", "-p", "#{pid}") == SERVER  # not the next one


def report(troubles):
    """For `restorationctl terminal status`."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(REPORT), 0o700, exist_ok=True)
        with open(f"{REPORT}.part", "w") as file: file.write("\n".join([str(os.getpid()), OBJECT, *troubles, ""]))
        os.replace(f"{REPORT}.part", REPORT)


def why(done): return done.stderr.partition("\n")[0].replace("restorationctl: ", "", 1)


def forget(shell):
    """Of a pane that was closed; whether it need not be tried again."""
    if not re.fullmatch("tmux-[A-Za-z0-9-]+", shell): return True  # a name that is not of a pane
    with contextlib.suppress(OSError), open(f"{RUNTIME}/restoration-shell/{shell}", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not as long as its keeper may store
        return not [kind for kind in SHELLS
                    if run("restorationctl", "--timeout", LIMIT, "rm", kind, shell).returncode in AGAIN]
    return False


@functools.lru_cache(None)  # once
def leave():
    """tmux need not wait with the rest of its settings."""
    if os.fork(): os._exit(0)
    for number in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), number)


def encoded(directory):
    """Any bytes; most characters are themselves."""
    return re.sub(rb"[\0- %\x7f]", lambda odd: b"%%%02X" % odd[0][0], directory).decode("utf-8", "percent")


class Restorer:
    def __init__(self):
        self.kept = {}  # path → what is stored there
        self.refused = {}  # path → what the broker refuses to store, in which minute, and why
        self.told = set()  # paths of which people have been told that
        self.reported = None
        self.windows = {}  # key → what is saved of a window
        self.written = {}  # path → when that was stored
        self.shells = set()  # of panes that there are, by their names
        self.directories = {}  # number of a pane → where its shell was when it was last seen
        # Not yet: what could not be made. It stays saved, beside what there is, until its session or window goes.
        self.absent_sessions = []
        self.absent_windows = {}  # number of a session → indices and keys
        self.absent_panes = {}  # key → how many panes there are, the layout with the others, and those

    # What was saved

    def read(self):
        """Whether it is known what is saved: what is unknown is not replaced."""
        got = broker("export")
        if got.returncode not in (0, 4):
            leave()  # first: the report names this process
            report([f"nothing has been restored or saved yet: {why(got)}"])
        if got.returncode: return got.returncode == 4
        for saved in json.loads(got.stdout)["objects"]:
            path = saved["path"]
            if path and path[0] in (OBJECT, FORMER) and "state" in saved:
                self.kept["/".join(path)] = saved["state"]
                self.written["/".join(path)] = saved.get("writer", {}).get("written", "")
        self.windows = {path.split("/")[1]: state for path, state in self.kept.items() if path.startswith(OBJECT + "/")}
        return True

    def sessions(self):
        if FORMER in self.kept and OBJECT not in self.kept: return list(self.former(self.kept[FORMER]["panes"]))
        index = self.kept.get(OBJECT, {})
        return index.get("sessions", []) + index.get("absent", [])

    def former(self, panes):
        """One object had the panes of all windows."""
        for name, panes in itertools.groupby(panes, lambda pane: pane["session_name"]):
            windows, active = [], None
            with contextlib.suppress(Exception):
                for index, panes in itertools.groupby(panes, lambda pane: int(pane["window_index"])):
                    panes, key = list(panes), secrets.token_hex(6)
                    size = [int(panes[0]["window_width"]), int(panes[0]["window_height"])]
                    if panes[0]["window_active"] == "1": active = index
                    windows.append([index, key])
                    self.windows[key] = {
                        "name": panes[0]["window_name"], "automatic": panes[0]["automatic-rename"] == "1",
                        "layout": panes[0]["window_layout"], "panes": [
                            {"directory": pane["directory"], "shell": pane["@restoration_shell"],
                             "active": pane["pane_active"] == "1"} for pane in panes]}
            if windows: yield {"name": name, "size": size, "active": active, "windows": windows}

    # How it is restored

    def restore(self):
        with contextlib.suppress(Exception): self.lead_shells()
        for saved in self.sessions():
            with contextlib.suppress(Exception): self.restore_session(saved)  # what is odd is left out

    def lead_shells(self):
        """To where tmux saw them last. After `cd there && program` no prompt has come at which they would tell it."""
        seen = {}  # name of a shell → when its window was stored, and its directory
        for key, window in self.windows.items():
            with contextlib.suppress(Exception):  # what is odd is left out
                for pane in window["panes"]:
                    if re.fullmatch("tmux-[A-Za-z0-9-]+", pane["shell"]):
                        there = urllib.parse.unquote_to_bytes(pane["directory"])
                        seen[pane["shell"]] = self.written[f"{OBJECT}/{key}"], there
        for kind in SHELLS if seen else ():
            got = run("restorationctl", "--timeout", LIMIT, "export", kind)
            for saved in json.loads(got.stdout)["objects"] if not got.returncode else ():
                with contextlib.suppress(Exception):
                    shell, told = saved["path"][-1], urllib.parse.unquote_to_bytes(saved["state"]["directory"])
                    written, there = seen[shell]
                    # The shell's name of a directory may lead through links.
                    if saved["writer"]["written"] < written and os.path.realpath(told) != os.path.realpath(there):
                        text = re.sub(rb"[^A-Za-z0-9/._-]", lambda odd: b"%%%02X" % odd[0][0], there).decode()
                        run("restorationctl", "--timeout", LIMIT, "put", "-r", kind, shell, "/directory", text)

    def restore_session(self, saved):
        name, session, rooms, absent = saved["name"].replace("#", "_"), "", {}, []
        for there in table("list-sessions", fields=("session_id", "session_attached", "session_last_attached",
                                                    "session_name")):
            # Of that name and nobody has looked at it: the settings have made it.
            if there["session_name"] in (name, saved["name"]) and there["session_attached"] == "0" == (
                    there["session_last_attached"] or "0"):
                session, rooms = there["session_id"], dict(self.rooms(there["session_id"]))
        for index, key in saved["windows"] + saved.get("absent", []):
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):  # what is odd is left out
                if rooms.get(index) == "" or not KEY.fullmatch(key): continue
                made = self.restore_window(session, int(index), key, saved, rooms.get(index))
                session = session or made
                if not made: absent.append([index, key])
        if session:
            self.absent_windows[session] = absent
            tmux("select-window", "-t", f"{session}:{int(saved['active'])}")
        elif absent: self.absent_sessions.append({**saved, "windows": absent, "absent": []})

    def rooms(self, session):
        """By the index of a window, a pane that may become another one, or nothing if the settings run a program."""
        for pane in table("list-panes", "-st", session, fields=("window_index", "window_panes", "pane_id",
                                                                "default-command", "pane_start_command")):
            command = pane["pane_start_command"].strip('"')
            is_shell = pane["window_panes"] == "1" and command in ("", pane["default-command"])
            yield int(pane["window_index"]), pane["pane_id"] if is_shell else ""

    def restore_window(self, session, index, key, saved, room):
        """The number of its session, or nothing if it could not be made. Without a session it begins one."""
        window, last, made, absent, active = self.windows[key], "", 0, [], ""
        name = [] if window["automatic"] else ["-n", window["name"].replace("#", "_")]  # tmux would run #(...)
        panes, layout = window["panes"], window["layout"]
        size = ["-x", str(int(saved["size"][0])), "-y", str(int(saved["size"][1]))]
        for pane in panes:
            directory = pane["directory"]
            there, shell = os.fsdecode(urllib.parse.unquote_to_bytes(directory)), pane["shell"]
            if not re.fullmatch("[A-Za-z0-9-]*", shell): shell = ""
            more = ["-e", f"RESTORATION_SHELL={shell}", "-c", there.replace("#", "##")]
            if last: words = ["split-window", "-t", last]
            elif room: words = ["respawn-pane", "-k", "-t", room]
            elif session: words = ["new-window", "-t", f"{session}:{index}", *name]
            else: words = ["new-session", *size, *name]
            new = tmux(*words, *more, *([] if "-k" in words else ["-dPF", "#{session_id} #{pane_id}"])).split()
            if room and not last:
                new = [session, room]
                if name: tmux("rename-window", "-t", room, "--", name[1])
            if not new:
                absent.append({**pane, "absent": True})
                continue
            last, made = new[1], made + 1
            if not session:  # a name that is in use leaves it its number
                tmux("set-environment", "-t", new[0], "-u", "RESTORATION_SHELL")
                tmux("rename-session", "-t", new[0], "--", saved["name"].replace("#", "_"))
                tmux("move-window", "-s", last, "-t", f"{new[0]}:{index}")
            session = new[0]
            is_missing = not os.path.isdir(there) or "#[" in there  # tmux does not begin there
            tmux("set-option", "-wt", last, "@restoration_window", key,
                 None, "set-option", "-pt", last, "@restoration_shell", shell,
                 None, "set-option", "-pt", last, "@restoration_directory", directory if is_missing else "",
                 *([None, "select-layout", "-t", last, "tiled"] if made > 1 else []))  # room for the next one
            if pane["active"]: active = last
        if not made: return ""
        if absent: self.absent_panes[key] = (made, layout, absent)
        if LAYOUT.fullmatch(layout) and layout.count("x") == made + layout.count("{") + layout.count("["):
            tmux("select-layout", "-t", last, layout)  # as many must be in it as there are
        if active: tmux("select-pane", "-t", active)
        if active and window.get("zoomed"): tmux("resize-pane", "-Z", "-t", active)
        return session

    def resume(self):
        """After another restorer of this server: only what it could not make is of interest."""
        index = self.kept.get(OBJECT, {})
        names = {there["session_name"]: there["session_id"] for there in table(
            "list-sessions", fields=("session_id", "session_name"))}
        def known(windows): return [[index, key] for index, key in windows if key in self.windows]
        self.absent_sessions = [{**saved, "windows": known(saved["windows"])} for saved in index.get("absent", [])]
        for saved in index.get("sessions", []):
            if saved["name"] in names: self.absent_windows[names[saved["name"]]] = known(saved.get("absent", []))
        for key, window in self.windows.items():
            absent = [pane for pane in window["panes"] if pane.get("absent")]
            if absent: self.absent_panes[key] = (len(window["panes"]) - len(absent), window["layout"], absent)

    # What there is

    def directory(self, pane):
        """Of its shell; tmux would say where what runs in that is."""
        number, process, wanted = pane["pane_id"], f"/proc/{pane['pane_pid']}", pane["@restoration_directory"]
        try:
            # What is still tmux has not gone there yet.
            if os.readlink(f"{process}/exe") == os.readlink(f"/proc/{SERVER}/exe"): raise OSError
            self.directories[number] = os.readlink(f"{process}/cwd")
        except OSError:  # nor is it known of a shell that has ended, or is another user's: it stays as it was
            if wanted: return wanted
            if not self.directories.get(number):
                self.directories[number] = tmux("display-message", "-pt", number, "#{pane_start_path}")
        there = self.directories[number]
        if wanted and there in ELSEWHERE: return wanted
        if wanted: change(f"set-option -pt {number} @restoration_directory ''")  # its user has left
        return encoded(os.fsencode(there))

    def look(self):
        """Sessions and windows as they are saved, and the names of shells."""
        sessions, windows, shells, keys, seen = {}, {}, set(), {}, set()
        for pane in table("list-panes", "-a", fields=FIELDS):
            number, key = pane["window_id"], pane["@restoration_window"]
            if number not in keys:
                if not KEY.fullmatch(key) or key in keys.values():
                    key = secrets.token_hex(6)
                    change(f"set-option -wt {number} @restoration_window {key}")
                keys[number] = key
            key, index = keys[number], int(pane["window_index"])
            session = sessions.setdefault(pane["session_id"], {
                "name": pane["session_name"], "size": [int(pane["window_width"]), int(pane["window_height"])],
                "active": None, "windows": []})
            if [index, key] not in session["windows"][-1:]: session["windows"].append([index, key])
            if pane["window_active"] == "1": session["active"] = index
            window = windows.setdefault(key, {
                "name": "" if pane["automatic-rename"] == "1" else pane["window_name"],
                "automatic": pane["automatic-rename"] == "1", "layout": pane["window_layout"],
                "zoomed": pane["window_zoomed_flag"] == "1", "panes": []})
            if pane["pane_id"] in seen: continue  # the window is in several sessions
            seen.add(pane["pane_id"])
            shells.add(pane["@restoration_shell"])
            window["panes"].append({"directory": self.directory(pane), "shell": pane["@restoration_shell"],
                                    "active": pane["pane_active"] == "1"})
        for key, window in windows.items():
            made, layout, absent = self.absent_panes.get(key, (0, "", []))
            if made == len(window["panes"]): window["layout"] = layout
            elif len(window["panes"]) == 1: window["layout"] = ""  # it is another one in every size
            window["panes"] += absent
        for number, session in sessions.items():
            if self.absent_windows.get(number): session["absent"] = self.absent_windows[number]
            for _, key in session.get("absent", []): windows.setdefault(key, self.windows[key])
        return sessions, windows, shells

    # How it is stored

    def store(self):
        sessions, windows, shells = self.look()
        if not sessions or not is_there(): return  # there is no pane before the first session
        self.shells = shells | {shell for shell in self.shells - shells if not forget(shell)}
        index = {"sessions": list(sessions.values())}
        if self.absent_sessions: index["absent"] = self.absent_sessions
        for session in self.absent_sessions:
            for _, key in session["windows"]: windows.setdefault(key, self.windows[key])
        states = {f"{OBJECT}/{key}": window for key, window in windows.items()}
        states[OBJECT] = index  # after those that it names
        minute = time.monotonic() // 60
        for path, state in states.items():
            if self.kept.get(path) == state or self.refused.get(path, ())[:2] == (state, minute): continue
            done = broker("put", path, "-", input=json.dumps(state, ensure_ascii=False))
            if done.returncode in AGAIN: return self.report([f"what has changed is not saved yet: {why(done)}"])
            if not done.returncode: self.kept[path] = state
            self.refused.pop(path, None)
            if done.returncode: self.refused[path] = state, minute, why(done).replace(f"{path}: ", "")
        for path in self.kept.keys() - states.keys():
            if broker("rm", path).returncode in AGAIN: return
            del self.kept[path]
        names = {f"{OBJECT}/{key}": f"window {index} of {session['name']}"
                 for session in sessions.values() for index, key in session["windows"]}
        self.refused = {path: refused for path, refused in self.refused.items() if path in states}
        troubles = {path: f"{names.get(path, 'the list of sessions')} is not saved: {reason}"
                    for path, (_, _, reason) in self.refused.items()}
        absent = sum(map(len, [self.absent_sessions, *self.absent_windows.values(), *(
            panes for key, (_, _, panes) in self.absent_panes.items() if key in windows)]))
        self.report([*troubles.values(), *([f"{absent} could not be made, and stay saved"] if absent else [])])
        self.tell(troubles)

    def report(self, troubles):
        if self.reported != (os.getpid(), troubles): report(troubles)
        self.reported = (os.getpid(), troubles)

    def tell(self, troubles):
        """Once, as soon as somebody looks at tmux."""
        self.told &= troubles.keys()
        clients = list(table("list-clients", fields=("client_name",))) if troubles.keys() - self.told else []
        for client in clients:
            for path in troubles.keys() - self.told:  # tmux would run what is in #(...)
                text = re.sub("[#%]", "_", f"restoration: {troubles[path]}")
                tmux("display-message", "-c", client["client_name"], "-d", "10000", text)
        if clients: self.told |= troubles.keys()


try: run("restorationctl", "--version"), fcntl.flock(os.open(f"/proc/{SERVER}", 0), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: raise SystemExit  # there is no such tool, or the settings are read again
tmux("set-environment", "-gu", "RESTORATION_SHELL")
restorer = Restorer()
while is_there() and not restorer.read(): time.sleep(2)
if is_there():
    with contextlib.suppress(Exception):
        restorer.resume() if tmux("show-options", "-sqv", "@restoration_done") else restorer.restore()
    tmux("set-option", "-s", "@restoration_done", "1")  # if this one is killed, the next one only stores
while leave() or is_there():
    time.sleep(2)
    try: restorer.store()
    except Exception as fault: restorer.report([f"what has changed is not saved: {fault!r}"])  # never an end in silence
with contextlib.suppress(OSError): os.remove(REPORT)
