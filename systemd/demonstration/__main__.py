#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What systemd/try.sh shows: python3 systemd/demonstration DIRECTORY-OF-PROGRAMS [--pictures DIRECTORY]

Five processes in three languages form one editor of this repository's files. They are killed in several ways and
restart, and every restored state is compared with the acknowledged one. The exit code is 0 if nothing differs.
With --pictures it also makes the README's pictures of this run.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from application import APPLICATION, Application, Checks
from page import Page
from pictures import Pictures
from stage import Failure, Interrupted, Stage

NEVER_ENDS = 10 ** 9  # more states than a process types before it is killed


class Demonstration:
    def __init__(self, stage, programs, pictures=None):
        self.pictures = pictures
        self.page = Page()
        self.checks = Checks(self.page)
        self.editor = Application(stage, programs, self.checks)
        self.roles = list(self.editor.ROLES)
        # The file that is looked at: the first of its window, which has a reference to it.
        self.file = next(file for file in self.editor.files if file.path.startswith("Sources/JSONRPC/Text/"))

    def run(self):
        """Gives the exit status."""
        begin = time.monotonic()
        count = "three" if "Swift" in self.editor.languages else "two"
        self.page.title(f"restorationd: an editor made of five processes, in {count} languages")
        for step in (self.start, self.type, self.kill_everything, self.kill_one, self.move):
            step()
        if self.pictures:
            self.pictures.photograph(self.editor, ["Top", self.file.document, "Outline"])
        self.look()
        return self.conclude(time.monotonic() - begin)

    def start(self):
        self.page.heading("1. A broker, five processes, one tree of objects")
        editor = self.editor
        milliseconds = editor.broker.start()
        editor.start(self.roles, "pristine")
        self.page.say(f"The broker is ready after {milliseconds} ms. The processes have registered objects for the "
                      f"{len(editor.files)} texts of this repository:")
        kinds = ("one window a folder; the delegate", "files in Sources, below windows",
                 "all other files, below windows", "one below each document", "one below each document")
        self.page.table(["process", "language", "pid", "objects", "which are"], [
            [role, language, str(editor.clients[role].process.pid), editor.objects[role], kind]
            for role, language, kind in zip(self.roles, editor.languages, kinds)])
        owners = editor.owners()
        for role in self.roles:
            self.checks.equal(f"objects of {role}, says the broker", list(owners.values()).count(role),
                              editor.objects[role])
        self.checks.equal("objects, says the broker", len(owners), sum(editor.objects.values()))
        self.tree(self.file.window)
        self.page.say("(e: empty, there is no state yet)")

    def type(self):
        self.page.heading("2. They push state while somebody types")
        editor = self.editor
        begin = time.monotonic()
        editor.tell(self.roles, "save", until="saved")
        editor.tell(self.roles, "type", 200, until="typed")
        seconds = time.monotonic() - begin
        for journal in editor.journals.values():
            journal.read()
        self.page.say(f"{editor.acknowledged:,} states in {seconds:.1f} s, each of them on disk before it was "
                      f"acknowledged. What they look like:")
        keys = {"windows": self.file.window, "documents-1": self.file.path, "outlines": self.file.path}
        for role, key in keys.items():
            self.page.say(f"{role}: {json.dumps(editor.journals[role].possible[key][0])}")

    def kill_everything(self):
        self.page.heading("3. All are killed while they type, the broker too")
        editor = self.editor
        editor.tell(self.roles, "type", NEVER_ENDS, until="typing")
        editor.kill(self.roles, editor.broker.process)
        self.page.say(f"SIGKILL to six processes, after {editor.acknowledged:,} acknowledged states. The broker is "
                      f"ready again after {editor.broker.start()} ms, the others start again and decode:")
        editor.start(self.roles, "recover")
        self.page.table(
            ["process", "objects", "as acknowledged", "newer*", "different"],
            [[role, *row] for role, row in zip(self.roles, editor.compare(self.roles))])
        self.page.say("* sent and stored, killed before the answer was read")

    def kill_one(self):
        victim = "documents-1"
        others = [role for role in self.roles if role != victim]
        self.page.heading(f"4. One is killed alone: {victim}")
        editor = self.editor
        before = editor.owners()
        editor.tell([victim], "type", NEVER_ENDS, until="typing")
        editor.kill([victim])
        editor.wait_for_owners({path: None if owner == victim else owner for path, owner in before.items()})
        self.tree(self.file.window, self.file.document)
        editor.tell(others, "type", 100, until="typed")
        self.page.say(f"Its {editor.objects[victim]} objects are vacant (v) and keep their states. What other "
                      f"processes have below them stays theirs: they have stored {100 * len(others)} more states "
                      f"meanwhile.")
        editor.start([victim], "recover")
        [[objects, exact, newer, different]] = editor.compare([victim])
        self.checks.equal("objects that have their owners again", editor.owners() == before, True)
        self.page.say(f"It is started again, claims its paths and decodes {objects} objects: {exact} as acknowledged, "
                      f"{newer} newer, {different} different.")

    def move(self):
        file, editor = self.file, self.editor
        old, new = [file.window, file.document], ["Top", file.document]
        self.page.heading(f"5. {file.document} moves to another window, with all below it")
        before = editor.owners()
        editor.clients["documents-1"].tell("move", file.path, new[0])
        self.checks.equal("the path in the answer", editor.clients["documents-1"].event("moved")["path"], new)
        for role, identifier in (("previews", "Preview"), ("outlines", "Outline")):
            editor.clients[role].tell("told", 1)
            paths = editor.clients[role].event("told")["paths"]
            self.checks.equal(f"the path that {role} is told", paths, [[*new, identifier]])
        after = {(*new, *path[2:]) if list(path[:2]) == old else path: owner for path, owner in before.items()}
        self.checks.equal("only those paths have changed", editor.owners() == after, True)
        self.tree(*new)
        for journal in editor.journals.values():
            journal.moved(old, new)
        different = sum(row[-1] for row in editor.compare(self.roles))
        # Their states refer to their documents, the moved one by its new path.
        editor.tell(["outlines"], "save", until="saved")
        self.page.say(f"One call of its owner did it. The other two owners were told the new paths, in Python and in "
                      f"Perl. All {len(after):,} objects decoded once more: {different} different. What refers to the "
                      f"document is led to its new place.")

    def look(self):
        self.page.heading("6. Everybody says goodbye; what the archive holds")
        editor = self.editor
        editor.tell(self.roles, "goodbye", until="left")
        for role in self.roles:
            self.checks.equal(f"exit status of {role}", editor.clients[role].end(), 0)
            editor.journals[role].read()
        self.control("list")
        self.control("show", APPLICATION, f"Top/{self.file.document}")
        self.control("history", APPLICATION)

    def tree(self, *path):
        """An excerpt of the tree: objects on the way to this one and below it, as far as there is room for them."""
        command = ["tree", APPLICATION]
        header, *lines = self.editor.restorationctl(*command)
        place, found = [], []
        for line in lines:
            text = line.lstrip(" │├└─|`-+")
            # Two columns a level; the application itself has none.
            depth = (len(line) - len(text)) // 2
            place[max(0, depth - 1):] = text.split()[:1]
            if depth and all(one == other for one, other in zip(place, path)):
                found.append(line)
        self.checks.equal(f"objects of {'/'.join(path)} in the tree", len(found) >= 4, True)
        self.page.command(f"restorationctl {' '.join(command)}   (an excerpt)")
        self.page.lines([header, *found[:7]])

    def control(self, *arguments):
        self.page.command(" ".join(["restorationctl", *arguments]))
        self.page.lines(self.editor.restorationctl(*arguments))

    def conclude(self, seconds):
        editor, checks = self.editor, self.checks
        checks.equal("exit status of the broker", editor.broker.end(), 0)
        self.page.heading(f"Checked in {seconds:.1f} s")
        self.page.lines([
            f"{sum(editor.objects.values()):,} objects, {editor.acknowledged:,} states acknowledged",
            f"{checks.compared:,} states compared, {checks.different:,} different",
            f"{checks.made:,} other checks, {checks.wrong:,} wrong",
        ])
        self.page.verdict("Everything came back." if checks.passed else "This is NOT what was acknowledged.",
                          checks.passed)
        if self.pictures and checks.passed:
            self.pictures.draw(self.page.printed)
        return 0 if checks.passed else 1


def main():
    parser = argparse.ArgumentParser(prog="python3 systemd/demonstration", allow_abbrev=False)
    parser.add_argument("programs", metavar="DIRECTORY-OF-PROGRAMS", type=os.path.abspath)
    parser.add_argument("--pictures", metavar="DIRECTORY", type=Pictures, help="write the README's pictures into it")
    options = parser.parse_args()
    try:
        with Stage() as stage:
            return Demonstration(stage, options.programs, options.pictures).run()
    except BrokenPipeError:
        # The reader has gone; drop what Python would still write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Failure, OSError, RuntimeError, subprocess.TimeoutExpired) as failure:
        print(f"\nThis did not work: {failure}", file=sys.stderr)
        return 1
    except Interrupted as interrupted:
        # Ends as the signal would have ended it, so that a calling shell sees it.
        signal.signal(interrupted.number, signal.SIG_DFL)
        os.kill(os.getpid(), interrupted.number)


if __name__ == "__main__":
    sys.exit(main())
