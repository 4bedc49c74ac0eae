// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct JSONWriterTests {
  private func text(_ value: JSONValue) -> String { JSONText(value).string }

  @Test func commasAndColonsComeByThemselves() {
    var writer = JSONWriter(reserving: 64)
    writer.beginObject()
    writer.key("a")
    writer.integer(1)
    writer.key("b" as String)
    writer.beginArray()
    writer.null()
    writer.bool(true)
    writer.beginObject()
    writer.endObject()
    writer.beginArray()
    writer.endArray()
    writer.text(JSONText(["x": 1]))
    writer.real(0.5)
    writer.endArray()
    writer.key("c")
    writer.string("s")
    writer.endObject()
    #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"a":1,"b":[null,true,{},[],{"x":1},0.5],"c":"s"}"#)
  }

  @Test func goesOnBehindWhatIsThere() {
    var writer = JSONWriter(appendingTo: Array("first\n".utf8))
    writer.value([1])
    #expect(String(decoding: writer.bytes, as: UTF8.self) == "first\n[1]")
    var bytes = Array("[".utf8)
    JSONWriter.append(to: &bytes) { writer in
      writer.integer(1)
      writer.integer(2)
    }
    #expect(String(decoding: bytes, as: UTF8.self) == "[1,2")
  }

  @Test(arguments: [
    ("", #""""#), ("a\"b\\c/d", #""a\"b\\c/d""#), ("\u{8}\t\n\u{C}\r", #""\b\t\n\f\r""#),
    ("\0\u{1}\u{1F}\u{7F}", "\"\\u0000\\u0001\\u001f\u{7F}\""), ("é€😀\u{2028}", "\"é€😀\u{2028}\""),
    ("\"\"", #""\"\"""#),
  ])
  func stringsAreEscaped(value: String, expected: String) throws {
    #expect(text(.string(value)) == expected)
    #expect(text(.object(JSONObject([(name: value, value: 1)]))) == "{\(expected):1}")
    #expect(try scan(expected).string() == value)
  }

  @Test func everyScalarSurvivesWritingAndScanning() throws {
    for start in stride(from: UInt32(0), to: 0x11_0000, by: 0x1000) {
      var value = ""
      for code in start..<start + 0x40 { Unicode.Scalar(code).map { value.unicodeScalars.append($0) } }
      #expect(try scan(text(.string(value))).string() == value)
    }
  }

  @Test(
    arguments: [
      (0.1, "0.1"), (1, "1.0"), (-0.0, "-0.0"), (1e300, "1e+300"), (.leastNonzeroMagnitude, "5e-324"),
      (1.0 / 3, "0.3333333333333333"),
      (.nan, "null"), (.infinity, "null"), (-.infinity, "null"), (1e16, "1e+16"), (123456.789, "123456.789"),
    ] as [(Double, String)]
  )
  func realsAreTheShortestTextThatReadsBackTheSame(value: Double, expected: String) throws {
    #expect(text(.real(value)) == expected)
    if value.isFinite { #expect(try scan(expected).real() == value) }
  }

  @Test func integersOfEveryWidthAreWritten() {
    var writer = JSONWriter()
    writer.beginArray()
    writer.integer(Int64.min)
    writer.integer(UInt64.max)
    writer.integer(UInt8(9))
    writer.integer(-1)
    writer.endArray()
    #expect(String(decoding: writer.bytes, as: UTF8.self) == "[-9223372036854775808,18446744073709551615,9,-1]")
  }

  @Test func pointersEscapeTheirTokens() {
    #expect(JSONPointer.make() == "")
    #expect(JSONPointer.make("state", "a/b~c", "") == "/state/a~1b~0c/")
  }
}
