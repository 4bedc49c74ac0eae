// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct JSONCodecTests {
  private func parse(_ text: String) throws -> JSONValue { try JSONCodec.parse(Array(text.utf8)) }

  private func format(_ value: JSONValue, _ style: JSONCodec.Style = .compact, sortKeys: Bool = false) -> String {
    String(decoding: JSONCodec.format(value, style: style, sortKeys: sortKeys), as: UTF8.self)
  }

  @Test func parsesEveryKindOfValue() throws {
    let text = #" {"b":[1,-2.5,1e3,"é\n\u0000",true,false,null],"a":{},"":[]} "#
    let expected: JSONValue = ["b": [1, -2.5, 1000.0, "é\n\0", true, false, nil], "a": [:], "": []]
    #expect(try parse(text) == expected)
    #expect(try parse(text).object?.members.map(\.name) == ["b", "a", ""])
    for (text, value) in [("1", 1), ("\"a\"", "a"), ("null", nil), ("1.5", 1.5)] as [(String, JSONValue)] {
      #expect(try parse(text) == value)
    }
    #expect(try parse("9223372036854775807") == .integer(.max))
    #expect(try parse("-9223372036854775808") == .integer(.min))
  }

  @Test(arguments: [
    "", "[1,]", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1,\"\\u0062\":2}}", "[1\u{0},2]", "{\"a\":1\u{0}}", "\u{FEFF}1",
    "1 2",
    "9223372036854775808", "1e400", "{\"\\u0000\":1}", "\"\\ud800\"", "[NaN]",
  ])
  func refusesWhatItCannotHold(text: String) {
    let error = #expect(throws: JSONError.self) { try parse(text) }
    #expect(error?.message.isEmpty == false)
  }

  @Test func depthIsLimitedBeforeJanssonSeesTheText() throws {
    let nested = { (depth: Int) in String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
    #expect(try parse(nested(64)).array != nil)
    #expect(throws: JSONError.self) { try parse(nested(65)) }
    #expect(throws: JSONError.self) { try parse(nested(1_000_000)) }
    #expect(throws: JSONError.self) {
      try scan(
        nested(65),
        limits: FrameLimits(frameBytesMax: 1_000, depthMax: 100, valuesPerFrameMax: 100, keysPerObjectMax: 1)
      )
      .value()
    }
  }

  @Test func writesShortestReals() {
    #expect(format([0.1, 1e300, -0.0, 0.30000000000000004]) == "[0.1,1e+300,-0.0,0.30000000000000004]")
    #expect(format(.real(.nan)) == "null")
  }

  @Test func laysOutPrettily() {
    let value: JSONValue = ["b": [1, 0.5, "1\n", nil], "a": ["c": true], "e": [:], "f": []]
    #expect(
      format(value, .pretty) == """
        {
          "b": [
            1,
            0.5,
            "1\\n",
            null
          ],
          "a": {
            "c": true
          },
          "e": {},
          "f": []
        }
        """
    )
    #expect(format(value, .compact, sortKeys: true) == #"{"a":{"c":true},"b":[1,0.5,"1\n",null],"e":{},"f":[]}"#)
  }

  @Test func formatsEveryStringAndName() throws {
    for value in ["", "\0", "a\"\\\n1", "é€😀", "123", "\u{7F}\u{2028}"] {
      for style in [JSONCodec.Style.compact, .pretty] {
        let text = format(.object(JSONObject([(name: value, value: .string(value))])), style)
        #expect(try scan(text).members?.map(\.name) == [value])
        #expect(try scan(text).members?.first?.value.string() == value)
      }
    }
  }

  @Test func verbatimTextIsLaidOutWithItsNumbersUnchanged() {
    let text = JSONText(validated: Array(#"{"b":[1e400,123456789012345678901234567890,-0],"a":"x"}"#.utf8))
    #expect(format(["t": .text(text)]) == #"{"t":{"b":[1e400,123456789012345678901234567890,-0],"a":"x"}}"#)
    #expect(
      format(.text(text), .pretty, sortKeys: true) == """
        {
          "a": "x",
          "b": [
            1e400,
            123456789012345678901234567890,
            -0
          ]
        }
        """
    )
  }

  @Test func whatIsTooDeepStaysOnOneLine() throws {
    var value: JSONValue = 1
    for _ in 0..<200 { value = [value] }
    let text = format(value, .pretty)
    #expect(text.filter { $0 == "[" }.count == 200)
    #expect(text.contains(String(repeating: "[", count: 136) + "1" + String(repeating: "]", count: 136)))
  }

  @Test func sortedCompactFormIsCanonical() throws {
    #expect(try canonical(#"{ "b":1, "a":[{"d":1,"c":2}] }"#) == #"{"a":[{"c":2,"d":1}],"b":1}"#)
  }
}

@Suite struct JSONValueTests {
  @Test func literalsAndAccessors() {
    let value: JSONValue = ["a": 1, "b": 1.5, "c": "x", "d": [true, nil], "e": ["f": 2]]
    #expect(value["a"]?.integer == 1)
    #expect(value["a"]?.real == 1)
    #expect(value["b"]?.real == 1.5)
    #expect(value["b"]?.integer == nil)
    #expect(value["c"]?.string == "x")
    #expect(value["d"]?.array?.first?.bool == true)
    #expect(value["d"]?.array?.last?.isNull == true)
    #expect(value["e"]?["f"] == 2)
    #expect(value["g"] == nil)
    #expect(value.string == nil)
  }

  @Test func objectsCompareWithoutOrderAndNamesByScalars() {
    #expect(["a": 1, "b": 2] as JSONValue == ["b": 2, "a": 1])
    #expect(["a": 1] as JSONValue != ["a": 1, "b": 2])
    #expect(JSONValue.string("\u{E9}") != .string("e\u{301}"))
    var object: JSONObject = ["\u{E9}": 1]
    #expect(object["e\u{301}"] == nil)
    object["x"] = 2
    object["\u{E9}"] = 3
    #expect(object.members.map(\.name) == ["\u{E9}", "x"])
    object["\u{E9}"] = nil
    #expect(object == ["x": 2])
    #expect(object.count == 1)
  }
}
