// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// Checks an archive's contents as they arrive from a replica in pages: each page must begin where the former ended,
/// and there must be an end.
///
/// A replica is not trusted. Each page must advance, stay within the grant, and all pages together must not exceed the
/// size of an archive of this host.
struct ContentsReading {
  private let grant: ReplicaGrant
  private let bytesMax: Int
  /// Where the next page begins; `nil` at the end.
  private(set) var position: ReplicaPosition?
  private var bytes = 0
  /// Must be equal in all parts of the snapshot.
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
    bytes += page.parts.reduce(0) { $0 + $1.bytes.count } + page.batches.reduce(0) { $0 + $1.body.count }
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
