#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants known faults into a copy of the sources, and says after how many histories the simulation finds each:
Tests/Simulation/planted.py DIRECTORY [NAME...]; with --check, it only looks for the place of each in the sources.

One program has all faults; PLANTED_FAULT says which of them it shows. DIRECTORY is made if it is missing, and keeps the
copy and its build for the next time. A fault that 10,000 histories do not find is a hole in the simulation.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys

SEEDS = 10_000
PORTION = 250
STORE = "RestorationArchive"
FLEET = "RestorationReplica"
BROKER = "RestorationBroker"
CLIENT = "RestorationClient"
MEMORY = "InMemory"
SERVICE = "Service/"
CORE = "Core/"

DROP_ALL = "for node in session.objects.values.sorted(by: { $0.id < $1.id }) { drop(node) }"

# Name, target, file, text, and what stands there instead; PLANTED is true while this fault is shown.
FAULTS = [
    # Store
    ("commits are not synced", STORE, "SQLite/ArchiveSchema.swift",
     "synchronous = FULL", r'synchronous = \(PLANTED ? "OFF" : "FULL")'),
    ("a commit whose sync failed counts", STORE, "Store/OpenArchive.swift",
     "      if error.kind == .indeterminate {\n        failure = error\n        throw error",
     "      if error.kind == .indeterminate {\n        if PLANTED { return }\n        failure = error\n        throw error"),
    ("an emptied head shows what was there", STORE, "Log/LogRow.swift",
     "var lastCut: SequenceNumber { cuts.last ?? 0 }",
     "var lastCut: SequenceNumber { PLANTED ? 0 : cuts.last ?? 0 }"),
    ("the mark runs ahead", STORE, "SQLite/ApplicationArchive.swift",
     "archive.rows.acknowledge(receipt.sequence)", "archive.rows.acknowledge(receipt.sequence + (PLANTED ? 1 : 0))"),
    ("purging forgets generations", STORE, "Log/LogRow.swift",
     "if end == .max || horizon.keeps(self[index].sequence, until: end) { return false }",
     "if end == .max || !PLANTED && horizon.keeps(self[index].sequence, until: end) { return false }"),
    ("reading a generation shows the head", STORE, "Store/OpenArchive.swift",
     "guard let row = index.state(of: node, at: point) else {",
     "guard let row = index.state(of: node, at: PLANTED ? .head : point) else {"),
    ("after a failed commit the index keeps what was not stored", STORE, "Store/OpenArchive.swift",
     "        index = try rows.index()\n      } catch",
     "        let stored = try rows.index()\n        if !PLANTED { index = stored }\n      } catch"),
    # Service
    ("answers leave before the disk has it", BROKER, SERVICE + "ArchiveGateway.swift",
     "let session = sessions[id], session.queue.durable < sequence else {\n      return delegate.send(answer",
     "let session = sessions[id], !PLANTED, session.queue.durable < sequence else {\n      return delegate.send(answer"),
    ("answers leave with an earlier transaction", BROKER, SERVICE + "WriteQueue.swift",
     "if let last = answers.last, last.after <= durable {",
     "if let last = answers.last, PLANTED || last.after <= durable {"),
    ("the cache hands out another row", BROKER, SERVICE + "StateCache.swift",
     "entry.sequence == sequence else", "PLANTED || entry.sequence == sequence else"),
    ("reads show what is not on disk", BROKER, SERVICE + "ArchiveGateway+Reading.swift",
     "    guard row.sequence <= session.queue.durable else { return nil }\n",
     "    guard PLANTED || row.sequence <= session.queue.durable else { return nil }\n"),
    ("who waits for a failed commit waits for ever", BROKER, SERVICE + "ArchiveGateway.swift",
     "    for caller in failure.callers { delegate.send(answer, to: caller) }\n",
     "    for caller in failure.callers where !PLANTED { delegate.send(answer, to: caller) }\n"),
    ("nobody is resumed when an archive is idle", BROKER, SERVICE + "ArchiveGateway.swift",
     "    session.resumeWaiting()\n  }\n\n  private func finishClosing",
     "    if !PLANTED { session.resumeWaiting() }\n  }\n\n  private func finishClosing"),
    ("a read behind a commit waits for ever", BROKER, SERVICE + "ArchiveGateway.swift",
     "delegate.send(notice, of: session.id) }\n    for request in session.queue.readyReads() {",
     "delegate.send(notice, of: session.id) }\n    for request in session.queue.readyReads() where !PLANTED {"),
    # Core
    ("a path gets two owners", BROKER, CORE + "Objects/Application+Registration.swift",
     "    if let existing, let owner = owner(of: existing), owner !== session {",
     "    if let existing, let owner = owner(of: existing), owner !== session, !PLANTED || request.takeOver {"),
    ("a crash removes what was left", BROKER, CORE + "Application+Ending.swift",
     "      blame(session)\n      vacate(session)",
     "      blame(session)\n      if PLANTED { " + DROP_ALL + " }\n      vacate(session)"),
    ("a logout removes what was left", BROKER, CORE + "Application+Ending.swift",
     "    case .restart, .logout, .expired:\n      settle(session)\n",
     "    case .restart, .logout, .expired:\n      settle(session)\n      if PLANTED { " + DROP_ALL + " }\n"),
    ("a round leaves out what no session owns", BROKER, CORE + "Saving/Application+SavingCommit.swift",
     "omitting: unreached, in: &turn)",
     "omitting: PLANTED ? unreached.union(tree.nodes.values.filter { $0.claim == nil }.map(\\.id)) : unreached, "
     "in: &turn)"),
    ("a round without states never ends", BROKER, CORE + "Saving/Application+SavingCommit.swift",
     "      turn.answer(call.caller, reply.listing(bytesMax: waiting.bytesMax))",
     "      if PLANTED && round.staged.isEmpty { continue }\n"
     "      turn.answer(call.caller, reply.listing(bytesMax: waiting.bytesMax))"),
    ("children are restored first", BROKER, CORE + "Restoring/Deliveries.swift",
     "package var nodes: [NodeID] { entries.map(\\.node) }",
     "package var nodes: [NodeID] { (PLANTED ? entries.reversed() : entries).map(\\.node) }"),
    # Client
    ("the library does not repeat what was sent", CLIENT, "Connection/CallQueue.swift",
     "    for (ticket, entry) in entries {\n      entries[ticket]?.place = .waiting\n",
     "    for (ticket, entry) in entries {\n      if PLANTED && entry.place == .sent { continue }\n"
     "      entries[ticket]?.place = .waiting\n"),
    ("the library believes that a new session has its objects", CLIENT, "Session/RestorationSession+StateMachine.swift",
     "        plan.forgetRegistrations()\n        isReplaying = true",
     "        if !PLANTED { plan.forgetRegistrations() }\n        isReplaying = true"),
    ("the library numbers states anew now and then", CLIENT, "Session/SessionObjects.swift",
     "    lastRevision += 1\n", "    lastRevision = PLANTED && lastRevision > 3 ? 1 : lastRevision + 1\n"),
]

# The same of what several hosts share, for their histories.
HOSTS_FAULTS = [
    # Replica
    ("what is written under a former lease counts", MEMORY, "MemoryReplica.swift",
     "known.lease == lease.id || replica.fault", "known.lease == lease.id || PLANTED || replica.fault"),
    ("leases have numbers that come again", MEMORY, "MemoryReplica.swift",
     "let number = replica.fault == .numberedLeases", "let number = PLANTED || replica.fault == .numberedLeases"),
    ("an archive is taken from a host that may be alive", MEMORY, "MemoryReplica.swift",
     "known.term.milliseconds + 1_000 {", "(PLANTED ? 1_000 : known.term.milliseconds) + 1_000 {"),
    ("what is there already is confirmed although no other server has it", MEMORY, "MemoryReplica.swift",
     "      let value = try body(&state)\n", "      let before = state.written\n      let value = try body(&state)\n"
     "      defer { if PLANTED, state.written == before { state.due = 0 } }\n"),
    # Fleet
    ("a copy of an earlier lease counts as only behind", FLEET, "Copies/CatchingUp.swift",
     "guard common == sequence else", "guard common == sequence || PLANTED else"),
    ("a lease that has lapsed may be written", FLEET, "Leases/LeaseHolding.swift",
     "now < until ? .granted : .lapsed", "now < until || PLANTED ? .granted : .lapsed"),
    ("what joins a transaction after the lease is acknowledged", FLEET, "Store/ReplicatedArchive.swift",
     "leases.renew()\n        throw unconfirmed", "leases.renew()\n        if !PLANTED { throw unconfirmed }"),
    ("a renewal counts from its answer", FLEET, "Store/ReplicatedArchive.swift",
     "holding.renewed(lease, asked: asked)", "holding.renewed(lease, asked: PLANTED ? now : asked)"),
    ("a lease that was kept to send what is left is trusted", FLEET, "Store/ReplicatedArchive+Opening.swift",
     "if lease == nil, let kept = holding.lease {", "if !PLANTED, lease == nil, let kept = holding.lease {"),
    ("what others do not have is not set aside", FLEET, "Store/ReplicatedArchive+Opening.swift",
     "plan.isConflict ? found", "plan.isConflict && !PLANTED ? found"),
    ("what the replica does not have is acknowledged", FLEET, "Store/ReplicatedArchive.swift",
     "if let error = await stored(transaction.upto) { throw error }",
     "if let error = await stored(transaction.upto), !PLANTED { throw error }"),
]

# The same of what the rules say of restoring, for the histories of the reference model.
MODEL_FAULTS = [
    ("what an owner writes before it has its state counts", BROKER, CORE + "Trials/EarlyMarks.swift",
     "    return isAwaited || isYoung && !session.hasCompletedRestoration && !isGivenUp\n",
     "    return !PLANTED && (isAwaited || isYoung && !session.hasCompletedRestoration && !isGivenUp)\n"),
    ("time confirms what its owner is about to be given", BROKER, CORE + "Trials/Application+Windows.swift",
     "self.restoring.mayConcern(node.id) || self.isAwaitingDelivery(node) }",
     "!PLANTED && (self.restoring.mayConcern(node.id) || self.isAwaitingDelivery(node)) }"),
    ("a goodbye confirms what its owner is about to be given", BROKER, CORE + "Trials/Application+Windows.swift",
     "settle(session.objects.values.filter { !isAwaitingDelivery($0) } + own)",
     "settle(session.objects.values.filter { PLANTED || !isAwaitingDelivery($0) } + own)"),
    ("after a no what is older is given", BROKER, CORE + "RunHistory.swift",
     "case .declined: state.sequence > facts.began", "case .declined: PLANTED || state.sequence > facts.began"),
    ("what a class has refused is given", BROKER, CORE + "RunHistory.swift",
     "    guard !facts.refused.isEmpty else { return false }\n",
     "    guard !facts.refused.isEmpty, !PLANTED else { return false }\n"),
    ("states are blamed for what was done to a process", BROKER, CORE + "Units/ProcessEnd.swift",
     "faults: Set<Int32> = [4, 5, 6, 7, 8, 11, 31]", "faults: Set<Int32> = PLANTED ? [9] : [4, 5, 6, 7, 8, 11, 31]"),
]

# The lists, and the command of the simulation whose histories find what is in each.
LISTS = [("play", FAULTS), ("hosts", HOSTS_FAULTS), ("model", MODEL_FAULTS)]
ALL = [(command, *fault) for command, faults in LISTS for fault in faults]

SWITCH = """// SPDX-License-Identifier: Apache-2.0

internal import Glibc

let plantedFault = getenv("PLANTED_FAULT").flatMap { Int(String(cString: $0)) } ?? 0
"""


def folder(target):
    return os.path.join("Tests" if target == MEMORY else "Sources", target)


def planted_sources(here):
    """Contents of the changed files by path below the project."""
    changed = {}
    for target in sorted({fault[2] for fault in ALL}):
        changed[os.path.join(folder(target), "Planted.swift")] = SWITCH
    for number, (_, name, target, path, text, instead) in enumerate(ALL, 1):
        path = os.path.join(folder(target), path)
        if path not in changed:
            with open(os.path.join(here, path), encoding="utf-8") as file:
                changed[path] = file.read()
        if changed[path].count(text) != 1:
            sys.exit(f"{name}: the text stands {changed[path].count(text)} times in {path}; correct the list")
        changed[path] = changed[path].replace(text, instead.replace("PLANTED", f"(plantedFault == {number})"))
    return changed


def write_if_new(path, content):
    """Leaves the time of a file as it is if nothing changes, so that the build has less to do."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == content:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def copy(here, place):
    changed = planted_sources(here)
    for folder in ("Sources", "Tests", "Protocol"):
        for parent, _, names in os.walk(os.path.join(here, folder)):
            for name in names:
                path = os.path.relpath(os.path.join(parent, name), here)
                if path not in changed:
                    with open(os.path.join(here, path), "rb") as file:
                        write_if_new(os.path.join(place, path), file.read())
        for parent, _, names in os.walk(os.path.join(place, folder)):
            for name in names:
                path = os.path.relpath(os.path.join(parent, name), place)
                if path not in changed and not os.path.exists(os.path.join(here, path)):
                    os.remove(os.path.join(place, path))
    for path, content in changed.items():
        write_if_new(os.path.join(place, path), content.encode())
    for name in ("Package.swift", "Package.resolved"):
        shutil.copy(os.path.join(here, name), place)


def build(place):
    command = ["swift", "build", "-c", "release", "--static-swift-stdlib"]
    built = subprocess.run([*command, "--product", "simulation"], cwd=place, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"the copy does not compile\n{built.stdout[-4000:]}")
    where = subprocess.run([*command, "--show-bin-path"], cwd=place, capture_output=True, text=True, check=True)
    return os.path.join(where.stdout.strip(), "simulation")


def play(program, number):
    """The first line of what the simulation says of the first history that fails; None if none does."""
    environment = dict(os.environ, SWIFT_DETERMINISTIC_HASHING="1", PLANTED_FAULT=str(number))
    command = ALL[number - 1][0]
    for start in range(1, SEEDS, PORTION):
        played = subprocess.run(
            [program, command, "--from", str(start), "--to", str(start + PORTION - 1), "--no-shrinking"],
            env=environment, capture_output=True, text=True)
        if played.returncode != 0:
            return (played.stdout.splitlines() or [f"crashed among the {PORTION} from {start}"])[0]
    return None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    here = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
    if sys.argv[1] == "--check":
        return planted_sources(here)
    place = os.path.realpath(sys.argv[1])
    copy(here, place)
    program = build(place)
    names = sys.argv[2:]
    wanted = [(number, fault[1]) for number, fault in enumerate(ALL, 1) if not names or fault[1] in names]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, name), found in zip(wanted, pool.map(lambda fault: play(program, fault[0]), wanted)):
            missed += found is None
            print(f"missed: {name}" if found is None else f"found: {name}: {found[:160]}", flush=True)
    sys.exit(1 if missed else 0)


main()
