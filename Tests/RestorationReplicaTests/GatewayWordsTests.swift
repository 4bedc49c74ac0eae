// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationWire
internal import Testing

/// What is said over the gateway's socket.
@Suite struct GatewayWordsTests {
  private static let kinds: [ReplicaError.Kind] = [
    .elsewhere(ReplicaHolder(host: "B", since: 1_772_269_500_042)), .fenced(host: nil), .fenced(host: "B"), .voided,
    .away, .unknown, .gap(ChangeBatch.sequenceMax), .uncovered, .tooNew(2), .key("0123456789abcdef"),
    .quota(max: 1, value: 2), .refused,
  ]

  private static func slice(_ text: [UInt8]) throws -> JSONSlice {
    try JSONSlice.scan(text, vocabulary: EncodedState.vocabulary)
  }

  private static func read(_ object: ErrorObject, lost: ReplicaError.Kind = .unknown) throws -> ReplicaError {
    var writer = JSONWriter()
    object.write(to: &writer)
    return ReplicaError(try slice(writer.bytes), lost: lost)
  }

  @Test func eachErrorComesBackAsItWas() throws {
    for kind in Self.kinds {
      let error = try Self.read(ReplicaError(kind, "what happened").object)
      #expect(error.kind == kind && error.message == "what happened")
    }
    let words = Set(Self.kinds.map { ReplicaError($0, "").object.kind })
    #expect(words == Set(GatewayErrorCode.allCases.map { "\($0)" }).subtracting(["notAttached"]))
  }

  @Test func anErrorOfAnotherKindTellsWhetherItCanBeRepeated() throws {
    #expect(try Self.read(.invalidParams(hint: "Give it.")).kind == .refused)
    #expect(try Self.read(.restoration(.shuttingDown, "ending", hint: "Wait.")).kind == .away)
    #expect(try Self.read(.internalError(hint: "Look.")).kind == .unknown)
    #expect(try Self.read(.internalError(hint: "Look."), lost: .away).kind == .away)
    let blank = ErrorObject(code: GatewayErrorCode.gap.rawValue, message: "no sequence")
    #expect(try Self.read(blank).kind == .unknown, "what it is to say is missing")
  }

  private static func copy<Value: WireValue>(of value: Value) throws -> Value {
    try Value(wire: slice(Array(value.text.bytes)))
  }

  @Test func valuesComeBackAsTheyWereWithAll128BitsOfALease() throws {
    let lease = ReplicaLease(application: "draw@2", archive: .max, id: LeaseID(ChangeID(high: .max, low: 7)))
    let change = ChangeID(high: .max, low: 1)
    var grant = ReplicaGrant(lease: lease, history: "h", base: 3, tip: ReplicaTip(sequence: 9, change: change))
    #expect(try Self.copy(of: grant) == grant)
    grant.reigns = [ReplicaReign(.numbered(2), end: 2), ReplicaReign(.numbered(3), end: 9)]
    grant.former = ReplicaHolder(host: "ä", since: 5)
    #expect(try Self.copy(of: grant) == grant)
    for phase in ReplicaStanding.Phase.allCases {
      let reigns = grant.reigns + [ReplicaReign(lease.id, end: ReplicaReign.everything)]
      let standing = ReplicaStanding(history: "h", reigns: reigns, phase: phase, archive: "a")
      #expect(try Self.copy(of: standing) == standing)
    }
    let batches = [(0, 2, [1]), (2, 3, []), (3, 9, [1, 2, 3])].map { after, upto, body in
      ReplicaBatch(after: after, upto: upto, change: change, body: body)
    }
    let part = SnapshotPart(tip: grant.tip, reader: 2, number: 1, count: 2, bytes: [0, 255])
    let page = ReplicaPage(parts: [part], batches: batches, next: .batches(after: 9))
    #expect(try Self.copy(of: page) == page)
    #expect(try Self.copy(of: ReplicaPosition.snapshot(part: 7)) == .snapshot(part: 7))
  }

  @Test func aPageThatIsTooLongIsCutWhereTheNextOneBegins() {
    let tip = ReplicaTip(sequence: 4, change: .numbered(4))
    let parts = (0..<3).map { SnapshotPart(tip: tip, reader: 1, number: $0, count: 3, bytes: [0, 0]) }
    let page = ReplicaPage(parts: parts, batches: [.one(4, 5), .one(5, 6)], next: .batches(after: 6))
    #expect(page.beginning(bytesMax: 8) == page)
    #expect(page.beginning(bytesMax: 7) == ReplicaPage(parts: parts, batches: [.one(4, 5)], next: .batches(after: 5)))
    #expect(page.beginning(bytesMax: 6) == ReplicaPage(parts: parts, next: .batches(after: 4)))
    #expect(page.beginning(bytesMax: 5) == ReplicaPage(parts: Array(parts[..<2]), next: .snapshot(part: 2)))
    #expect(page.beginning(bytesMax: 0) == ReplicaPage(parts: [parts[0]], next: .snapshot(part: 1)))
    let batches = ReplicaPage(batches: [.one(4, 5), .one(5, 6)])
    #expect(batches.beginning(bytesMax: 0) == ReplicaPage(batches: [.one(4, 5)], next: .batches(after: 5)))
  }

  /// RFC 4648, section 10.
  @Test func bytesAreBase64() throws {
    let vectors = ["": "", "f": "Zg==", "fo": "Zm8=", "foo": "Zm9v", "foob": "Zm9vYg==", "foobar": "Zm9vYmFy"]
    for (bytes, text) in vectors {
      #expect(Base64.text(of: Array(bytes.utf8)) == text)
      #expect(Base64.bytes(of: text) == Array(bytes.utf8))
    }
    for text in ["Zg", "Zg=", "Z===", "====", "Zm9v\n", "Zg==Zg==", "Zm\u{e4}v"] {
      #expect(Base64.bytes(of: text) == nil, "\(text)")
    }
    let part = #"{"attempt":1,"tip":{"sequence":1},"reader":1,"number":0,"count":1,"bytes":"\u0041A\/w"}"#
    #expect(try SnapshotPart(wire: Self.slice(Array(part.utf8))).bytes == [0, 15, 240])
  }
}
