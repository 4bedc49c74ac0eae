#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tmux comes back with its sessions, windows, panes, layouts and directories: see README.md.
import itertools, json, os, re, subprocess, time
from urllib.parse import quote, unquote_to_bytes
SOCKET = os.environ["TMUX"].split(",")[0]
OBJECT = ["org.tmux.tmux", re.sub("[^A-Za-z0-9_-]", "_", os.path.basename(SOCKET))]
FIELDS = ("session_name window_index automatic-rename window_active window_width window_height window_layout "
          "pane_active @restoration_shell pane_start_command pane_pid window_name").split()
NEWS = b"refresh-client -B 'x::#{S:#{W:#{window_layout}#{window_name}#{P:#{pane_active}#{pane_current_path}}}}'\n"
def run(*words, **options): return subprocess.run(words, capture_output=True, text=True, **options)
def tmux(*words, cwd="/"): return run("tmux", "-uS", SOCKET, *words, cwd=cwd).stdout.strip("\n")
def broker(command, *words, **options): return run("restorationctl", command, *OBJECT, *words, **options)

def panes():
    for text in tmux("list-panes", "-aF", "\x1e" + "\t".join(f"#{{{field}}}" for field in FIELDS)).split("\x1e")[1:]:
        pane = dict(zip(FIELDS, text.rstrip("\n").split("\t", len(FIELDS) - 1)))
        try:  # the directory of the shell, any bytes; tmux would tell that of what runs in it
            yield {**pane, "directory": quote(os.readlink(b"/proc/%s/cwd" % pane.pop("pane_pid").encode()))}
        except OSError: pass  # it has just ended

def restore(name, saved):  # of names, tmux would run what is in #(...); its options would expand directories as well
    session, last = "", {}  # the last pane of each window
    for pane in saved:
        index, title = pane["window_index"], ["-n", pane["window_name"].replace("#", "_")]
        size = ["-x", pane["window_width"], "-y", pane["window_height"]]
        new = (["split-window", "-t", last[index]] if index in last else
               ["new-window", "-t", f"{session}:{index}", *title] if session else
               ["new-session", "-s", name.replace("#", "_"), *title, *size])
        new += ["-dPF", "#{session_id} #{pane_id}", "-e", "RESTORATION_SHELL=" + pane["@restoration_shell"]]
        directory, first = unquote_to_bytes(pane["directory"]), not session
        made = tmux(*new, cwd=directory if os.path.isdir(directory) else os.path.expanduser("~"))
        session, last[index] = made.split()
        pane["id"] = last[index]
        if first: tmux("set-environment", "-t", session, "-u", "RESTORATION_SHELL")
        if first: tmux("move-window", "-s", last[index], "-t", f"{session}:{index}")
        tmux("select-layout", "-t", last[index], "tiled")  # room for the next one
    for pane in saved:
        tmux("select-layout", "-t", pane["id"], pane["window_layout"])
        tmux("set-option", "-wt", pane["id"], "automatic-rename", "on" if pane["automatic-rename"] == "1" else "off")
        if pane["pane_active"] == "1": tmux("select-pane", "-t", pane["id"])
        if pane["pane_active"] == pane["window_active"] == "1": tmux("select-window", "-t", pane["id"])
while (got := broker("get")).returncode not in (0, 4) and tmux("display-message", "-p", "#{pid}"):
    time.sleep(2)  # who does not know what is saved must not replace it
now, kept, old = list(panes()), "", json.loads(got.stdout or "{}").get("panes", [])
for name, saved in itertools.groupby(old, lambda pane: pane["session_name"]):
    present = [pane["pane_start_command"] for pane in now if pane["session_name"] == name]
    if present in [[""], [tmux("show-options", "-gv", "default-command")]]:  # just begun with tmux: it makes room
        present = tmux("rename-session", "-t", f"={name}:", "restoration")
    if not present: restore(name, list(saved))
    for client in tmux("list-clients", "-t", "=restoration:", "-F", "#{client_name}").split():
        tmux("switch-client", "-c", client, "-t", f"={name}:")
    tmux("kill-session", "-t", "=restoration:")
while tmux("list-sessions"):  # until the server ends; a client tells of changes, within a second
    control = subprocess.Popen(["tmux", "-S", SOCKET, "-C", "attach", "-f", "ignore-size,no-output"], bufsize=0,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in control.stdout:
        if line.startswith(b"%session-changed"): control.stdin.write(NEWS)
        elif line.startswith(b"%subscription-changed") and (text := json.dumps({"panes": list(panes())})) != kept:
            if broker("put", "-", input=text).returncode == 0: kept = text
