// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica

extension MemoryReplica {
  /// An archive at the replica.
  struct Row {
    let archive: Int64
    var history: String
    /// The newest one.
    var lease: LeaseID?
    /// `nil` if it was given back. Brokers are numbered.
    var holder: Int64?
    /// Whose lease was the newest.
    var last = ReplicaHolder(host: "", since: 0)
    var wanted: String?
    var isRemoved = false
    var summary: [UInt8] = []
    /// The snapshot: where it ends, which reader it needs.
    var base = ReplicaTip()
    var reader = 1
    var parts: [[UInt8]] = []
    /// Whose parts they are.
    var attempt: Int64 = 0
    /// Parts of a snapshot that is not complete.
    var draft: (attempt: Int64, parts: [Int: [UInt8]])?
    var batches: [ReplicaBatch] = []
    /// Of all former leases.
    var reigns: [ReplicaReign] = []

    init(archive: Int64, history: String) { (self.archive, self.history) = (archive, history) }

    var tip: ReplicaTip { batches.last.map { ReplicaTip(sequence: $0.upto, change: $0.change) } ?? base }

    mutating func endReign() {
      guard let lease, reigns.last?.lease != lease, reigns.last?.end != tip.sequence else { return }
      reigns.append(ReplicaReign(lease, end: tip.sequence))
    }

    /// What a claimant is told.
    func reigns(for standing: ReplicaStanding?) -> [ReplicaReign] {
      let known = Set((standing?.reigns ?? []).map(\.lease))
      let newest = reigns.count - ReplicaReign.max
      return reigns.enumerated().filter { $0.offset >= newest || known.contains($0.element.lease) }.map(\.element)
    }

    /// The draft is complete: it takes the place of what it covers.
    mutating func replaceBase(_ tip: ReplicaTip, reader: Int, parts: [[UInt8]]) {
      batches.removeAll { $0.upto <= tip.sequence }
      (base, self.reader, self.parts, draft) = (tip, reader, parts, nil)
    }

    mutating func remove() {
      endReign()
      reigns = reigns.map { ReplicaReign($0.lease, end: 0) }
      (base, parts, draft, batches) = (ReplicaTip(), [], nil, [])
      (isRemoved, holder, wanted, summary, reader) = (true, nil, nil, [], 1)
    }
  }
}
