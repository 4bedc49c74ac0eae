// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// Bytes sent on a new connection of a new broker, which is then closed for sending, and the complete expected output.
struct WireCase: Sendable, CustomTestStringConvertible {
  let name: String
  let input: [UInt8]
  let answers: [MessagePattern]

  var testDescription: String { name }

  init(_ name: String, _ input: String, _ answers: [MessagePattern]) {
    self.init(name, bytes: Array(input.utf8), answers)
  }

  init(_ name: String, bytes: [UInt8], _ answers: [MessagePattern]) {
    self.name = name
    self.input = bytes
    self.answers = answers
  }

  static let all = ids + envelopes + batches + notifications + framing + positions
}

extension WireCase {
  private static func ping(_ id: String) -> String { #"{"jsonrpc":"2.0","id":\#(id),"method":"ping"}"# }
  private static func pong(_ id: String) -> MessagePattern { .exactly(#"{"jsonrpc":"2.0","id":\#(id),"result":{}}"#) }
  private static func invalid(_ id: String = "null") -> MessagePattern { .error(id, -32600, "invalidRequest") }
  private static let syntax = MessagePattern.error("null", -32700, "parseError")

  /// Ids are echoed byte for byte.
  static let ids: [WireCase] =
    [
      "0", "1", "-1", "9007199254740993", "18446744073709551615", "123456789012345678901234567890", "null", #""""#,
      #""a""#, #""\u0061""#, #""é""#, #""\ud83d\ude00""#, #""a b\n\t\"\\\/""#, #""\u0000""#, #""1""#, "-0",
    ].map { WireCase("id \($0) comes back as it is", ping($0), [pong($0)]) }
    + ["1.0", "1e2", "1E2", "-0.5", "true", "false", "[]", "[1]", "{}", #"{"a":1}"#].map {
      WireCase("id \($0) is refused", ping($0), [invalid()])
    }

  static let envelopes: [WireCase] = [
    WireCase("a missing version", #"{"id":1,"method":"ping"}"#, [invalid("1")]),
    WireCase("version 1.0", #"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, [invalid("1")]),
    WireCase("version 2.0 as a number", #"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, [invalid("1")]),
    WireCase("an escaped version", #"{"jsonrpc":"\u0032.0","id":1,"method":"ping"}"#, [pong("1")]),
    WireCase("an escaped method", #"{"jsonrpc":"2.0","id":1,"method":"p\u0069ng"}"#, [pong("1")]),
    WireCase("escaped member names", #"{"json\u0072pc":"2.0","i\u0064":1,"metho\u0064":"ping"}"#, [pong("1")]),
    WireCase("members in any order", #"{"params":{},"method":"ping","id":1,"jsonrpc":"2.0"}"#, [pong("1")]),
    WireCase("unknown members", #"{"jsonrpc":"2.0","id":1,"method":"ping","x":[{"y":[]}],"":0}"#, [pong("1")]),
    WireCase("a missing method", #"{"jsonrpc":"2.0","id":1}"#, [invalid("1")]),
    WireCase("a method that is no string", #"{"jsonrpc":"2.0","id":1,"method":7}"#, [invalid("1")]),
    WireCase("parameters that are null", #"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, [pong("1")]),
    WireCase("parameters that are a string", #"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, [invalid("1")]),
    WireCase("parameters that are a number", #"{"jsonrpc":"2.0","id":1,"method":"ping","params":1}"#, [invalid("1")]),
    WireCase("an empty method", #"{"jsonrpc":"2.0","id":1,"method":""}"#, [.error("1", -32601, "methodNotFound")]),
    WireCase(
      "an unknown method is named",
      #"{"jsonrpc":"2.0","id":1,"method":"pong"}"#,
      [.error("1", -32601, "methodNotFound", #""method":"pong""#)]
    ),
    WireCase(
      "a method in the wrong case",
      #"{"jsonrpc":"2.0","id":1,"method":"Ping"}"#,
      [
        .error("1", -32601, "methodNotFound")
      ]
    ),
    WireCase(
      "a member given twice",
      #"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
      [
        .like(#"{"id":{"$any":1},"error":{"code":-32600}}"#)
      ]
    ),
    WireCase(
      "a parameter given twice",
      #"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#,
      [
        .error("1", -32602, "invalidParams")
      ]
    ),
    WireCase(
      "an answer to nothing is ignored",
      #"{"jsonrpc":"2.0","id":99,"result":1}{"jsonrpc":"2.0","id":98,"error":{"code":1,"message":"m"}}"# + ping("1"),
      [pong("1")]
    ),
    WireCase("an empty object", "{}", [invalid()]),
  ]

  static let batches: [WireCase] = [
    WireCase("an empty batch", "[]", [invalid()]),
    WireCase("a batch of one", "[" + ping("1") + "]", [.exactly(#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#)]),
    WireCase(
      "a batch of three ids",
      "[" + [ping("1"), ping(#""b""#), ping("null")].joined(separator: ",") + "]",
      [
        #"{"$unordered":[{"id":1},{"id":"b"},{"id":null}]}"#
      ]
    ),
    WireCase(
      "a batch of junk",
      "[1,null,\"x\",[]]",
      [
        .like("[" + Array(repeating: #"{"id":null,"error":{"code":-32600}}"#, count: 4).joined(separator: ",") + "]")
      ]
    ),
    WireCase("a batch of notifications", #"[{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","method":"no"}]"#, []),
    WireCase(
      "a batch of a request and a notification",
      #"[{"jsonrpc":"2.0","method":"ping"},"# + ping("5") + "]",
      [
        #"[{"id":5,"result":{}}]"#
      ]
    ),
    WireCase("a batch inside a batch", "[[" + ping("1") + "]]", [#"[{"id":null,"error":{"code":-32600}}]"#]),
    WireCase(
      "an id twice in a batch",
      "[" + ping("1") + "," + ping("1") + "]",
      [
        #"{"$unordered":[{"id":1,"result":{}},{"id":1,"error":{"code":-32600}}]}"#
      ]
    ),
    WireCase(
      "a batch with white space",
      " [ \n" + ping("1") + "\t , \r\n" + ping("2") + " ] ",
      [
        #"{"$unordered":[{"id":1,"result":{}},{"id":2,"result":{}}]}"#
      ]
    ),
    WireCase("a batch that never ends", "[" + ping("1") + ",", [syntax]),
    WireCase("a batch with a comma too many", "[" + ping("1") + ",]\n" + ping("2"), [syntax, pong("2")]),
    WireCase(
      "members of a batch take effect in their order",
      """
      [{"jsonrpc":"2.0","id":1,"method":"encodeRestorableState","params":{"application":"a","object":["A"],
      "state":{"n":1}}},
      {"jsonrpc":"2.0","method":"encodeRestorableState","params":{"application":"a","object":["A"],"state":{"n":2}}},
      {"jsonrpc":"2.0","id":3,"method":"decodeRestorableState","params":{"application":"a","object":["A"]}}]
      """,
      [#"{"$unordered":[{"id":1,"result":{"durability":"disk"}},{"id":3,"result":{"state":{"n":2}}}]}"#]
    ),
  ]

  static let notifications: [WireCase] = [
    WireCase("a notification is not answered", #"{"jsonrpc":"2.0","method":"ping"}"#, []),
    WireCase("an unknown notification is not answered", #"{"jsonrpc":"2.0","method":"nothing"}"#, []),
    WireCase(
      "a notification with wrong parameters is not answered",
      #"{"jsonrpc":"2.0","method":"initialize","params":[7]}"#,
      []
    ),
    WireCase(
      "a notification with a parameter given twice is not answered",
      """
      {"jsonrpc":"2.0","method":"encodeRestorableState","params":{"application":"a","object":["A"],"object":["B"],
      "state":{}}}
      """,
      []
    ),
    WireCase(
      "any method can be a notification",
      """
      {"jsonrpc":"2.0","method":"initialize","params":{"application":"a"}}
      {"jsonrpc":"2.0","method":"registerObjectForStateRestoration","params":["Main"]}
      {"jsonrpc":"2.0","method":"encodeRestorableState","params":[["Main"],{"n":1}]}
      {"jsonrpc":"2.0","id":1,"method":"decodeRestorableState","params":[["Main"]]}
      """,
      [.result("1", #"{"status":"available","state":{"n":1}}"#)]
    ),
    WireCase("id null is a request", ping("null"), [pong("null")]),
  ]

  static let framing: [WireCase] = [
    WireCase("glued frames", ping("1") + ping("2") + ping("3"), [pong("1"), pong("2"), pong("3")]),
    WireCase(
      "frames over many lines",
      "\n\n{\n \"jsonrpc\" :\t\"2.0\",\r\n\"id\":1,\n\"method\": \"ping\"\n}\n\n",
      [pong("1")]
    ),
    WireCase("white space alone", " \t\r\n\n", []),
    WireCase("nothing at all", "", []),
    WireCase("no line feed at the end", ping("1"), [pong("1")]),
    WireCase("carriage returns", ping("1") + "\r\n" + ping("2") + "\r\n", [pong("1"), pong("2")]),
    WireCase("brackets inside strings", #"{"jsonrpc":"2.0","id":"}]{[\"}","method":"ping"}"#, [pong(#""}]{[\"}""#)]),
    WireCase(
      "a line separator inside a string",
      "{\"jsonrpc\":\"2.0\",\"id\":\"\u{2028}\",\"method\":\"ping\"}",
      [pong("\"\u{2028}\"")]
    ),
    WireCase("a first byte that is no JSON", "hello\n" + ping("1"), [syntax]),
    WireCase("a first byte that is a number", "1" + ping("1"), [syntax]),
    WireCase("a byte order mark", bytes: [0xef, 0xbb, 0xbf] + Array(ping("1").utf8), [syntax]),
    WireCase("a NUL before the first frame", bytes: [0] + Array(ping("1").utf8), [syntax]),
    WireCase("recovery at the next line", "{\"a\":,}\n" + ping("1") + "\n", [syntax, pong("1")]),
    WireCase(
      "recovery skips lines that begin with something else",
      "{]\nxyz\n  {\n7\n" + ping("1") + "\n",
      [syntax, .like(#"{"id":{"$any":1}}"#)]
    ),
    WireCase("one error for the rest of a line", "{]" + ping("1") + "\n" + ping("2"), [syntax, pong("2")]),
    WireCase("an unfinished frame", #"{"jsonrpc":"2.0","id":1"#, [syntax]),
    WireCase("an unfinished string", #"{"jsonrpc":"2.0","id":"1"#, [syntax]),
    WireCase("raw control characters", "{\"jsonrpc\":\"2.0\",\"id\":\"\u{1}\",\"method\":\"ping\"}", [syntax]),
    WireCase(
      "a NUL after a number",
      bytes: Array(#"{"jsonrpc":"2.0","id":1"#.utf8) + [0] + Array(#","method":"ping"}"#.utf8),
      [syntax]
    ),
    WireCase(
      "bad UTF-8",
      bytes: Array(#"{"jsonrpc":"2.0","id":""#.utf8) + [0xc3, 0x28] + Array(#"","method":"ping"}"#.utf8),
      [syntax]
    ),
    WireCase(
      "a surrogate in UTF-8",
      bytes: Array(#"{"jsonrpc":"2.0","id":""#.utf8) + [0xed, 0xa0, 0x80] + Array(#"","method":"ping"}"#.utf8),
      [syntax]
    ),
    WireCase("a lone surrogate", #"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#, [syntax]),
    WireCase("a number with a leading zero", #"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, [syntax]),
    WireCase("a number with a plus sign", #"{"jsonrpc":"2.0","id":+1,"method":"ping"}"#, [syntax]),
    WireCase("NaN", #"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#, [syntax]),
    WireCase("a comment", "{/**/\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", [syntax]),
    WireCase("single quotes", "{'jsonrpc':'2.0'}", [syntax]),
    WireCase("a closing bracket of the other kind", #"{"a":[1}"# + "\n" + ping("1"), [syntax, pong("1")]),
    WireCase("literals in the wrong case", #"{"jsonrpc":"2.0","id":True,"method":"ping"}"#, [syntax]),
  ]

  static let positions: [WireCase] = [
    WireCase(
      "parameters by position",
      """
      {"jsonrpc":"2.0","id":1,"method":"initialize","params":["a",null,null,"main"]}
      {"jsonrpc":"2.0","id":2,"method":"registerObjectForStateRestoration","params":["Main",null,"viewController"]}
      {"jsonrpc":"2.0","id":3,"method":"encodeRestorableState","params":[["Main"],{"n":1},[],7]}
      {"jsonrpc":"2.0","id":4,"method":"encodeRestorableState","params":[["Main"],{"n":2},null,7]}
      {"jsonrpc":"2.0","id":5,"method":"decodeRestorableState","params":[["Main"]]}
      """,
      [
        .result("1", #"{"application":"a"}"#), .result("2", #"{"path":["Main"],"included":true}"#),
        .result("3", #"{"durability":"disk"}"#), .result("4", #"{"superseded":true}"#),
        .result("5", #"{"state":{"n":1}}"#),
      ]
    ),
    WireCase(
      "positions beyond the known ones",
      #"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1,2,3]}"#,
      [pong("1")]
    ),
    WireCase(
      "a position of the wrong type is pointed at",
      """
      {"jsonrpc":"2.0","id":1,"method":"initialize","params":["a"]}
      {"jsonrpc":"2.0","id":2,"method":"encodeRestorableState","params":[["Main"],5]}
      """,
      [.result("1"), .error("2", -32602, "invalidParams", #""pointer":"/1""#)]
    ),
    WireCase(
      "a missing position is pointed at",
      """
      {"jsonrpc":"2.0","id":1,"method":"initialize","params":["a"]}
      {"jsonrpc":"2.0","id":2,"method":"encodeRestorableState","params":[["Main"]]}
      """,
      [.result("1"), .error("2", -32602, "invalidParams", #""pointer":"/1""#)]
    ),
  ]
}
