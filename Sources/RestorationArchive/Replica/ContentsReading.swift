// SPDX-License-Identifier: Apache-2.0

/// The contents of an archive as they come from a replica, page by page: whether each goes on where the one before it
/// ended, and that there is an end.
///
/// Any replica may be somebody else's. Each page brings the contents further, no further than the grant says, and all
/// of them together have no more bytes than an archive of this host may have.
struct ContentsReading {
  private let grant: ReplicaGrant
  private let bytesMax: Int
  /// Where to go on; `nil` at the end.
  private(set) var position: ReplicaPosition?
  private var bytes = 0
  /// What all parts of the snapshot say of it.
  private var snapshot: Snapshot?

  private struct Snapshot: Equatable {
    let attempt: Int64
    let tip: ReplicaTip
    let count: Int
  }

  init(_ grant: ReplicaGrant, from position: ReplicaPosition, bytesMax: Int) {
    (self.grant, self.position, self.bytesMax) = (grant, position, bytesMax)
  }

  /// Where the snapshot ends; `nil` if there is none.
  var snapshotTip: ReplicaTip? { snapshot?.tip }

  var isInSnapshot: Bool { if case .snapshot = position { true } else { false } }

  mutating func take(_ page: ReplicaPage) throws(ReplicaError) {
    guard let position else { return }
    if let fault = PageOrder.fault(in: page, from: position) { throw refusal("are not in order: \(fault)") }
    for part in page.parts {
      let whole = Snapshot(attempt: part.attempt, tip: part.tip, count: part.count)
      guard whole == snapshot ?? whole, part.tip.sequence == grant.base else {
        throw refusal("have part \(part.number) of another snapshot than the one that ends at \(grant.base)")
      }
      snapshot = whole
    }
    if let end = page.batches.last?.upto, end > grant.tip.sequence {
      throw refusal("go on to \(end), behind \(grant.tip.sequence), where they end")
    }
    bytes += page.parts.reduce(0) { $0 + $1.bytes.count } + page.batches.reduce(0) { $0 + $1.bytes }
    guard bytes <= bytesMax else {
      throw refusal(
        "have more than \(bytesMax) bytes, four times archiveBytesMax of this host; raise that, if it is right"
      )
    }
    self.position = page.next
    if case .snapshot = position, !isInSnapshot, (snapshot?.tip.sequence ?? 0) != grant.base {
      throw refusal("have no snapshot, though there is one that ends at \(grant.base)")
    }
  }

  private func refusal(_ fault: String) -> ReplicaError {
    let text = "the contents at the fleet's store \(fault)"
    return ReplicaError(.refused, "\(text). This host keeps what it has; look at the fleet's store")
  }
}
