// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

extension MemoryReplica {
  /// Brokers of two timelines never have the same.
  struct BrokerID: Hashable {
    let timeline: UInt32
    let number: Int64
  }

  /// An archive at the replica.
  struct Row {
    let archive: Int64
    var history: String
    /// Of the newest lease.
    var epoch = ReplicaEpoch.none
    /// `nil` if it was given back.
    var holder: BrokerID?
    /// Whose lease was the newest.
    var last = ReplicaHolder(host: "", since: 0)
    var wasFlushed = true
    var wanted: String?
    var isRemoved = false
    var summary: [UInt8] = []
    /// The snapshot: where it ends, under which lease its last change was made, which reader it needs.
    var base = ReplicaTip()
    var baseEpoch = ReplicaEpoch.none
    var reader = 1
    var parts: [[UInt8]] = []
    /// Whose parts they are.
    var attempt: Int64 = 0
    /// Parts of a snapshot that is not complete.
    var draft: (attempt: Int64, parts: [Int: [UInt8]])?
    var batches: [(batch: ReplicaBatch, epoch: ReplicaEpoch)] = []
    var reigns: [ReplicaEpoch: ReplicaTip] = [:]

    init(archive: Int64, history: String) { (self.archive, self.history) = (archive, history) }

    var tip: ReplicaTip { batches.last.map { ReplicaTip(sequence: $0.batch.upto, change: $0.batch.change) } ?? base }
    var tipEpoch: ReplicaEpoch { batches.last?.epoch ?? baseEpoch }

    mutating func endReign() {
      if epoch > .none, reigns[epoch] == nil { reigns[epoch] = tip }
    }

    /// Where the newest lease up to this epoch has left the contents.
    func reign(upTo epoch: ReplicaEpoch) -> ReplicaTip? {
      reigns.filter { $0.key <= epoch }.max { $0.key < $1.key }?.value
    }

    /// The draft is complete: it takes the place of what it covers.
    mutating func replaceBase(_ tip: ReplicaTip, reader: Int, parts: [[UInt8]], under epoch: ReplicaEpoch) {
      let bringsMore = tip.sequence > self.tip.sequence
      baseEpoch = bringsMore ? epoch : batches.last(where: { $0.batch.upto <= tip.sequence })?.epoch ?? baseEpoch
      batches.removeAll { $0.batch.upto <= tip.sequence }
      (base, self.reader, self.parts, draft) = (tip, reader, parts, nil)
    }

    mutating func remove() {
      endReign()
      (base, baseEpoch, parts, draft, batches) = (ReplicaTip(), .none, [], nil, [])
      (isRemoved, holder, wanted, wasFlushed, summary, reader) = (true, nil, nil, true, [], 1)
    }
  }
}
