// SPDX-License-Identifier: Apache-2.0

internal import CJansson
internal import JSONRPC
internal import Mutation
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Holds the scan against jansson, an independent parser: both must judge mutated frames alike.
///
/// They differ on purpose if jansson 2.14 is lax or narrow: it swallows a raw NUL after a number or word, and
/// refuses numbers beyond 64 bits or a double, a NUL in a name, and duplicate names at every depth.
@Suite struct ScanFuzzTests {
  private static let seeds = [
    #"{"jsonrpc":"2.0","id":7,"method":"m","params":{"object":["a"],"state":{"x":120.5,"y":-64,"z":[true,false]}}}"#,
    #"{"jsonrpc":"2.0","id":7,"result":{"states":[{"object":1,"state":{"a":{"b":[1,{"c":2}]}}},{"later":true}]}}"#,
    #"[{"jsonrpc":"2.0","id":"\u00e9\ud83d\ude00","params":[1e10,-0.5E-3,0,"é€😀\n\\"]},{"jsonrpc":null}]"#,
    #" { "a" : [ [ ] , { } , [ { "b" : "" } ] ] , "c" : { "$restorable" : [ "Main" ] , "$literal" : 1 } } "#,
    #"{"text":"Lorem ipsum dolor sit amet, consectetur","list":[0,1,2,3,4,10,123456789],"deep":[[[[[[{}]]]]]]}"#,
  ].map { Array($0.utf8) }

  @Test func theScanAndJanssonJudgeAlike() {
    var random = SeededGenerator(seed: 0x5EED)
    for _ in 0..<6_000 {
      let text = random.mutation(of: Self.seeds)
      let scanned = Result { try scan(text) }
      let (isAccepted, isKnownDifference) = Self.jansson(text)
      if isKnownDifference { continue }
      let verdict = (try? scanned.get()) != nil
      #expect(verdict == isAccepted, "\(String(decoding: text, as: UTF8.self).debugDescription)")
    }
  }

  @Test func everyCutGivesTheSameEvents() {
    var random = SeededGenerator(seed: 0xC07)
    for _ in 0..<1_500 {
      let text = random.mutation(of: Self.seeds) + random.mutation(of: Self.seeds)
      var whole = PeerFixture()
      let expected = whole.events(text).map(\.summary) + [whole.decoder.finish()?.summary ?? ""]
      var pieces = PeerFixture()
      let step = Int(random.next() % 7) + 1
      let events = pieces.events(text, step: step).map(\.summary) + [pieces.decoder.finish()?.summary ?? ""]
      #expect(events == expected, "\(String(decoding: text, as: UTF8.self).debugDescription) in steps of \(step)")
    }
  }

  @Test func whatIsAcceptedIsUnderstoodAlike() throws {
    var random = SeededGenerator(seed: 0xA11)
    for _ in 0..<1_000 {
      let text = random.mutation(of: Self.seeds)
      guard let slice = try? scan(text), let value = try? slice.value() else { continue }
      #expect(Self.tree(slice) == value)
      #expect(try JSONCodec.parse(slice.compactText.bytes) == value)
    }
  }

  /// The value as read off the text by slices alone.
  private static func tree(_ slice: JSONSlice) -> JSONValue {
    switch slice.kind {
    case .object: .object(JSONObject((slice.members ?? []).map { (name: $0.name, value: tree($0.value)) }))
    case .array: .array((slice.elements ?? []).map(tree))
    case .string: .string(slice.string() ?? "")
    case .integer: .integer(slice.integer() ?? 0)
    case .real: .real(slice.real() ?? 0)
    case .bool: .bool(slice.bool() ?? false)
    case .null: .null
    }
  }

  /// Whether jansson accepts the text, and whether it is known to judge such text otherwise than the scan.
  private static func jansson(_ text: [UInt8]) -> (isAccepted: Bool, isKnownDifference: Bool) {
    var error = json_error_t()
    let tree = text.withUnsafeBytes {
      json_loadb(
        $0.baseAddress?.assumingMemoryBound(to: CChar.self),
        $0.count,
        size_t(JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL),
        &error
      )
    }
    json_decref(tree)
    if tree != nil { return (true, text.contains(0)) }
    let message = String(cString: cjansson_error_text(&error))
    let known = [
      "too big integer", "too big negative integer", "real number overflow", "NUL byte in object key",
      "duplicate object key",
    ]
    return (false, known.contains { message.contains($0) })
  }
}
