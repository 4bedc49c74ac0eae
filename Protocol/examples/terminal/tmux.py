#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tmux comes back with its sessions, windows, panes, layouts and directories: see README.md. Nothing is ever ended.
import contextlib, fcntl, functools, hashlib, itertools, json, os, re, subprocess, time, urllib.parse
(SOCKET, SERVER, _), LIMIT = os.environ["TMUX"].rsplit(",", 2), os.environ.get("RESTORATION_WAIT", "2")
def identifier(text):  # a name that no other text has, with the end of the text for people
    readable = re.sub("[^A-Za-z0-9]+", "-", text)[-40:].strip("-")
    return f"{readable}-{hashlib.sha256(os.fsencode(text)).hexdigest()[:16]}"
OBJECT = identifier(SOCKET)
# Former builds gave several sockets one name, unless there was nothing but this in them.
FORMER = SOCKET.replace("/", "_") if re.fullmatch("[A-Za-z0-9/-]{1,200}", SOCKET) else None
FIELDS = ("session_name window_index automatic-rename window_active window_width window_height pane_active "
          "window_layout @restoration_shell pane_pid window_name").split()
LAYOUT = re.compile(r"[0-9a-f]{4},(?!.*([0-9]{5}x|x[0-9]{5}))[0-9][0-9x,{}[\]]{1,5000}")  # others can end tmux 3.3
def run(*words, **more): return subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", **more)
def broker(command, path, *words, **more):
    return run("restorationctl", "--timeout", LIMIT, command, "org.tmux.tmux", path, *words, **more)
def saved():
    found = broker("get", OBJECT)
    return broker("get", FORMER) if found.returncode == 4 and FORMER else found
def tmux(*words):  # empty if it fails; `;` at the end of a word would be the end of a command
    done = run("tmux", "-NuS", SOCKET, *(re.sub(r";\Z", r"\;", word) for word in words))
    return "" if done.returncode else done.stdout.strip("\n")
def panes():
    for text in ("\n" + tmux("list-panes", "-aF", "".join(f"\t#{{{field}}}" for field in FIELDS))).split("\n\t")[1:]:
        pane, there = dict(zip(FIELDS, text.split("\t", len(FIELDS) - 1))), b""
        with contextlib.suppress(OSError):  # of the shell, any bytes; tmux would tell that of what runs in it
            there = os.readlink(b"/proc/%s/cwd" % pane.pop("pane_pid", "").encode())
        yield {**pane, "directory": urllib.parse.quote(there)}
def restore(name, saved):  # tmux would run what is in #(...) of a name, and of a directory if # were not doubled
    session, last, made = "", {}, []
    for pane in saved:  # `last` is the last pane of each window
        index, shell = int(pane["window_index"]), (re.fullmatch("[A-Za-z0-9-]*", pane["@restoration_shell"]) or [""])[0]
        there = os.fsdecode(urllib.parse.unquote_to_bytes(pane["directory"])).replace("#", "##")
        new = (["split-window", "-t", last[index]] if index in last else ["new-window", "-t", f"{session}:{index}"]
               if session else ["new-session", "-x", pane["window_width"], "-y", pane["window_height"]])
        if index not in last and pane["automatic-rename"] != "1": new += ["-n", pane["window_name"].replace("#", "_")]
        new = tmux(*new, "-e", f"RESTORATION_SHELL={shell}", "-c", there, "-dPF", "#{session_id} #{pane_id}").split()
        if not new: continue
        if not session:  # a name that is in use leaves it its number
            tmux("set-environment", "-t", new[0], "-u", "RESTORATION_SHELL")
            tmux("rename-session", "-t", new[0], "--", name.replace("#", "_"))
            tmux("move-window", "-s", new[1], "-t", f"{new[0]}:{index}")
        session, last[index], made = *new, [*made, (index, pane, new[1])]
        tmux("set-option", "-pt", new[1], "@restoration_shell", shell)
        tmux("select-layout", "-t", new[1], "tiled")  # room for the next one
    for index, pane, new in made:
        layout, panes = pane["window_layout"], [window for window, *_ in made].count(index)  # as many must be in it
        if LAYOUT.fullmatch(layout) and layout.count("x") == panes + layout.count("{") + layout.count("["):
            tmux("select-layout", "-t", new, layout)
        for what in ("pane", "window"): pane[f"{what}_active"] == "1" and tmux(f"select-{what}", "-t", new)
def is_there(): return tmux("display-message", "-p", "#{pid}") == SERVER  # not the next one
@functools.lru_cache(None)  # once
def leave():  # tmux need not wait with the rest of its settings
    if os.fork(): os._exit(0)
    for number in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), number)
try: run("restorationctl", "--version"), fcntl.flock(os.open(f"/proc/{SERVER}", 0), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: raise SystemExit  # there is no such tool, or the settings are read again
tmux("set-environment", "-gu", "RESTORATION_SHELL")
done, got, kept = tmux("show-options", "-sqv", "@restoration_done"), None, None  # what is unknown is not replaced
while not done and is_there() and (got := saved()).returncode not in (0, 4): leave() or time.sleep(2)
with contextlib.suppress(Exception):  # what is odd is left out
    for name, saved in itertools.groupby(json.loads(got.stdout)["panes"], lambda pane: pane["session_name"]):
        with contextlib.suppress(Exception): restore(name, list(saved))
if is_there(): tmux("set-option", "-s", "@restoration_done", "1")  # if this one is killed, the next one only stores
while leave() or is_there():  # there is no pane before the first session
    if (now := list(panes())) not in ([], kept) and is_there():
        if not broker("put", OBJECT, "-", input=json.dumps({"panes": now})).returncode:
            if not kept and FORMER: broker("rm", FORMER)
            kept = now
    time.sleep(2)
