// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import SeededRandom
internal import TestSupport
internal import Testing

/// The bytes in which changes go from host to host (`Protocol/replica-format.md`).
@Suite struct ChangeCodecTests {
  private static let name = ChangeID(high: 0x0123_4567_89ab_cdef, low: 7)
  /// What stands before the only change of `batch`.
  private static let head = "01 0501 0123456789abcdef 0000000000000007 01"

  private static func batch(_ change: ArchiveChange) -> ChangeBatch {
    ChangeBatch(after: 5, [.init(name, [change])])
  }

  private static func encoded(_ batch: ChangeBatch) -> [UInt8] { batch.encoded { $0 } }

  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  /// A change of each case with its bytes, and some whose members differ.
  static let samples: [(ArchiveChange, String)] = [
    (
      .node(
        NodeRecord(
          node: 1,
          parent: 300,
          component: "a#2",
          kind: .view,
          classes: "[]",
          restorationClass: "R",
          storyboard: "u",
          isRemoved: true,
          successor: 0
        )
      ),
      "00 01 01ac02 0103612332 02 01025b5d 010152 010175 00 00 01 0100"
    ),
    (
      .node(NodeRecord(node: 127, parent: nil, component: nil, kind: .application, isConfidential: true)),
      "00 7f 00 00 03 00 00 00 00 01 00 00"
    ),
    (
      .state(
        StateRecord(
          node: 128,
          context: 2,
          session: 3,
          revision: 4,
          isEarly: true,
          written: 1 << 40,
          text: Array("{}".utf8)[...],
          references: "[]",
          elements: "é"
        )
      ),
      "01 8001 02 03 04 01 808080808020 027b7d 01025b5d 0102c3a9"
    ),
    (
      .state(StateRecord(node: 0, context: 0, written: 1 << 53, text: [0xff])),
      "01 00 00 00 00 00 8080808080808010 01ff 00 00"
    ),
    (.removeState(9), "02 09"),
    (.removeAll, "03"),
    (.settle([1, 200]), "04 02 01 c801"),
    (.withhold([StateRow(node: 1, sequence: 2), StateRow(node: 3, sequence: 4)], since: 5), "05 02 0102 0304 05"),
    (.release([StateRow(node: 1, sequence: 2)]), "06 01 0102"),
    (.context(6, text: "{}"), "07 06 027b7d"),
    (.forgetContexts([]), "08 00"),
    (
      .seal(GenerationRecord(generation: 1, kind: "round", committed: 2, objects: 3, bytes: 4, omitted: [5])),
      "09 01 05726f756e64 02 03 04 0105"
    ),
    (.pin(generation: 4), "0a 0104"),
    (.pin(generation: nil), "0a 00"),
    (.dropGeneration(3), "0b 03"),
    (
      .session(SessionRecord(session: 1, token: "t", facts: "{}", ending: "x", ended: 2, restorationsAtEnd: 3)),
      "0c 01 0174 027b7d 010178 02 03"
    ),
    (.forgetSessions([1]), "0d 01 01"),
    (.claim(ClaimRecord(node: 1, session: 2, handle: 3, released: 4, restorationsAtRelease: 5)), "0e 01 02 03 04 05"),
    (.run(RunRecord(run: 1, restorations: 2, facts: "")), "0f 01 02 00"),
    (.superseded, "10"),
  ]

  @Test func theBytesOfEachChangeNeverChange() throws {
    for (change, hex) in Self.samples {
      let bytes = Self.bytes(Self.head + hex)
      #expect(Self.encoded(Self.batch(change)) == bytes, "\(change)")
      #expect(try ChangeBatch(decoding: bytes) == Self.batch(change))
    }
    #expect(Set(Self.samples.map { Self.bytes($0.1)[0] }) == Set(0...16))
  }

  @Test func thePageShowsABatchAsItIs() throws {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let page = try Files.text("/\(root)/Protocol/replica-format.md")
    let rows = page.split(separator: "\n").compactMap { $0.firstMatch(of: /^\| (\d+) \|/).flatMap { UInt8($0.1) } }
    #expect(rows == Array(0...16))
    let changes: [ArchiveChange] = [
      .node(NodeRecord(node: 1, parent: nil, component: "Main", kind: .viewController)),
      .state(
        StateRecord(
          node: 1,
          context: 2,
          session: 3,
          revision: 4,
          written: 1_790_000_000_000,
          text: Array(#"{"line":1}"#.utf8)[...]
        )
      ),
    ]
    let example = try #require(page.split(separator: "```").dropFirst().first)
    #expect(Self.bytes(String(example)) == Self.encoded(ChangeBatch(after: 300, [.init(Self.name, changes)])))
  }

  @Test func transactionsFollowOneAnotherWithoutGaps() throws {
    let transactions = [[], [ArchiveChange.removeAll], [.removeState(1), .removeAll]].enumerated().map {
      ChangeBatch.Transaction(ChangeID(high: .max, low: UInt64($0)), $1)
    }
    let batch = ChangeBatch(after: 300, transactions)
    #expect(batch.upto == 303)
    #expect(try ChangeBatch(decoding: Self.encoded(batch)) == batch)
    #expect(try ChangeBatch(decoding: Self.bytes("01 00 00")) == ChangeBatch(after: 0, []))
  }

  @Test func whateverHappensToAnArchiveComesBackAsItWas() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      var (changes, model) = (RandomChanges(seed: seed), NaiveArchive())
      var batch = ChangeBatch(after: 0, [])
      for number in 1...30 as ClosedRange<UInt64> {
        let transaction = changes.transaction(on: model)
        model.apply(transaction)
        batch.transactions.append(.init(ChangeID(high: seed, low: number), transaction))
      }
      #expect(batch.upto == model.sequence)
      #expect(try ChangeBatch(decoding: Self.encoded(batch)) == batch)
    }
  }

  /// An archive's file counts them so, too.
  @Test func aNumberThatNoArchiveHasCountsAsTheNearestThatItCanHave() throws {
    for (number, read) in [(-1, 0), (.min, 0), (.max, 1 << 53), (1 << 53 + 1, 1 << 53)] as [(Int64, Int64)] {
      let bytes = Self.encoded(Self.batch(.dropGeneration(number)))
      #expect(try ChangeBatch(decoding: bytes) == Self.batch(.dropGeneration(read)))
    }
  }

  @Test func otherHostsAreToldOfASessionWhatTheyMayKnow() throws {
    let record = SessionRecord(session: 1, token: "secret", facts: #"{"process":7}"#, ended: 3)
    let bytes = Self.batch(.session(record)).encoded { record in
      var shared = record
      (shared.token, shared.facts) = ("", "{}")
      return shared
    }
    let read = try ChangeBatch(decoding: bytes)
    #expect(read == Self.batch(.session(SessionRecord(session: 1, token: "", facts: "{}", ended: 3))))
  }

  // MARK: Bytes from outside

  @Test func aBatchThatEndsEarlyOrLateIsRefused() {
    for (_, hex) in Self.samples {
      let bytes = Self.bytes(Self.head + hex)
      for count in bytes.indices {
        #expect(throws: ChangeBatchError.self) { try ChangeBatch(decoding: Array(bytes[..<count])) }
      }
      let error = #expect(throws: ChangeBatchError.self) { try ChangeBatch(decoding: bytes + [0]) }
      #expect(error?.description == "byte \(bytes.count): bytes follow the last change")
    }
  }

  @Test func aByteThatIsAnotherOneGivesAnotherBatchOrNone() {
    let others: [UInt8] = [1, 2, 4, 8, 16, 32, 64, 128, 0x7f, 0xff]
    for (change, hex) in Self.samples {
      var bytes = Self.bytes(Self.head + hex)
      for index in bytes.indices {
        let byte = bytes[index]
        for other in Environment.isLong ? Array(1...255) : others {
          bytes[index] = byte ^ other
          guard let batch = try? ChangeBatch(decoding: bytes) else { continue }
          guard batch != Self.batch(change), Self.encoded(batch) == bytes else {
            Issue.record("\(bytes) reads as \(batch)")
            continue
          }
        }
        bytes[index] = byte
      }
    }
  }

  /// Its numbers may be any that can be read.
  @Test(arguments: ArchiveEngine.allCases)
  func whatCanBeReadIsWrittenOrRefused(engine: ArchiveEngine) async throws {
    var generator = SeededGenerator(seed: 1)
    let seeds = Self.samples.map { Self.bytes(Self.head + $0.1) }
    let fixture = try ArchiveFixture(engine)
    var author = try await fixture.author()
    var written = 0
    for _ in 1...400 {
      var bytes = seeds[generator.below(seeds.count)]
      let place = 20 + generator.below(bytes.count - 20)
      bytes[place] = UInt8(generator.below(256))
      guard let batch = try? ChangeBatch(decoding: bytes) else { continue }
      do {
        try await author.apply(batch.transactions[0].changes)
        written += 1
      } catch {
        #expect(error.kind == .definite)
      }
    }
    #expect(written > 50)
    try await author.maintain()
    _ = try await author.scan()
    let sequence = author.sequence
    author = try await fixture.author()
    #expect(author.opening.sequence == sequence)
  }

  @Test(
    arguments: [
      ("02 00 00", 1, "version 2 is unknown; install a restorationd that knows it"),
      ("01 00 01 0000000000000000 0000000000000000 01 11", 21, "a change of kind 17 is unknown"),
      ("01 00 8080808080808010", 10, "8 bytes are to follow; the batch ends too early"),
      ("01 00 8180808080808010", 10, "a number is above 2^53"),
      ("01 ffffffffffffffffff01 00", 9, "a number is above 2^53"),
      ("01 00 8000", 4, "a number has a byte too many"),
      (
        "01 8080808080808010 01 0000000000000000 0000000000000000 01 03", 28,
        "the last sequence, 9007199254740993, is above 2^53"
      ),
      ("01 00 01 0000000000000000", 11, "8 bytes are to follow; the batch ends too early"),
      ("01 00 01 0000000000000000 0000000000000000 01 04 8080808080808010", 29, "the batch ends too early"),
      (
        "01 00 01 0000000000000000 0000000000000000 01 07 01 8080808080808010 00", 30,
        "9007199254740992 bytes are to follow; the batch ends too early"
      ),
      ("01 00 01 0000000000000000 0000000000000000 01 07 01 01 ff", 24, "a text is not UTF-8"),
      ("01 00 01 0000000000000000 0000000000000000 01 0a 02", 22, "2 is neither true nor false"),
      ("01 00 01 0000000000000000 0000000000000000 01 00 01 00 00 04", 25, "a node of kind 4 is unknown"),
    ] as [(String, Int, String)]
  )
  func whatCannotBeReadIsNamed(_ hex: String, _ offset: Int, _ message: String) {
    let error = #expect(throws: ChangeBatchError.self) { try ChangeBatch(decoding: Self.bytes(hex)) }
    #expect(error?.offset == offset && error?.message == message)
  }
}
