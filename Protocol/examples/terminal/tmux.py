#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tmux comes back with its sessions, windows, panes, layouts and directories: see README.md.
import itertools, json, os, re, subprocess, time
from contextlib import suppress
from urllib.parse import quote, unquote_to_bytes
SOCKET = os.environ["TMUX"].split(",")[0]
OBJECT = ["org.tmux.tmux", re.sub("[^A-Za-z0-9_-]", "_", os.path.basename(SOCKET))]
FIELDS = ("session_name session_id window_index automatic-rename window_active window_width window_height pane_active "
          "window_layout @restoration_shell pane_start_command pane_pid window_name").split()
ODD = (ValueError, KeyError, TypeError, AttributeError, OSError)  # what is saved is not what this program saves
NEWS = b"refresh-client -B 'x::#{S:#{W:#{window_layout}#{window_name}#{P:#{pane_active}#{pane_current_path}}}}'\n"
LAYOUT = re.compile("[0-9a-f]{4},(?!.*([0-9]{5}x|x[0-9]{5}))[0-9].*")  # others can end tmux 3.3
def run(*words, **more): return subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", **more)
def tmux(*words, cwd="/"):  # the end of a word would be one of a command
    return run("tmux", "-NuS", SOCKET, *(re.sub(r";\Z", r"\;", word) for word in words), cwd=cwd).stdout.strip("\n")
def broker(command, *words, **options): return run("restorationctl", command, *OBJECT, *words, **options)

def panes():
    for text in tmux("list-panes", "-aF", "\x1e" + "\t".join(f"#{{{field}}}" for field in FIELDS)).split("\x1e")[1:]:
        pane = dict(zip(FIELDS, text.rstrip("\n").split("\t", len(FIELDS) - 1)))
        with suppress(OSError):  # the directory of the shell, any bytes; tmux would tell that of what runs in it
            yield {**pane, "directory": quote(os.readlink(b"/proc/%s/cwd" % pane.pop("pane_pid", "").encode()))}

def restore(name, saved):  # of names, tmux would run what is in #(...); its options would expand directories as well
    session, last = "", {}  # the last pane of each window
    for pane in saved:
        index, title = pane["window_index"], ["-n", pane["window_name"].replace("#", "_")]
        new = (["split-window", "-t", last[index]] if index in last else
               ["new-window", "-t", f"{session}:{index}", *title] if session else
               ["new-session", *title, "-x", pane["window_width"], "-y", pane["window_height"], "-s",
                name.replace("#", "_")])
        new += ["-dPF", "#{session_id} #{pane_id}", "-e", "RESTORATION_SHELL=" + pane["@restoration_shell"]]
        directory, first = unquote_to_bytes(pane["directory"]), not session
        if not os.path.isdir(directory): directory = os.path.expanduser("~")
        session, last[index] = tmux(*new, cwd=directory).split()
        pane["id"] = last[index]
        if first: tmux("set-environment", "-t", session, "-u", "RESTORATION_SHELL")
        if first: tmux("move-window", "-s", last[index], "-t", f"{session}:{index}")
        tmux("select-layout", "-t", last[index], "tiled")  # room for the next one
    for pane in saved:
        if LAYOUT.fullmatch(pane["window_layout"]): tmux("select-layout", "-t", pane["id"], pane["window_layout"])
        tmux("set-option", "-wt", pane["id"], "automatic-rename", "on" if pane["automatic-rename"] == "1" else "off")
        if pane["pane_active"] == "1": tmux("select-pane", "-t", pane["id"])
        if pane["pane_active"] == pane["window_active"] == "1": tmux("select-window", "-t", pane["id"])
    return session

def is_idle(session):  # only a shell is there; one that sources shell.bash has a copy of itself beside it
    def read(name): return open(f"/proc/{name}", errors="replace").read()
    with suppress(ValueError, OSError):
        [pid] = tmux("list-panes", "-st", session, "-F", "#{pane_pid}").split()
        children = [read(f"{child}/cmdline") for child in read(f"{pid}/task/{pid}/children").split()]
        return {*children} <= {read(f"{pid}/cmdline")} and read(f"{pid}/stat").rsplit(")")[-1].split()[5] == pid

def make_room(name, saved, old):  # restores a session; an old one that has just begun goes, unless it is used
    new = old and tmux("rename-session", "-t", old, f"restoration-{old[1:]}")
    with suppress(*ODD): new = restore(name, saved)  # fails if there is one meanwhile
    if not new: return old and tmux("rename-session", "-t", old, name)
    for client in old and tmux("list-clients", "-t", old, "-F", "#{client_name}").split():
        tmux("switch-client", "-c", client, "-t", new)
    for _ in range(30 if old else 0):  # its shell may still be starting
        if is_idle(old): return tmux("kill-session", "-t", old)
        time.sleep(.1)

before, kept = tmux("show-options", "-sqv", "@restoration"), ""
if before and os.path.exists(f"/proc/{before}"): raise SystemExit  # the settings are read again
tmux("set-option", "-s", "@restoration", str(os.getpid()))
if not before:
    begun, kinds = list(panes()), ("", tmux("show-options", "-gv", "default-command").strip('"'))
    while (got := broker("get")).returncode not in (0, 4) and tmux("display-message", "-p", "#{pid}"):
        begun = time.sleep(2) or []  # used by now; and who does not know what is saved must not replace it
    sessions = {name: list(there) for name, there in itertools.groupby(begun, lambda pane: pane["session_name"])}
    room = {name: there[0]["session_id"] for name, there in sessions.items()  # just begun with tmux
            if len(there) == 1 and there[0]["pane_start_command"].strip('"') in kinds}
    with suppress(*ODD):
        old = json.loads(got.stdout or '{"panes": []}')["panes"]
        for name, saved in itertools.groupby(old, lambda pane: pane["session_name"]):
            make_room(name, list(saved), room.get(name, ""))
while tmux("list-sessions"):  # until the server ends; a client tells of changes, within a second
    command = ["tmux", "-NS", SOCKET, "-C", "attach", "-E", "-f", "ignore-size,no-output"]
    with suppress(OSError), subprocess.Popen(command, bufsize=0, stdin=-1, stdout=-1) as control:  # -1: pipes
        for line in control.stdout:
            if line.startswith(b"%session-changed"): control.stdin.write(NEWS)
            elif line.startswith(b"%subscription-changed") and (text := json.dumps({"panes": list(panes())})) != kept:
                if broker("put", "-", input=text).returncode == 0: kept = text
    time.sleep(1)
