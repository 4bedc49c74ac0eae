// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationReplica
internal import SeededRandom
internal import TestSupport
internal import Testing

/// The bytes of what is sealed (`Protocol/replica-format.md`).
@Suite(.enabled(if: Sealing.isTested, Comment(rawValue: Sealing.requirement)))
struct SealedBytesTests {
  private static let archive = SealedPlace.Archive(application: "org.example.Draw", history: "a history")

  private static func bytes(_ hex: some StringProtocol) -> [UInt8] {
    let digits = String(hex).filter { !$0.isWhitespace }
    var (bytes, rest): ([UInt8], Substring) = ([], digits[...])
    while let byte = UInt8(rest.prefix(2), radix: 16) {
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  /// Appendix A.3.1 of draft-irtf-cfrg-xchacha.
  @Test func theCipherIsThatOfTheDraft() throws {
    let text = Array(
      """
      Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.
      """.utf8
    )
    let place = Self.bytes("50515253c0c1c2c3c4c5c6c7")
    let (nonce, key) = ([UInt8](0x40...0x57), [UInt8](0x80...0x9f))
    let sealed = Self.bytes(
      """
      bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216
      cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13
      b52ec0875924c1c7987947deafd8780acf49
      """
    )
    let sodium = try Sodium()
    #expect(sodium.seal(text, at: place, nonce: nonce, key: key) == sealed)
    #expect(sodium.open(sealed[...], at: place, nonce: nonce, key: key) == text)
    #expect(sodium.open(sealed[...], at: place + [0], nonce: nonce, key: key) == nil)
    #expect(sodium.open(sealed.prefix(15), at: place, nonce: nonce, key: key) == nil)
    #expect(sodium.open(sodium.seal([], at: [], nonce: nonce, key: key)[...], at: [], nonce: nonce, key: key) == [])
  }

  /// Appendix A of RFC 7693.
  @Test func aKeyIsNamedByItsHash() throws {
    #expect(try Sodium().hash(Array("abc".utf8)).starts(with: Self.bytes("ba80a53f981c4d0d6a2797b69f12f6e9")))
    #expect(try Self.key().id.description == "26fa78611c608497")
    #expect(ReplicaKeyID("26fa78611c608497") == (try Self.key().id))
    for other in ["26FA78611C608497", "26fa78611c60849", "26fa78611c6084971", "26fa78611c60849g", ""] {
      #expect(ReplicaKeyID(other) == nil, "\(other)")
    }
  }

  private static func key() throws -> ReplicaKey {
    let digits = (0x80...0x9f).map { String($0, radix: 16) }.joined()
    return try #require(try ReplicaKey(digits: Array(digits.utf8)))
  }

  @Test func aKeyDoesNotShowItself() throws {
    let key = try Self.key()
    var shown = "\(key) \(String(reflecting: key))"
    dump(key, to: &shown)
    #expect(!shown.contains("80818283") && !shown.contains("128"))
  }

  @Test func thePageShowsSealedBytesAsTheyAre() throws {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let page = try Files.text("/\(root)/Protocol/replica-format.md")
    let section = try #require(page.split(separator: "## Sealed bytes").last?.split(separator: "### Keys").first)
    let blocks = section.split(separator: "```").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
    try #require(blocks.count == 2)
    let change = ChangeID(high: 0x0123_4567_89ab_cdef, low: 7)
    let batch = ReplicaBatch(after: 300, upto: 302, change: change, body: Self.bytes("0102"))
    let place = SealedPlace.batch(
      batch,
      of: .init(application: "org.example.Draw", history: "2f1b0c1e-58c8-4c53-9a35-0a3f2f1f6f10")
    )
    #expect(place.bytes(under: try Self.key().id) == Self.bytes(blocks[0]))
    let sealed = try #require(SealedBytes(Self.bytes(blocks[1])))
    let text = try #require(try Self.key().open(sealed, as: place))
    let preceding = ChangeID(high: 0x8899_aabb_ccdd_eeff, low: 6)
    #expect(SealedBatch(text) == SealedBatch(batch.body, behind: preceding))
  }

  @Test func thePlacesOfPartsAndSummariesNeverChange() throws {
    let id = try Self.key().id
    let head = "72737472 81 26fa78611c608497"
    let archive = "00000001 61 00000001 68"
    let (tip, empty) = (ReplicaTip(sequence: 3, change: ChangeID(high: 4, low: 5)), ReplicaTip())
    func place(_ tip: ReplicaTip) -> [UInt8] {
      let part = SnapshotPart(tip: tip, reader: 6, number: 7, count: 8, bytes: [9])
      return SealedPlace.part(part, of: .init(application: "a", history: "h")).bytes(under: id)
    }
    let numbers = "0000000000000006 0000000000000007 0000000000000008"
    let change = "0000000000000003 01 0000000000000004 0000000000000005"
    #expect(place(tip) == Self.bytes("\(head) 01 \(archive) \(change) \(numbers)"))
    #expect(place(empty) == Self.bytes("\(head) 01 \(archive) 0000000000000000 00 \(numbers)"))
    #expect(SealedPlace.summary(of: "a").bytes(under: id) == Self.bytes("\(head) 02 00000001 61"))
  }

  @Test func sealedBytesBelongToOnePlaceOnly() throws {
    let key = try ReplicaKey()
    let places = Self.places()
    for place in places {
      let sealed = try #require(SealedBytes(key.seal([1, 2, 3], as: place)))
      let opened = places.map { key.open(sealed, as: $0) }
      #expect(opened.count { $0 != nil } == 1, "\(place)")
      #expect(key.open(sealed, as: place) == [1, 2, 3])
    }
  }

  /// Neighbours, of which each differs from the first in one thing.
  private static func places() -> [SealedPlace] {
    func batch(_ after: SequenceNumber = 1, _ upto: SequenceNumber = 3, change: UInt64 = 5) -> ReplicaBatch {
      .one(after, upto, change: change)
    }
    func part(
      _ sequence: SequenceNumber = 3,
      change: SequenceNumber? = 5,
      reader: Int = 1,
      number: Int = 0,
      count: Int = 2
    ) -> SnapshotPart {
      let tip = ReplicaTip(sequence: sequence, change: change.map(ChangeID.numbered))
      return SnapshotPart(tip: tip, reader: reader, number: number, count: count, bytes: [])
    }
    let others = [
      SealedPlace.Archive(application: "org.example.Draw", history: "another"),
      SealedPlace.Archive(application: "org.example.Dra", history: "wa history"),
    ]
    let batches = [batch(), batch(2), batch(1, 4), batch(change: 6)]
    let parts = [
      part(), part(4), part(change: 6), part(change: nil), part(reader: 2), part(number: 1), part(count: 3),
    ]
    return batches.map { .batch($0, of: archive) } + others.map { .batch(batch(), of: $0) }
      + parts.map { .part($0, of: archive) } + others.map { .part(part(), of: $0) }
      + [.summary(of: "org.example.Draw"), .summary(of: "org.example.Dra")]
  }

  @Test func noBytesButTheSealedOnesAreOpened() throws {
    let key = try ReplicaKey()
    let place = SealedPlace.summary(of: "org.example.Draw")
    func open(_ bytes: [UInt8]) -> [UInt8]? { SealedBytes(bytes).flatMap { key.open($0, as: place) } }
    let sealed = key.seal([1, 2, 3], as: place)
    #expect(sealed.count == 3 + SealedBytes.overhead && SealedBytes.overhead == 49)
    for index in sealed.indices {
      #expect(open(Array(sealed[..<index])) == nil)
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << bit
        #expect(open(changed) == nil, "byte \(index)")
      }
    }
    #expect(open(sealed + [0]) == nil)
    var random = SeededGenerator(seed: 1)
    for _ in 0..<200 {
      var bytes = (0..<random.below(100)).map { _ in UInt8(random.below(256)) }
      #expect(open(bytes) == nil)
      // As far as the key's name it may be right.
      bytes.replaceSubrange(..<min(9, bytes.count), with: sealed.prefix(9))
      #expect(open(bytes) == nil)
    }
    #expect(open(key.seal([1, 2, 3], as: place)) == [1, 2, 3])
    #expect(key.seal([1, 2, 3], as: place) != key.seal([1, 2, 3], as: place), "a nonce is used once")
  }

  @Test func aBatchSaysWhatItFollows() throws {
    for preceding in [nil, ChangeID(high: 2, low: 3)] {
      let sealed = SealedBatch([7, 8], behind: preceding)
      #expect(SealedBatch(sealed.text) == sealed)
      for count in 0..<sealed.text.count - 2 { #expect(SealedBatch(Array(sealed.text[..<count])) == nil) }
      #expect(SealedBatch([2] + sealed.text.dropFirst()) == nil, "neither with a change nor without one")
    }
  }
}
