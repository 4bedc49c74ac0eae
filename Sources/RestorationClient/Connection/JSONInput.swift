// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Checks the caller's JSON text.
enum JSONInput {
  /// The value in the text, of any kind and size. Throws a `RestorationError` with code `parseError`, whose message
  /// names the text by `subject`.
  static func scan(_ text: String, subject: String) throws -> JSONSlice { try scan(Array(text.utf8), subject: subject) }

  /// Parameters of any call: an object or an array; `nil` if there are none.
  static func parameters(_ text: String?) throws -> JSONText? {
    guard let text else { return nil }
    let slice = try scan(text, subject: "the text of the parameters")
    guard slice.kind == .object || slice.kind == .array else {
      throw RestorationError(
        .invalidParameter("", "the parameters are neither an object nor an array", hint: "Give an object or an array.")
      )
    }
    return slice.compactText
  }

  static func scan(_ text: [UInt8], subject: String) throws -> JSONSlice {
    do throws(JSONError) {
      return try JSONSlice.scan(text, vocabulary: EncodedState.vocabulary, limits: .ofAnswers)
    } catch {
      throw RestorationError(
        .parseError(hint: "Give JSON by RFC 8259, in UTF-8.", offset: error.position),
        message: "\(subject) is not JSON: \(error.message), at byte \(error.position)"
      )
    }
  }
}

extension JSONText {
  /// The value in the text; `nil` if it is not JSON.
  var scanned: JSONSlice? { try? JSONInput.scan(Array(bytes), subject: "the text") }
}

extension Sequence<UInt8> {
  /// An upper bound of the values in JSON text: each but the outermost follows one of these characters.
  var jsonValuesMax: Int {
    reduce(1) { count, byte in
      byte == UInt8(ascii: ",") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: ":") ? count + 1 : count
    }
  }
}

extension FrameLimits {
  /// Frames of any size: the broker bounds its output, and a skipped frame would leave a call without its answer.
  static let ofAnswers = FrameLimits(
    frameBytesMax: Int(Int32.max) - 1,
    depthMax: 1_024,
    valuesPerFrameMax: .max,
    keysPerObjectMax: Int(Int32.max)
  )
}

/// The layout of JSON text. Values keep their digits, and members their order.
public enum JSONLayout: Hashable, Sendable {
  /// One line without white space.
  case compact
  /// One member a line, indented by two columns.
  case pretty

  /// Lays out one JSON value, without a final line feed. Throws a `RestorationError` with code `parseError` if the text
  /// is not JSON.
  public func format(_ jsonText: String) throws -> String {
    let compact = try JSONInput.scan(jsonText, subject: "the text").compactText
    switch self {
    case .compact: return compact.string
    case .pretty:
      return String(decoding: JSONCodec.format(.text(compact), style: .pretty, sortKeys: false), as: UTF8.self)
    }
  }
}
