#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tmux comes back with its sessions, windows, panes, layouts and directories: see README.md. Nothing is ever ended.
import contextlib, itertools, json, os, re, shutil, subprocess, time, urllib.parse
(SOCKET, SERVER, _), LIMIT = os.environ["TMUX"].rsplit(",", 2), os.environ.get("RESTORATION_WAIT", "2")
OBJECT = ["org.tmux.tmux", re.sub("[^A-Za-z0-9-]", "_", SOCKET)[-200:]]
FIELDS = ("session_name window_index automatic-rename window_active window_width window_height pane_active "
          "window_layout @restoration_shell pane_pid window_name").split()
LAYOUT = re.compile(r"[0-9a-f]{4},(?!.*([0-9]{5}x|x[0-9]{5}))[0-9][0-9x,{}[\]]{1,5000}")  # others can end tmux 3.3
def run(*words, **more): return subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", **more)
def broker(command, *words, **more): return run("restorationctl", "--timeout", LIMIT, command, *OBJECT, *words, **more)
def tmux(*words):  # empty if it fails; `;` at the end of a word would be the end of a command
    done = run("tmux", "-NuS", SOCKET, *(re.sub(r";\Z", r"\;", word) for word in words))
    return "" if done.returncode else done.stdout.strip("\n")
def panes():
    for text in tmux("list-panes", "-aF", "\x1e" + "\t".join(f"#{{{field}}}" for field in FIELDS)).split("\x1e")[1:]:
        pane, there = dict(zip(FIELDS, text.rstrip("\n").split("\t", len(FIELDS) - 1))), b""
        with contextlib.suppress(OSError):  # of the shell, any bytes; tmux would tell that of what runs in it
            there = os.readlink(b"/proc/%s/cwd" % pane.pop("pane_pid", "").encode())
        yield {**pane, "directory": urllib.parse.quote(there)}
def restore(name, saved):  # tmux would run what is in #(...) of a name, and of a directory if # were not doubled
    session, last, made = "", {}, []
    for pane in saved:  # `last` is the last pane of each window
        index, there = int(pane["window_index"]), urllib.parse.unquote_to_bytes(pane["directory"])
        new = (["split-window", "-t", last[index]] if index in last else ["new-window", "-t", f"{session}:{index}"]
               if session else ["new-session", "-x", pane["window_width"], "-y", pane["window_height"]])
        new += [*([] if index in last else ["-n", pane["window_name"].replace("#", "_")]), "-e",
                f"RESTORATION_SHELL={pane['@restoration_shell']}"]  # shell.bash looks whether it is a name
        there = os.fsdecode(there).replace("#", "##") if os.path.isdir(there) else os.path.expanduser("~")
        if not (new := tmux(*new, "-c", there, "-dPF", "#{session_id} #{pane_id}").split()): continue
        if not session:  # a name that is in use leaves it its number
            tmux("set-environment", "-t", new[0], "-u", "RESTORATION_SHELL")
            tmux("rename-session", "-t", new[0], "--", name.replace("#", "_"))
            tmux("move-window", "-s", new[1], "-t", f"{new[0]}:{index}")
        session, last[index], made = *new, [*made, (pane, new[1])]
        tmux("set-option", "-pt", new[1], "@restoration_shell", pane["@restoration_shell"])
        tmux("select-layout", "-t", new[1], "tiled")  # room for the next one
    for pane, new in made:
        if LAYOUT.fullmatch(pane["window_layout"]): tmux("select-layout", "-t", new, pane["window_layout"])
        tmux("set-option", "-wt", new, "automatic-rename", "on" if pane["automatic-rename"] == "1" else "off")
        if pane["pane_active"] == "1": tmux("select-pane", "-t", new)
        if pane["pane_active"] == pane["window_active"] == "1": tmux("select-window", "-t", new)
def is_there(): return tmux("display-message", "-p", "#{pid}") == SERVER  # not the next one
def leave():  # tmux need not wait with the rest of its settings
    if child := os.fork(): os._exit(bool(tmux("set-option", "-s", "@restoration", str(child))))
    for number in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), number)
before, kept, attempts, got = tmux("show-options", "-sqv", "@restoration"), None, itertools.count(), None
if not shutil.which("restorationctl") or before and os.path.exists(f"/proc/{before}"): raise SystemExit  # read again
tmux("set-environment", "-gu", "RESTORATION_SHELL")
while not before and is_there() and (got := broker("get")).returncode not in (0, 4):  # or it would replace it
    time.sleep(5 if next(attempts) else leave() or 1)
with contextlib.suppress(Exception):  # what is odd is left out
    for name, saved in itertools.groupby(json.loads(got.stdout)["panes"], lambda pane: pane["session_name"]):
        with contextlib.suppress(Exception): restore(name, list(saved))
if not next(attempts): leave()
while is_there():
    now = list(panes())  # none before the first session
    if now not in ([], kept) and is_there() and not broker("put", "-", input=json.dumps({"panes": now})).returncode:
        kept = now
    time.sleep(2)
