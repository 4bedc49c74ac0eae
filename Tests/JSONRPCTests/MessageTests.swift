// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Testing

@Suite struct MessageTests {
  private static func summary(_ text: String) -> String {
    var peer = PeerFixture()
    return peer.events(text.utf8).map(\.summary).joined(separator: " | ")
  }

  @Test(arguments: [
    (#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m"),
    (#"{"method":"m","id":1,"jsonrpc":"2.0"}"#, "request 1 m"),
    (#"{"jsonrpc":"2.0","method":"m"}"#, "notification m"),
    (#"{"jsonrpc":"2.0","method":""}"#, "notification "),
    (#"{"jsonrpc":"2.0","method":"m","params":{}}"#, "notification m {}"),
    (#"{"jsonrpc":"2.0","method":"m","params":[]}"#, "notification m ()"),
    (#"{"jsonrpc":"2.0","method":"m","params":null}"#, "notification m"),
    (#"{"jsonrpc":"2.0","method":"m","params": null ,"id":2}"#, "request 2 m"),
    (
      #"[{"jsonrpc":"2.0","id":1,"method":"m","params":null},{"jsonrpc":"2.0","method":"n","params":null}]"#,
      "[request 1 m, notification n]"
    ),
    (#"{"jsonrpc":"2.0","method":"m","params":[1,{"a":2}],"extra":{"x":1}}"#, #"notification m (1,{"a":2})"#),
    (#"{"\u006asonrpc":"2\u002e0","m\u0065thod":"\u006d","\u0069d":1}"#, "request 1 m"),
    (#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#, #"response 3 result {"a":1}"#),
    (#"{"jsonrpc":"2.0","id":3,"result":null}"#, "response 3 result null"),
    (#"{"jsonrpc":"2.0","id":"3","error":{"code":1,"message":""}}"#, #"response "3" error {"code":1,"message":""}"#),
    (#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#, "request 1 m"),
  ])
  func wellFormedMessages(text: String, expected: String) { #expect(Self.summary(text) == expected) }

  @Test(arguments: [
    (#"{}"#, "invalid without id -32600"),
    (#"{"foo":"boo"}"#, "invalid without id -32600"),
    (#"{"id":1}"#, "invalid 1 -32600"),
    (#"{"method":"m","id":1}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"1.0","method":"m","id":1}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":2.0,"method":"m","id":1}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"2.00","method":"m"}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":null,"id":"x"}"#, "invalid \"x\" -32600"),
    (#"{"jsonrpc":"2.0","method":["m"],"id":null}"#, "invalid null -32600"),
    (#"{"jsonrpc":"2.0","method":"m","params":"bar","id":1}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"2.0","method":"m","params":1}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","params":true,"id":2}"#, "invalid 2 -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1.0}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1e3}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1E3}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":[1]}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":{}}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":true}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":"\#(String(repeating: "i", count: 1_023))"}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1\#(String(repeating: "0", count: 1_024))}"#, "invalid without id -32600"),
  ])
  func messagesThatAreNoRequest(text: String, expected: String) { #expect(Self.summary(text) == expected) }

  @Test(arguments: [
    #"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, #"{"jsonrpc":"2.0","result":1}"#,
    #"{"id":1,"result":1}"#, #"{"jsonrpc":"1.0","id":1,"result":1}"#, #"{"jsonrpc":"2.0","id":1.5,"result":1}"#,
    #"{"jsonrpc":"2.0","id":[],"error":1}"#, #"{"jsonrpc":"2.0","id":1,"id":1,"result":1}"#,
    #"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#,
  ])
  func malformedResponsesAreNeverRequests(text: String) { #expect(Self.summary(text) == "malformed response") }

  @Test(arguments: [
    "0", "-1", "-0", "1", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "123456789012345678901234567890", "null", "\"\"", "\"a\"", #""\u0061""#, #""a\/b""#, #""\ud83d\ude00""#, "\"é\"",
    "\"1\"", "\"a long identifier that does not fit into a small string\"",
  ])
  func idsAreEchoedByteForByte(id: String) {
    var peer = PeerFixture()
    peer.serve(#"{"jsonrpc":"2.0","id":\#(id),"method":"m"}"#) { _, _ in .result(.null) }
    #expect(peer.takeLines() == [#"{"jsonrpc":"2.0","id":\#(id),"result":null}"#])
    _ = peer.send(#"{"jsonrpc":"2.0","id":\#(id),"method":1}"#)
    #expect(peer.takeLines().first?.hasPrefix(#"{"jsonrpc":"2.0","id":\#(id),"error":{"code":-32600,"#) == true)
  }

  @Test func idsAreEqualWhenTheirValuesAre() throws {
    let id = { (text: String) in RequestID(try scan(text)) }
    let plain = try id(#""a""#)
    #expect(try plain == id(#""\u0061""#))
    #expect(try plain?.hashValue == id(#""\u0061""#)?.hashValue)
    #expect(plain == RequestID("a"))
    #expect(try id("0") == id("-0"))
    #expect(try id("1") == RequestID(1))
    #expect(try id("1") != id(#""1""#))
    #expect(try id("null") != id(#""null""#))
    #expect(try id("null") == .null)
    #expect(try id("9223372036854775808") != id("9223372036854775809"))
    #expect(try id("\"\u{E9}\"") != id("\"e\u{301}\""))
    #expect(try id("1.0") == nil)
    #expect(RequestID("a\"b").text == #""a\"b""#)
    #expect(try RequestID("a\"b") == id(#""a\u0022b""#))
  }

  // Members given twice

  @Test(arguments: [
    (#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"m","id":1}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"m\u0065thod":"m"}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"id":1}"#, "invalid without id -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"x":1,"x":2}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"params":{},"params":{}}"#, "invalid 1 -32600"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"params":{"a":1,"b":2,"a":3}}"#, "invalid 1 -32602 /a"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"params":{"a/b":1,"a\/b":3}}"#, "invalid 1 -32602 /a~1b"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"params":{"state":{"k":1,"\u006b":2}}}"#, "invalid 1 -32602 /state/k"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"params":{"state":{"~":1,"~":2}}}"#, "invalid 1 -32602 /state/~0"),
    (#"{"jsonrpc":"2.0","method":"m","id":1,"params":[0,{"k":1,"k":2}]}"#, "invalid 1 -32602 /1/k"),
    (
      #"{"jsonrpc":"2.0","method":"m","params":{"s":{"k":1,"k":2}}}"#,
      #"notification m {"s":{"k":1,"k":2}} fault -32602 /s/k"#
    ),
    (#"[{"jsonrpc":"2.0","method":"m","id":1,"params":{"s":{"k":1,"k":2}}}]"#, "[invalid 1 -32602 /s/k]"),
  ])
  func membersGivenTwiceAreRefused(text: String, expected: String) { #expect(Self.summary(text) == expected) }

  @Test func membersBelowTheCheckedLevelsAreNot() {
    let text = #"{"jsonrpc":"2.0","method":"m","params":{"s":{"k":{"x":1,"x":2}}}}"#
    #expect(Self.summary(text) == #"notification m {"s":{"k":{"x":1,"x":2}}}"#)
  }

  @Test func manyDifferentNamesAreNotTakenForEqual() {
    for count in [10, 100, 1_000, 4_096] {
      for prefix in ["", "key-", "a rather long common beginning of names "] {
        let names = (0..<count).map { "\"\(prefix)\($0)\":0" }
        let frame = { (members: [String]) in
          #"{"jsonrpc":"2.0","id":1,"method":"m","params":{"s":{"# + members.joined(separator: ",") + "}}}"
        }
        #expect(Self.summary(frame(names)).hasPrefix("request 1 m"))
        if count < 4_096 {
          #expect(Self.summary(frame(names + [names[count / 2]])) == "invalid 1 -32602 /s/\(prefix)\(count / 2)")
        }
      }
    }
  }

  @Test func anErrorRepeatsTheBeginningOfALongTextAndLeavesOutLongMembers() {
    let long = String(repeating: "é", count: 65_536)
    let fitting = JSONValue.array([.string(String(repeating: "x", count: 65_531))])
    let error = ErrorObject(
      code: -32002,
      message: long,
      data: [
        "kind": "unknownObject", "path": .array([.string(long)]), "method": .string(long), "reference": fitting,
        "owners": [["process": .string(long)]], "text": .text(JSONText(.string(long))),
      ]
    )
    #expect(error.message == String(repeating: "é", count: 1_024) + "…")
    #expect(error.data == ["kind": "unknownObject", "reference": fitting])
    let whole = ErrorObject(code: 1, message: String(repeating: "é", count: 1_024), data: .string(long))
    #expect(whole.message == String(repeating: "é", count: 1_024))
    #expect(whole.data == .string(long))
  }

  @Test func composedAndDecomposedNamesDiffer() {
    let text = "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"\u{E9}\":1,\"e\u{301}\":2}}"
    #expect(!Self.summary(text).contains("fault"))
  }
}
