// SPDX-License-Identifier: Apache-2.0

/// The error object of a JSON-RPC answer.
///
/// The functions below always set `data.kind` (a stable word for programs) and `data.hint` (the next step, for people).
/// Codes from −32000 to −32099 other than −32008 belong to the module that knows the protocol.
///
/// The peer's text may be as long as a frame. A message repeats only its beginning, and `data` nothing of it.
package struct ErrorObject: Error, Sendable, Equatable {
  package let code: Int
  package let message: String
  package let data: JSONValue?

  /// Unicode scalars of a message, and bytes of a member of `data`.
  package static let messageLengthMax = 1_024
  package static let memberBytesMax = 65_536

  /// - Parameters:
  ///   - message: truncated if it is too long.
  ///   - data: members that are too long are left out.
  package init(code: Int, message: String, data: JSONValue? = nil) {
    self.code = code
    let rest = message.unicodeScalars.dropFirst(Self.messageLengthMax)
    self.message = rest.isEmpty ? message : String(message[..<rest.startIndex]) + "…"
    self.data =
      data?.object.map { .object(JSONObject($0.members.filter { $0.value.bytes <= Self.memberBytesMax })) } ?? data
  }

  /// The word in `data.kind`, otherwise the code.
  package var kind: String { data?["kind"]?.string ?? "error \(code)" }

  /// −32700. `offset` counts the bytes before the fault, from the start of the frame.
  package static func parseError(hint: String, offset: Int? = nil) -> ErrorObject {
    var data = description(kind: "parseError", hint: hint)
    if let offset { data["offset"] = .integer(Int64(offset)) }
    return ErrorObject(code: -32700, message: "Parse error", data: .object(data))
  }

  /// −32600.
  package static func invalidRequest(hint: String) -> ErrorObject {
    ErrorObject(
      code: -32600,
      message: "Invalid Request",
      data: .object(description(kind: "invalidRequest", hint: hint))
    )
  }

  /// −32601.
  package static func methodNotFound(_ method: String, hint: String? = nil) -> ErrorObject {
    var data = description(kind: "methodNotFound", hint: hint ?? "Call rpc.discover for the methods that exist.")
    data["method"] = .string(method)
    return ErrorObject(code: -32601, message: "Method not found: \(method)", data: .object(data))
  }

  /// −32602. `pointer` is a JSON pointer (RFC 6901) into `params`; empty for `params` itself.
  package static func invalidParams(hint: String, pointer: String = "") -> ErrorObject {
    var data = description(kind: "invalidParams", hint: hint)
    data["pointer"] = .string(pointer)
    return ErrorObject(code: -32602, message: "Invalid params", data: .object(data))
  }

  /// −32603.
  package static func internalError(hint: String) -> ErrorObject {
    ErrorObject(code: -32603, message: "Internal error", data: .object(description(kind: "internalError", hint: hint)))
  }

  package static let limitExceededCode = -32008

  /// −32008. `limit` is the limit's name; `value` is the value needed, if known.
  package static func limitExceeded(_ limit: String, max: Int, value: Int, hint: String) -> ErrorObject {
    var data = description(kind: "limitExceeded", hint: hint)
    data["limit"] = .string(limit)
    data["max"] = .integer(Int64(max))
    data["value"] = .integer(Int64(value))
    return ErrorObject(code: limitExceededCode, message: "Limit exceeded", data: .object(data))
  }

  /// −32008 for a frame that is skipped. `value` is the value sent, if known.
  static func frameExceeds(_ limit: String, max: Int, value: Int? = nil) -> ErrorObject {
    limitExceeded(
      limit,
      max: max,
      value: value ?? max + 1,
      hint: "The frame was skipped. Send less in one frame; see the method limits."
    )
  }

  /// −32800 of the Language Server Protocol: the caller has cancelled the call.
  package static func requestCancelled(hint: String) -> ErrorObject {
    ErrorObject(
      code: -32800,
      message: "Request cancelled",
      data: .object(description(kind: "requestCancelled", hint: hint))
    )
  }

  private static func description(kind: String, hint: String) -> JSONObject {
    ["kind": .string(kind), "hint": .string(hint)]
  }
}

extension ErrorObject {
  /// Writes `{"code":…,"message":…,"data":…}`, without `data` if there is none.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("code")
    writer.integer(code)
    writer.key("message")
    writer.string(message)
    if let data {
      writer.key("data")
      writer.value(data)
    }
    writer.endObject()
  }
}
