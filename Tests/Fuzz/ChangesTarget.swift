// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica

extension FuzzTarget {
  /// Changes of an archive that another host is said to have made. If they can be read, they are written as the same
  /// bytes.
  static let changes = FuzzTarget(
    name: "changes",
    seeds: {
      let (name, text) = (ChangeID(high: 1, low: 2), Array(#"{"a":0.1}"#.utf8)[...])
      let changes: [ArchiveChange] = [
        .node(NodeRecord(node: 1, parent: 300, component: "a#2", kind: .view, classes: "[]", successor: 4)),
        .state(StateRecord(node: 1, context: 2, session: 3, written: 1 << 40, text: text, references: "[[0,1,2]]")),
        .removeState(1),
        .removeAll,
        .settle([1, 200]),
        .withhold([StateRow(node: 1, sequence: 2)], since: 3),
        .release([StateRow(node: 1, sequence: 2)]),
        .context(1, text: "é"),
        .forgetContexts([1, 2]),
        .seal(GenerationRecord(generation: 1, kind: "round", committed: 1, objects: 1, bytes: 1, omitted: [1])),
        .pin(generation: 1),
        .dropGeneration(1),
        .session(SessionRecord(session: 1, token: "t", facts: "{}", ending: "crashed", ended: 1)),
        .forgetSessions([1]),
        .claim(ClaimRecord(node: 1, session: 2, handle: 3)),
        .run(RunRecord(run: 1, restorations: 2, facts: "{}")),
      ]
      let whole = ChangeBatch(after: 0, changes.map { .init(name, [$0]) })
      return ([whole] + changes.map { ChangeBatch(after: 300, [.init(name, [$0, .removeAll])]) }).map { batch in
        batch.encoded { $0 }
      }
    },
    run: { input in
      guard let batch = try? ChangeBatch(decoding: input) else { return }
      demand(batch.encoded { $0 } == input, "\(input) is read as \(batch)")
    }
  )
}
