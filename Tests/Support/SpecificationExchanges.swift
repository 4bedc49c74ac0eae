// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// One example of the JSON-RPC 2.0 specification, section 7: a client's message and the expected answer.
package struct SpecificationExchange: Sendable, CustomStringConvertible {
  package let name: String
  package let request: String
  /// `nil` if no answer is allowed.
  package let response: String?

  package var description: String { name }

  /// Two answers are the same when their canonical forms are: member order, the order of answers in a batch and the
  /// implementation's own `data` of an error do not count, nor what it adds to a message after a colon.
  package static func canonical(_ text: String) throws -> String {
    let value = try JSONCodec.parse(Array(text.utf8))
    guard case .array(let answers) = value else { return format(value) }
    return "[" + answers.map(format).sorted().joined(separator: ",") + "]"
  }

  private static func format(_ answer: JSONValue) -> String {
    var answer = answer
    if case .object(var object) = answer, case .object(let error)? = object["error"] {
      let message = error["message"]?.string?.prefix { $0 != ":" }
      object["error"] = .object(["code": error["code"] ?? .null, "message": .string(String(message ?? ""))])
      answer = .object(object)
    }
    return String(decoding: JSONCodec.format(answer, style: .compact, sortKeys: true), as: UTF8.self)
  }
}

extension SpecificationExchange {
  /// The methods the examples call: `subtract`, `sum`, `get_data` answer, `update`, `notify_hello`, `notify_sum` are
  /// only ever notified, and every other one does not exist.
  package static let all: [SpecificationExchange] = [
    SpecificationExchange(
      name: "positional parameters",
      request: #"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#,
      response: #"{"jsonrpc": "2.0", "result": 19, "id": 1}"#
    ),
    SpecificationExchange(
      name: "positional parameters, the other way round",
      request: #"{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}"#,
      response: #"{"jsonrpc": "2.0", "result": -19, "id": 2}"#
    ),
    SpecificationExchange(
      name: "named parameters",
      request: #"{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}"#,
      response: #"{"jsonrpc": "2.0", "result": 19, "id": 3}"#
    ),
    SpecificationExchange(
      name: "named parameters, the other way round",
      request: #"{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}"#,
      response: #"{"jsonrpc": "2.0", "result": 19, "id": 4}"#
    ),
    SpecificationExchange(
      name: "a notification",
      request: #"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#,
      response: nil
    ),
    SpecificationExchange(
      name: "a notification of an unknown method",
      request: #"{"jsonrpc": "2.0", "method": "foobar"}"#,
      response: nil
    ),
    SpecificationExchange(
      name: "a call of an unknown method",
      request: #"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
      response: #"{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}"#
    ),
    SpecificationExchange(
      name: "invalid JSON",
      request: #"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
      response: #"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#
    ),
    SpecificationExchange(
      name: "an invalid request",
      request: #"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#,
      response: #"{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}"#
    ),
    SpecificationExchange(
      name: "a batch of invalid JSON",
      request: #"""
        [
          {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
          {"jsonrpc": "2.0", "method"
        ]
        """#,
      response: #"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#
    ),
    SpecificationExchange(
      name: "an empty batch",
      request: "[]",
      response: #"{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}"#
    ),
    SpecificationExchange(
      name: "a batch of one invalid request",
      request: "[1]",
      response: #"[{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}]"#
    ),
    SpecificationExchange(
      name: "a batch of invalid requests",
      request: "[1,2,3]",
      response: #"""
        [
          {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
          {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
          {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}
        ]
        """#
    ),
    SpecificationExchange(
      name: "a mixed batch",
      request: #"""
        [
          {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
          {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
          {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
          {"foo": "boo"},
          {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
          {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
        ]
        """#,
      response: #"""
        [
          {"jsonrpc": "2.0", "result": 7, "id": "1"},
          {"jsonrpc": "2.0", "result": 19, "id": "2"},
          {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
          {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"},
          {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}
        ]
        """#
    ),
    SpecificationExchange(
      name: "a batch of notifications",
      request: #"""
        [
          {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
          {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
        ]
        """#,
      response: nil
    ),
  ]
}
