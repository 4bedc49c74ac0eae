#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds an OpenRPC document against OpenRPC, JSON Schema and a broker: validate.py DOCUMENT [SOCKET]

With a SOCKET the vectors and the exchanges of Protocol/ are played against the broker there, and everything that is
sent must match the document: no more, no less, and no almost valid value. The exit code is 0 on success, otherwise
1. Needs the PyPI packages openrpc and jsonschema_rs (Tests/requirements.txt).
"""

import collections
import sys

import document as documents
import mutations
import traffic as wire

# Not in any vector or exchange, because they need a damaged archive, a crash or an overloaded broker.
RARE_EVENTS = {
    "archiveClosed", "archiveDamaged", "archiveUnreadable", "generationDropped", "restorationCrashed", "stateQuarantined",
    "archiveQuarantined", "quarantineEnded", "eventsLost", "archiveLost",
    "archiveConflict", "replicaBehind", "replicaCaughtUp",
}
# The last three make files, which a vector that is played in memory as well cannot, or need a fleet's store.
RARE_METHODS = {
    "$/cancelRequest", "stateWanted", "archiveLost", "openApplicationSocket", "reportReplica", "migrateReplica",
}
# The share of a method's members whose loss must be noticed; the others are optional.
DROPS_NOTICED_MIN = 0.5


class Report:
    def __init__(self):
        self.faults = collections.Counter()

    def add(self, what, faults):
        for fault in faults:
            self.faults[f"{what}: {fault}"] += 1

    def show(self):
        for fault, count in sorted(self.faults.items()):
            print(f"FAIL {fault}" + (f" ({count} times)" if count > 1 else ""))
        return 1 if self.faults else 0


def check_traffic(document, traffic, report):
    """All messages are described."""
    undescribed = {method for method, _ in traffic.parameters} - {one["name"] for one in document["methods"]}
    report.add("not described", sorted(undescribed))
    traffic.forget(undescribed)
    for kind, book in (("", documents.Document(document)), (" (closed)", documents.Document(document, closed=True))):
        for method, parameters in traffic.parameters:
            report.add(f"{method} parameters{kind}", book.parameter_faults(method, parameters))
        for method, result in traffic.results:
            report.add(f"{method} result{kind}", book.result_faults(method, result))
        for method, answer in traffic.answers:
            report.add(f"{method} answer{kind}", book.result_faults(method, answer))
        for method, _, error in traffic.errors:
            if method in book.methods:
                report.add(f"{method} error{kind}", book.error_faults(method, error))


def check_coverage(document, traffic, report):
    """Everything described was sent."""
    said = {method for method, _ in traffic.parameters}
    report.add("never said", sorted({one["name"] for one in document["methods"]} - said - RARE_METHODS))
    names = {parameters["name"] for method, parameters in traffic.parameters if method == "event"}
    events = next(one["x-events"] for one in document["methods"] if one["name"] == "event")
    report.add("event never said", sorted(set(events) - names - RARE_EVENTS))


def check_mutations(document, traffic, report):
    """Almost valid values are noticed. Returns the figures for people."""
    book = documents.Document(document)
    drops = collections.defaultdict(lambda: [0, 0])
    types = 0

    def mutate(what, value, faults, has_fixed_members):
        nonlocal types
        for place, mutant in mutations.other_types(value):
            if faults(mutant):
                types += 1
            else:
                report.add(f"{what} of another type", ["/".join("*" if isinstance(s, int) else s for s in place)])
        for place, mutant in mutations.without_members(value) if has_fixed_members else []:
            drops[what][0] += 1
            drops[what][1] += bool(faults(mutant))

    for method, result in mutations.of_each_shape(traffic.results):
        if method not in documents.OPEN_METHODS:
            mutate(f"{method} result", result, lambda mutant: book.result_faults(method, mutant), True)
    for method, value in mutations.of_each_shape(traffic.parameters):
        # Most parameters of calls to the broker are optional.
        is_sent = book.methods[method][1]["x-direction"] == "toClient"
        value = book.named(method, value)
        mutate(f"{method} parameters", value, lambda mutant: book.parameter_faults(method, mutant), is_sent)
    for what, (count, noticed) in drops.items():
        if noticed < DROPS_NOTICED_MIN * count:
            report.add(what, [f"the loss of only {noticed} of {count} members is noticed"])
    count, noticed = sum(count for count, _ in drops.values()), sum(noticed for _, noticed in drops.values())
    return f"{types} values of another type and {noticed} of {count} lost members noticed"


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    document = documents.load(sys.argv[1])
    report = Report()
    report.add("document", documents.check(document))
    print(f"{len(document['methods'])} methods, {len(document['components']['schemas'])} shapes")
    if len(sys.argv) == 3:
        traffic = wire.play(sys.argv[2])
        check_traffic(document, traffic, report)
        check_coverage(document, traffic, report)
        figures = check_mutations(document, traffic, report)
        print(
            f"{len(traffic.parameters)} different calls and notifications, {len(traffic.results)} results, "
            f"{len(traffic.errors)} errors; {figures}"
        )
    return report.show()


if __name__ == "__main__":
    sys.exit(main())
