// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
package import RestorationWire

/// One page of `listQuarantine`: what is to be answered once the texts have come.
package struct QuarantinePage: Sendable {
  package var reply: ListQuarantine.Reply
}

extension Application {
  func listQuarantine(_ request: ListQuarantine, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try requireWritable()
    var after = try Application.node(after: request.cursor)
    let bytesMax = Application.pageBytes(for: session?.facts.messageBytesMax)
    let suspects = runFacts.blame.suspects
    let nodes = tree.nodes.values.filter { node in
      node.id > after && node.record.kind != .application && (node.withheld != nil || suspects[node.id] != nil)
    }
    .sorted { $0.id < $1.id }
    let isInForce = runFacts.quarantined != 0 && tree.nodes.values.contains { $0.isQuarantined }
    var reply = ListQuarantine.Reply().with {
      $0.archive = isInForce ? Timestamp(milliseconds: runFacts.quarantined) : nil
      $0.strikes = runFacts.blame.strikes
    }
    var rows: [StateRequest.Row] = []
    var bytes = 0
    for node in nodes {
      let object = quarantined(node, reveals: request.reveal)
      let texts = object.redacted ? 0 : (node.withheld ?? []).reduce(0) { $0 + $1.bytes + 400 }
      let size = (object.path?.bytes ?? 0) + 400 + texts
      if bytes + size > bytesMax, !reply.objects.isEmpty {
        reply.cursor = String(after)
        break
      }
      bytes += size
      after = node.id
      reply.objects.append(object)
      if !object.redacted {
        rows += object.states.map { StateRequest.Row(node: node.id, sequence: $0.sequence) }
      }
    }
    read(rows, for: .quarantine(QuarantinePage(reply: reply)), caller, after: sequence)
  }

  private func quarantined(_ node: Node, reveals: Bool) -> QuarantinedObject {
    let withheld = node.withheld ?? []
    let isSuspect = isSuspect(node)
    return QuarantinedObject().with {
      $0.object = node.claim?.handle
      $0.path = tree.path(of: node)
      $0.standing = node.isQuarantined ? .quarantined : isSuspect ? .suspect : .lifted
      $0.strikes = runFacts.blame.suspects[node.id] ?? 0
      $0.confidential = node.record.isConfidential
      $0.redacted = node.record.isConfidential && !reveals && !withheld.isEmpty
      $0.states = withheld.map { row in
        QuarantinedState().with {
          $0.sequence = row.row.sequence
          $0.quarantined = Timestamp(milliseconds: row.since)
        }
      }
    }
  }

  /// The texts of a page have come.
  func finishPage(_ readings: [StateReading?], _ page: QuarantinePage, for caller: Caller) {
    var reply = page.reply
    var remaining = readings[...]
    for index in reply.objects.indices where !reply.objects[index].redacted {
      for place in reply.objects[index].states.indices {
        switch remaining.popFirst() ?? nil {
        case .state(let record, _):
          reply.objects[index].states[place].stateText = splice(record)
          reply.objects[index].states[place].elementsText = record.elements.map { JSONText(validated: Array($0.utf8)) }
          reply.objects[index].states[place].coderText = coder(of: StateSummary(record, at: 0))
        case .unreadable: reply.objects[index].states[place].unreadable = true
        // Released meanwhile.
        case nil: break
        }
      }
    }
    context.emit(.respond(caller, .result(reply)))
  }
}
