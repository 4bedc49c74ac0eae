// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct ScanTests {
  @Test(arguments: [
    "null", "true", "false", "0", "-0", "-1", "10", "123456789012345678901234567890", "0.5", "-0.0", "1e5", "1E+5",
    "1e-5", "0e0", "1.25e10", "1e400", "\"\"", "\"a\"", "[]", "{}", "[[]]", "[1,2,3]", "{\"a\":1}",
    "{\"a\":{\"b\":[{}]}}", " [ 1 , 2 ] ", "\t{ \"a\" :\r\n 1 }\n", #""\"\\\/\b\f\n\r\t\u0041""#, #""\ud83d\ude00""#,
    #""\uD83D\uDE00""#, #""\u0000""#, #""\ud7ff\ue000""#, "\"é €😀\u{7F}\"", "\"12345678\"", "\"1234567\"",
    "[\"a\",\"b\",{\"c\":null}]", "{\"\":{\"\":\"\"}}", "{\"a\":1,\"a\":2}", "\"\u{FFFF}\u{10FFFF}\"",
  ])
  func acceptsJSON(text: String) throws {
    let slice = try scan(text)
    #expect(slice.description == text.trimmed)
  }

  @Test(
    arguments: [
      ("", "ends too early", 0), (" ", "ends too early", 1), ("nul", "ends too early", 3), ("nulL", "only literals", 3),
      ("True", "a value", 0), ("truefalse", "nothing may follow", 4), ("01", "nothing may follow", 1),
      ("[01]", "a comma or", 2), ("-", "ends too early", 1), ("[-]", "malformed", 2), ("[-a]", "malformed", 2),
      ("[1.]", "malformed", 3), ("[.5]", "a value", 1), ("[1e]", "malformed", 3), ("[1e+]", "malformed", 4),
      ("[+1]", "a value", 1), ("[1.5.5]", "a comma or", 4), ("[0x1]", "a comma or", 2), ("[NaN]", "a value", 1),
      ("[Infinity]", "a value", 1), ("[1 2]", "a comma or", 3), ("[1,]", "a value", 3), ("[,1]", "a value", 1),
      ("[", "ends too early", 1), ("[1", "ends too early", 2), ("{", "ends too early", 1), ("]", "a value", 0),
      ("{1:2}", "a member name", 1), ("{\"a\"}", "a colon", 4), ("{\"a\" 1}", "a colon", 5),
      ("{\"a\":}", "a value", 5), ("{\"a\":1,}", "a member name", 7), ("{\"a\":1]", "a comma or", 6),
      ("[1}", "a comma or", 2), ("{,}", "a member name", 1), ("{}}", "nothing may follow", 2),
      ("[][]", "nothing may follow", 2), ("1,2", "nothing may follow", 1), ("\"a", "ends too early", 2),
      ("\"\n\"", "a control character", 1), ("\"\t\"", "a control character", 1), ("\"a\u{1F}\"", "a control", 2),
      ("\"\u{0}\"", "a control character", 1), ("[1\u{0},2]", "a comma or", 2), ("{\"a\":1\u{0}}", "a comma or", 6),
      ("\u{0}", "a value", 0), ("[\u{0}", "a value", 1), ("null\u{0}", "nothing may follow", 4),
      (#""\a""#, "unknown escape", 1), (#""\u12G4""#, "unknown escape", 1), (#""\U0041""#, "unknown escape", 1),
      (#""\ud800""#, "half a surrogate", 1), (#""\ud800\u0041""#, "half a surrogate", 1),
      (#""\ud800a""#, "half a surrogate", 1), (#""\udc00""#, "half a surrogate", 1), (#""\ud800\ud800""#, "half", 1),
      ("[1 //\n]", "a comma or", 3), ("/**/1", "a value", 0), ("'a'", "a value", 0), ("[\"a\" \"b\"]", "a comma or", 5),
      ("\u{FEFF}1", "a value", 0), ("[1\u{A0}]", "a comma or", 2), ("[1\u{C}]", "a comma or", 2),
    ] as [(String, String, Int)]
  )
  func refusesWhatIsNotJSON(text: String, message: String, position: Int) {
    let error = #expect(throws: JSONError.self) { try scan(text) }
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    #expect(error?.position == position)
  }

  @Test(
    arguments: [
      [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
      [0xED, 0xA0, 0x80],
      [0xED, 0xBF, 0xBF], [0xE2, 0x82], [0xE2, 0x28, 0xA1], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF0, 0x9F, 0x98], [0xFE], [0xFF],
    ] as [[UInt8]]
  )
  func refusesInvalidUTF8(bytes: [UInt8]) {
    for padding in 0..<9 {
      let text = [UInt8(ascii: "\"")] + Array(repeating: UInt8(ascii: "x"), count: padding) + bytes
      let error = #expect(throws: JSONError.self) { try scan(text + [UInt8(ascii: "\"")]) }
      #expect(error?.message == "a string is not valid UTF-8")
      #expect(error?.position == 1 + padding)
    }
  }

  @Test func findsSpecialBytesAtEveryPlaceOfAWord() throws {
    for length in 0..<20 {
      let plain = String(repeating: "~", count: length)
      #expect(try scan("\"\(plain)\"").string() == plain)
      #expect(try scan("\"\(plain)é\"").string() == plain + "é")
      #expect(try scan("\"\(plain)\\n\(plain)\"").string() == plain + "\n" + plain)
      #expect(throws: JSONError.self) { try scan("\"\(plain)\u{1F}\"") }
      #expect(throws: JSONError.self) { try scan("\"\(plain)\u{0}\"") }
    }
  }

  @Test func everyControlCharacterIsRefusedAndNoOther() throws {
    for byte in UInt8.min..<0x80 {
      let text: [UInt8] = [UInt8(ascii: "\""), byte, UInt8(ascii: "\"")]
      let isPlain = byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
      #expect(((try? scan(text)) != nil) == isPlain, "\(byte)")
    }
  }

  @Test func everyEscapeIsKnownOrRefused() {
    for byte in UInt8.min...UInt8.max {
      let text: [UInt8] = [UInt8(ascii: "\""), UInt8(ascii: "\\"), byte, UInt8(ascii: "\"")]
      let isKnown = "\"\\/bfnrt".utf8.contains(byte) && byte != UInt8(ascii: "\"")
      #expect(((try? scan(text)) != nil) == isKnown || byte == UInt8(ascii: "\""), "\(byte)")
    }
  }
}

extension String {
  var trimmed: String {
    var text = Substring(self)
    while let first = text.utf8.first, " \t\r\n".utf8.contains(first) { text = text.dropFirst() }
    while let last = text.utf8.last, " \t\r\n".utf8.contains(last) { text = text.dropLast() }
    return String(text)
  }
}
