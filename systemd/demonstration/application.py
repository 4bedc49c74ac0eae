# SPDX-License-Identifier: Apache-2.0
"""The sample editor as a whole: its processes, what they were acknowledged, and what the broker says of them."""

import os
import subprocess
import sys
import time

from journal import Journal
from editor import APPLICATION, Broker as Connection
from stage import PATIENCE, Broker, Client, Failure, kill

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
TEXTS = (".swift", ".h", ".py", ".pl", ".sh", ".md")


class SourceFile:
    """A text of this repository, and the identifiers of the window (its folder) and the document that show it."""

    def __init__(self, folder, name):
        self.path = os.path.normpath(os.path.join(folder, name))
        self.window = "Top" if folder == "." else folder.replace("/", ".")
        self.document = name
        self.line = f"{self.path}\t{self.window}\t{self.document}"

    @classmethod
    def all(cls):
        for folder, folders, names in os.walk(REPOSITORY):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
            for name in sorted(names):
                if name.endswith(TEXTS) and not name.startswith("."):
                    yield cls(os.path.relpath(folder, REPOSITORY), name)


class Checks:
    """Everything that is checked is counted here; what is wrong is shown at once."""

    SHOWN = 5

    def __init__(self, page):
        self.page = page
        self.compared = self.different = self.made = self.wrong = 0

    def equal(self, what, found, expected):
        self.made += 1
        if found != expected:
            self.wrong += 1
            self.page.complaint(f"WRONG: {what}: {found}, not {expected}")

    def states(self, role, exact, newer, different):
        self.compared += exact + newer + len(different)
        self.different += len(different)
        for key, state in different[:self.SHOWN]:
            self.page.complaint(f"DIFFERENT: {role}: {key} came back as {state}")
        if len(different) > self.SHOWN:
            self.page.complaint(f"DIFFERENT: {role}: {len(different) - self.SHOWN} more")

    @property
    def passed(self):
        return not self.different and not self.wrong


class Application:
    """The processes by role, parents before their children."""

    ROLES = ("windows", "documents-1", "documents-2", "previews", "outlines")

    def __init__(self, stage, programs, checks):
        self.stage = stage
        self.checks = checks
        self.broker = Broker(stage, programs)
        self.control = os.path.join(programs, "restorationctl")
        self.files = list(SourceFile.all())
        python = [sys.executable, "-B", os.path.join(HERE, "editor.py")]
        # A release has no sample.
        has_sample = os.path.exists(sample := os.path.join(programs, "restoration-sample"))
        swift = [sample] if has_sample else python
        self.languages = ("Swift" if has_sample else "Python",) * 3 + ("Python", "Perl")
        perl = ["perl", os.path.join(HERE, "outline.pl")]
        sources = [file for file in self.files if file.path.startswith("Sources/")]
        others = [file for file in self.files if file not in sources]
        self.clients, self.journals, self.objects = {}, {}, {}
        for role, program, files in zip(self.ROLES, (swift, swift, swift, python, perl),
                                        (self.files, sources, others, self.files, self.files)):
            command = [*program, role, self.broker.socket, stage.path(role)]
            self.clients[role] = Client(role, command, [file.line for file in files])
            self.journals[role] = Journal(stage.path(role))

    def start(self, roles, reason):
        """Starts processes, children before their parents, and waits until all their objects are registered."""
        for role in reversed(roles):
            self.clients[role].start(self.stage, REPOSITORY)
        for role in roles:
            report = self.clients[role].event("registered")
            self.objects[role] = report["objects"]
            self.checks.equal(f"why {role} was started, says the broker", report["reason"], reason)

    def tell(self, roles, *command, until):
        """Tells several processes the same, and waits until each has reported that."""
        for role in roles:
            self.clients[role].tell(*command)
        for role in roles:
            self.clients[role].event(until)

    def kill(self, roles, *more):
        kill(*(self.clients[role].process for role in roles), *more)
        for role in roles:
            self.journals[role].read()

    @property
    def acknowledged(self):
        """States up to the last time that journals were read."""
        return sum(journal.acknowledged for journal in self.journals.values())

    def compare(self, roles):
        """Lets processes decode all their objects and compares that with what was acknowledged. Gives for each
        [objects, as acknowledged, newer, different]."""
        for role in roles:
            self.journals[role].read()
        self.tell(roles, "decode", until="decoded")
        rows = []
        for role in roles:
            exact, newer, different = self.journals[role].read()
            self.checks.states(role, exact, newer, different)
            self.checks.equal(f"objects that {role} decoded", exact + newer + len(different), self.objects[role])
            rows.append([self.objects[role], exact, newer, len(different)])
        return rows

    def owners(self):
        """For the path of each object the process that owns it now, or None."""
        connection, owners, cursor = Connection(self.broker.socket), {}, {}
        while cursor is not None:
            page = connection.call("describeApplication", application=APPLICATION, **cursor)
            for entry in page["objects"]:
                owners[tuple(entry["path"])] = entry["process"] if entry["pid"] else None
            cursor = {"cursor": page["cursor"]} if "cursor" in page else None
        return owners

    def wait_for_owners(self, expected):
        """Asks until these own the objects; each question is a call that the broker answers."""
        deadline = time.monotonic() + PATIENCE
        while self.owners() != expected:
            if time.monotonic() > deadline:
                raise Failure("objects have not come to have the owners they should have")

    def restorationctl(self, *arguments):
        """Gives the lines that it prints, which leave room to be indented."""
        command = [self.control, "--socket", self.broker.socket, *arguments]
        result = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", timeout=PATIENCE, check=False,
                                env={**os.environ, "COLUMNS": "76"})
        self.checks.equal(f"exit status of restorationctl {arguments[0]}", result.returncode, 0)
        return result.stdout.rstrip("\n").split("\n")
