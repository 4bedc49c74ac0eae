// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

extension Bounds {
  /// Numbers of changes, limited so that sums fit into 64 bits.
  static let sequence = Bounds.range(0...ChangeBatch.sequenceMax)
}

/// 32 hexadecimal digits.
extension ChangeID: WireValue {
  package static let schema = Schema.matching("^[0-9a-f]{32}$")
  package static let expected = "32 hexadecimal digits"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let id = slice.string().flatMap({ ChangeID($0) }) else { throw Misfit(Self.expected) }
    self = id
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.string(text) }
}

/// 32 hexadecimal digits.
extension LeaseID: WireValue {
  package static var schema: Schema { ChangeID.schema }
  package static var expected: String { ChangeID.expected }

  package init(wire slice: JSONSlice) throws(Misfit) { self.init(try ChangeID(wire: slice)) }

  package func writeJSON(to writer: inout JSONWriter) { writer.string(text) }
}

extension ReplicaTip: WireObject {
  package init() { self.init(sequence: 0) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("sequence", &sequence, .sequence, "The number of the last change; 0 without contents.")
    try members.optional("change", &change, "The transaction that made it.")
  }
}

extension ReplicaHolder: WireObject {
  package init() { self.init(host: "", since: 0) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("host", &host, .role, "The host of its broker.")
    try members.required("since", &since, .count, "Milliseconds since 1970, by the server's clock.")
  }
}

extension ReplicaLease: WireObject {
  package init() { self.init(application: "", archive: 0, id: LeaseID(ChangeID(high: 0, low: 0))) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, .role, "The application.")
    try members.required("archive", &archive, .count, "The replica's number of its archive.")
    try members.required("id", &id, "Which lease it is: a random UUID.")
  }
}

extension ReplicaReign: WireObject {
  package static var plural: String { "leases" }
  package init() { self.init(LeaseID(ChangeID(high: 0, low: 0)), end: 0) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lease", &lease, "A lease.")
    try members.required("end", &end, .sequence, "How far contents have what was written under it.")
  }
}

extension ReplicaStanding.Phase: WireWord {}

extension ReplicaStanding: CheckedWireObject {
  package init() { self.init(history: "", reigns: [], phase: .released, archive: "") }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("history", &history, .role, "Which contents the host's copy has.")
    try members.required("reigns", &reigns, "The leases that the copy knows, the host's own newest one last.")
    try members.required("phase", &phase, "What the host was doing when it noted this.")
    try members.required("archive", &archive, .role, "Which copy it is.")
  }

  package func check() throws(Misfit) {
    guard reigns.count <= ReplicaReign.max else {
      throw Misfit("a list of at most \(ReplicaReign.max) leases", at: "reigns")
    }
  }
}

extension ReplicaGrant: CheckedWireObject {
  package init() { self.init(lease: ReplicaLease(), history: "") }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lease", &lease, "The lease.")
    try members.required("history", &history, .role, "Names the contents; another one does not continue the former.")
    try members.required("base", &base, .sequence, "Where the snapshot ends; 0 without one.")
    try members.required("tip", &tip, "Where the contents end.")
    try members.required("reigns", &reigns, "Where former leases have left the contents, the oldest first.")
    try members.optional("former", &former, "Who held the lease before.")
  }

  package func check() throws(Misfit) {
    guard base <= tip.sequence else { throw Misfit("an integer of at most tip/sequence, \(tip.sequence)", at: "base") }
    guard reigns.count <= ReplicaReign.toldMax else {
      throw Misfit("a list of at most \(ReplicaReign.toldMax) leases", at: "reigns")
    }
  }
}

extension ReplicaBatch: CheckedWireObject {
  package static var plural: String { "batches" }
  package init() { self.init(after: 0, upto: 1, change: ChangeID(high: 0, low: 0), body: []) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("after", &after, .sequence, "Where the contents end before it.")
    try members.required("upto", &upto, .sequence, "The number of its last change.")
    try members.required("change", &change, "Names its last transaction.")
    try members.bytes("body", &body, "What its transactions changed.")
  }

  package func check() throws(Misfit) {
    guard upto > after else { throw Misfit("an integer of more than after", at: "upto") }
  }
}

extension SnapshotPart: CheckedWireObject {
  package init() { self.init(tip: ReplicaTip(), reader: 0, number: 0, count: 1, bytes: []) }

  /// Of one snapshot, which can have 16 GiB.
  static let countMax = 1 << 16

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("attempt", &attempt, .from(1), "Which copy it is; a random number.")
    try members.required("tip", &tip, "Where the copy ends.")
    try members.required("reader", &reader, "The version of a reader that the copy needs.")
    try members.required("number", &number, "Which part it is, from 0.")
    try members.required("count", &count, "How many parts there are.")
    try members.bytes("bytes", &bytes, "The part.")
  }

  package func check() throws(Misfit) {
    guard count <= Self.countMax else { throw Misfit("an integer of at most \(Self.countMax)", at: "count") }
    guard number < count else { throw Misfit("an integer of less than count", at: "number") }
    guard bytes.count <= GatewayProtocol.partBytesMax else {
      throw Misfit("base 64 of at most \(GatewayProtocol.partBytesMax) bytes", at: "bytes")
    }
  }
}

struct PositionWords: WireObject {
  var part: Int?
  var after: SequenceNumber?

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("part", &part, "From this part of the snapshot on.")
    try members.optional("after", &after, .sequence, "From the first batch on that ends behind this sequence.")
  }
}

extension ReplicaPosition: WireValue {
  package static var schema: Schema { PositionWords.schema }
  package static var expected: String { "an object with either part or after" }

  package init(wire slice: JSONSlice) throws(Misfit) {
    let words = try PositionWords(wire: slice)
    switch (words.part, words.after) {
    case (let part?, nil):
      guard part < SnapshotPart.countMax else {
        throw Misfit("an integer of less than \(SnapshotPart.countMax)", at: "part")
      }
      self = .snapshot(part: part)
    case (nil, let after?): self = .batches(after: after)
    case (nil, nil), (_?, _?): throw Misfit(Self.expected)
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    var words = PositionWords()
    switch self {
    case .snapshot(let part): words.part = part
    case .batches(let after): words.after = after
    }
    words.writeJSON(to: &writer)
  }
}

extension ReplicaPage: WireObject {
  package init() { self.init(parts: []) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("parts", &parts, "Parts of the snapshot, in order.")
    try members.required("batches", &batches, "Batches, in order.")
    try members.optional("next", &next, "Where to go on; absent at the end.")
  }

  /// The longest beginning of the page that fits, but at least one part or batch.
  package func beginning(bytesMax: Int) -> ReplicaPage {
    var (room, kept) = (bytesMax, ReplicaPage())
    for part in parts {
      guard kept.parts.isEmpty || part.bytes.count <= room else {
        kept.next = .snapshot(part: part.number)
        return kept
      }
      room -= part.bytes.count
      kept.parts.append(part)
    }
    for batch in batches {
      guard kept.parts.isEmpty && kept.batches.isEmpty || batch.body.count <= room else {
        kept.next = .batches(after: batch.after)
        return kept
      }
      room -= batch.body.count
      kept.batches.append(batch)
    }
    kept.next = next
    return kept
  }
}

extension ReplicaListing: CheckedWireObject {
  package init() { self.init(archives: []) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("archives", &archives, "In ascending order of application.")
    try members.flag("hasMore", &hasMore, "Whether there are others behind the last one.")
  }

  package func check() throws(Misfit) {
    guard archives.count <= Self.pageMax else { throw Misfit("a list of at most \(Self.pageMax)", at: "archives") }
    let names = archives.map(\.application)
    // Compared as bytes, an order that is the same everywhere.
    guard zip(names, names.dropFirst()).allSatisfy({ $0.utf8.lexicographicallyPrecedes($1.utf8) }) else {
      throw Misfit("a list in ascending order of application", at: "archives")
    }
    guard !hasMore || !archives.isEmpty else { throw Misfit("false on a page without archives", at: "hasMore") }
  }
}

extension ReplicaSummary: WireObject {
  package init() { self.init(application: "", holder: nil, sequence: 0, summary: []) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &application, .role, "The application.")
    try members.optional("holder", &holder, "Who holds its archive; absent if nobody does.")
    try members.required("sequence", &sequence, .sequence, "Where the contents end.")
    try members.bytes("summary", &summary, "What the last holder has left for lists.")
  }
}
