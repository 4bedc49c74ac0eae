// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Mutation
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationWire
internal import Testing

/// A gateway is not believed: an answer that contradicts itself or its question is none.
@Suite struct GatewayAnswerTests {
  private static let change = ChangeID(high: 1, low: 2)

  private static let grant: ReplicaGrant = {
    let lease = ReplicaLease(application: "draw", archive: 7, id: .numbered(9))
    var grant = ReplicaGrant(lease: lease, history: "h", base: 30, tip: ReplicaTip(sequence: 50, change: change))
    grant.reigns = [ReplicaReign(.numbered(8), end: 40)]
    grant.former = ReplicaHolder(host: "B", since: 1_772_269_500_042)
    return grant
  }()

  private static let page: ReplicaPage = {
    let tip = ReplicaTip(sequence: 30, change: change)
    let part = SnapshotPart(attempt: 3, tip: tip, reader: 1, number: 0, count: 1, bytes: [1])
    let batch = ReplicaBatch(after: 30, upto: 50, change: change, body: [1])
    return ReplicaPage(parts: [part], batches: [batch], next: .batches(after: 50))
  }()

  private static func listing(_ names: String..., hasMore: Bool = false) -> ReplicaListing {
    let archives = names.map { name in
      ReplicaSummary(application: name, holder: grant.former, sequence: 50, summary: [1])
    }
    return ReplicaListing(archives: archives, hasMore: hasMore)
  }

  private static func slice(_ text: some Collection<UInt8>) throws -> JSONSlice {
    try JSONSlice.scan(Array(text), vocabulary: EncodedState.vocabulary)
  }

  /// `nil` if it is none.
  private static func answer<Method: GatewayMethod>(_ reply: some JSONWritable, to method: Method) throws -> Method
    .Reply?
  {
    try? method.reply(.result(slice(reply.text.bytes)))
  }

  private static let acquire = Acquire().with { $0.name = "draw" }

  @Test func aGrantThatContradictsItselfIsNotRead() throws {
    #expect(try Self.answer(Self.grant, to: Self.acquire) == Self.grant)
    let faults: [(String, (inout ReplicaGrant) -> Void)] = [
      ("base", { $0.base = 51 }), ("base", { $0.tip.sequence = 29 }), ("base", { $0.base = 100_000_000_000_000_000 }),
      ("tip/sequence", { $0.tip.sequence = ChangeBatch.sequenceMax + 1 }), ("tip/sequence", { $0.tip.sequence = -1 }),
      ("reigns", { $0.reigns = Array(repeating: $0.reigns[0], count: ReplicaReign.toldMax + 1) }),
      ("reigns/0/end", { $0.reigns[0].end = -1 }), ("lease/application", { $0.lease.application = "notes" }),
    ]
    for (place, change) in faults {
      let error = #expect(throws: ReplicaError.self) {
        try Self.acquire.reply(.result(Self.slice(Self.grant.with(change).text.bytes)))
      }
      #expect(error?.kind == .unknown && error?.message.contains("acquire cannot be used: \(place) is not") == true)
    }
  }

  @Test func aListThatDoesNotGoOnIsNotRead() throws {
    let list = List().with { $0.after = "b" }
    #expect(try Self.answer(Self.listing("c", "d", hasMore: true), to: list)?.archives.count == 2)
    #expect(try Self.answer(Self.listing(), to: list) == ReplicaListing())
    for listing in [
      Self.listing("b"), Self.listing("a", "c"), Self.listing("d", "c"), Self.listing("c", "c"),
      Self.listing(hasMore: true),
    ] {
      #expect(try Self.answer(listing, to: list) == nil, "\(listing)")
    }
    let many = (0...ReplicaListing.pageMax).map { number in
      ReplicaSummary(application: "\(1_000 + number)", holder: nil, sequence: 0, summary: [])
    }
    #expect(try Self.answer(ReplicaListing(archives: many), to: List()) == nil)
    #expect(try Self.answer(ReplicaListing(archives: Array(many.dropLast())), to: List()) != nil)
  }

  @Test func aPartThatIsNoneOfItsSnapshotIsNotRead() throws {
    let load = Load()
    #expect(try Self.answer(Self.page, to: load) == Self.page)
    let faults: [(inout SnapshotPart) -> Void] = [
      { $0.number = 1 }, { ($0.number, $0.count) = (0, 0) }, { $0.count = 1 << 16 + 1 }, { $0.attempt = 0 },
      { $0.bytes = [UInt8](repeating: 0, count: GatewayProtocol.partBytesMax + 1) },
    ]
    for change in faults {
      var page = Self.page
      change(&page.parts[0])
      #expect(try Self.answer(page, to: load) == nil)
    }
  }

  // MARK: Every integer

  /// Where a schema says that there is an integer; members of elements and of what may be null count as well.
  private static func integers(of schema: Schema, at place: String = "") -> Set<String> {
    switch schema {
    case .integer: [place]
    case .object(let members):
      members.reduce(into: []) { $0.formUnion(integers(of: $1.schema, at: "\(place)/\($1.name)")) }
    case .array(let element, _): integers(of: element, at: place)
    case .nullable(let schema), .shared(_, let schema): integers(of: schema, at: place)
    default: []
    }
  }

  private static func integers(in value: JSONValue, at place: String = "") -> Set<String> {
    switch value {
    case .integer: [place]
    case .object(let object):
      object.members.reduce(into: []) { $0.formUnion(integers(in: $1.value, at: "\(place)/\($1.name)")) }
    case .array(let values): values.reduce(into: []) { $0.formUnion(integers(in: $1, at: place)) }
    default: []
    }
  }

  private static let values: [any WireValue] = {
    let standing = ReplicaStanding(history: "h", reigns: grant.reigns, phase: .held, archive: "a")
    let held = Renew.Reply.Held().with { ($0.lease, $0.sequence, $0.wanted) = (grant.lease, 50, "B") }
    return [
      grant, page, listing("draw"), Renew.Reply().with { $0.held = [held] },
      Attach.Reply().with { ($0.version, $0.user) = (1, "ada") },
      Attach().with { ($0.version, $0.broker, $0.term) = (1, "b", 15_000) },
      Acquire().with { ($0.name, $0.claim) = ("draw", ReplicaClaim(standing: standing, reader: 1)) },
      Append().with { ($0.lease, $0.batch) = (grant.lease, page.batches[0]) },
      Load().with { ($0.lease, $0.position) = (grant.lease, .snapshot(part: 0)) },
      Load().with { ($0.lease, $0.position) = (grant.lease, .batches(after: 30)) },
      Snapshot().with { ($0.lease, $0.part) = (grant.lease, page.parts[0]) },
      Release(grant.lease, .left(upto: 50, summary: [])),
    ]
  }()

  /// It is read as it was sent or not at all; and in what is read, each number is one that can be calculated with.
  @Test(arguments: values.indices) func anIntegerAtItsBordersIsReadAsItIsOrNotAtAll(index: Int) throws {
    let value = Self.values[index]
    let text = Array(value.text.bytes)
    let named = try Self.integers(in: JSONCodec.parse(text))
    let missing = Self.integers(of: type(of: value).schema).subtracting(named).subtracting([
      "/from/part", "/from/after",
    ])
    #expect(missing.isEmpty || value is ReplicaPage, "the sample lacks \(missing)")
    var refused = 0
    for variant in borders(of: text) {
      guard let slice = try? Self.slice(variant), let read = try? type(of: value).init(wire: slice) else {
        refused += 1
        continue
      }
      #expect(Array(read.text.bytes) == variant)
      if let grant = read as? ReplicaGrant {
        #expect(0...grant.tip.sequence ~= grant.base && grant.tip.sequence <= 1 << 53)
      }
    }
    #expect(refused > 0)
  }
}
