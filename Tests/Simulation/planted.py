#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants known faults into a copy of the sources, one at a time, and says after how many histories the simulation finds
each: Tests/Simulation/planted.py DIRECTORY [NAME...]

DIRECTORY is made if it is missing, and keeps the copy and its build for the next time. A fault that 10,000 histories do
not find is a hole in the simulation.
"""
import os
import shutil
import subprocess
import sys

SEEDS = 10_000
STORE = "Sources/RestorationArchive/"
SERVICE = "Sources/RestorationBroker/Service/"
CORE = "Sources/RestorationBroker/Core/"

# Name, file, text, and what stands there instead.
FAULTS = [
    # Store
    ("commits are not synced", STORE + "SQLite/ArchiveSchema.swift", "synchronous = FULL", "synchronous = OFF"),
    ("a new archive is named before it is synced", STORE + "Recovery/ArchiveRecovery.swift",
     "    try OpeningFailure.deciding { () throws(SystemError) in try directory.syncFile(files.fresh) }\n  }\n\n  /// Gives",
     "  }\n\n  /// Gives"),
    ("the name of a new archive is not synced", STORE + "Recovery/ArchiveRecovery.swift",
     "      try directory.move(files.fresh, to: files.main)\n      try directory.sync()\n",
     "      try directory.move(files.fresh, to: files.main)\n"),
    ("the mark runs ahead", STORE + "SQLite/ApplicationArchive.swift",
     "archive.rows.acknowledge(receipt.sequence)", "archive.rows.acknowledge(receipt.sequence + 1)"),
    ("purging forgets generations", STORE + "Log/LogRow.swift",
     "if end == .max || horizon.keeps(self[index].sequence, until: end) { return false }",
     "if end == .max { return false }"),
    ("reading a generation shows the head", STORE + "Store/OpenArchive.swift",
     "guard let row = index.state(of: node, at: point) else {", "guard let row = index.state(of: node, at: .head) else {"),
    ("after a failed commit the index keeps what was not stored", STORE + "Store/OpenArchive.swift",
     "        index = try rows.index()\n      } catch", "        _ = try rows.index()\n      } catch"),
    # Service
    ("answers leave before the disk has it", SERVICE + "ArchiveGateway.swift",
     "let session = sessions[id], session.queue.durable < sequence else {\n      return delegate.send(answer",
     "let session = sessions[id], session.queue.durable > sequence else {\n      return delegate.send(answer"),
    ("answers leave with an earlier transaction", SERVICE + "WriteQueue.swift",
     "if let last = answers.last, last.after <= durable {", "if !answers.isEmpty {"),
    ("the cache outlives a failed commit", SERVICE + "ArchiveGateway.swift",
     "    cache.removeAll(of: id)\n    Task {", "    Task {"),
    ("reads show what is not on disk", SERVICE + "ArchiveGateway.swift",
     "    guard row.sequence <= session.queue.durable else { return nil }\n", ""),
    ("who waits for a failed commit waits for ever", SERVICE + "ArchiveGateway.swift",
     "    for caller in failure.callers { delegate.send(answer, to: caller) }\n", "    _ = answer\n"),
    ("nobody is resumed when an archive is idle", SERVICE + "ArchiveGateway.swift",
     "    session.resumeWaiting()\n  }\n\n  private func finishClosing", "  }\n\n  private func finishClosing"),
    # Core
    ("a path gets two owners", CORE + "Objects/Application+Registration.swift",
     "    if let existing, let owner = owner(of: existing), owner !== session {",
     "    if let existing, let owner = owner(of: existing), owner !== session, request.takeOver {"),
    ("a crash removes what was left", CORE + "Application+Ending.swift",
     "      blame(session)\n      vacate(session)",
     "      blame(session)\n      for node in session.objects.values.sorted(by: { $0.id < $1.id }) { drop(node) }"),
    ("a logout removes what was left", CORE + "Application+Ending.swift",
     "    case .restart, .logout, .expired:\n      settle(session)\n      vacate(session)",
     "    case .restart, .logout, .expired:\n      for node in session.objects.values.sorted(by: { $0.id < $1.id }) { drop(node) }"),
    ("a round leaves out what no session owns", CORE + "Saving/Application+SavingCommit.swift",
     "holding: reached, in: &turn)", "holding: reached.filter { tree.nodes[$0]?.claim != nil }, in: &turn)"),
    ("a round without states never ends", CORE + "Saving/Application+SavingCommit.swift",
     "      turn.answer(call.caller, reply.listing(bytesMax: waiting.bytesMax))",
     "      if !round.staged.isEmpty { turn.answer(call.caller, reply.listing(bytesMax: waiting.bytesMax)) }"),
    ("children are restored first", CORE + "Restoring/Restoration+Decoding.swift",
     "          return Handout(node: item.node, object: item.object, isDeferred: entry.isDeferred)\n        }\n",
     "          return Handout(node: item.node, object: item.object, isDeferred: entry.isDeferred)\n        }.reversed()\n"),
    ("a read behind a commit waits for ever", SERVICE + "ArchiveGateway.swift",
     "    for request in session.queue.readyReads() { read(id, request, after: 0, for: delegate) }\n", ""),
]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    here = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
    place = os.path.realpath(sys.argv[1])
    missed = 0
    for name, path, text, instead in FAULTS:
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        for folder in ("Sources", "Tests", "Protocol"):
            shutil.copytree(os.path.join(here, folder), os.path.join(place, folder), dirs_exist_ok=True)
        shutil.copy(os.path.join(here, "Package.swift"), place)
        with open(os.path.join(place, path), encoding="utf-8") as file:
            source = file.read()
        if source.count(text) != 1:
            sys.exit(f"{name}: the text stands {source.count(text)} times in {path}; correct the list")
        with open(os.path.join(place, path), "w", encoding="utf-8") as file:
            file.write(source.replace(text, instead))
        built = subprocess.run(["swift", "build", "--product", "simulation"], cwd=place, capture_output=True, text=True)
        if built.returncode != 0:
            sys.exit(f"{name}: does not compile\n{built.stdout[-2000:]}")
        played = subprocess.run(
            [os.path.join(place, ".build/debug/simulation"), "--to", str(SEEDS)],
            env=dict(os.environ, SWIFT_DETERMINISTIC_HASHING="1"), capture_output=True, text=True)
        first = (played.stdout.splitlines() or ["crashed"])[0]
        missed += played.returncode == 0
        print(f"{'missed' if played.returncode == 0 else 'found'}: {name}: {first[:160]}", flush=True)
    sys.exit(1 if missed else 0)


main()
