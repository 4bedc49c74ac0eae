// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// The state of an object: one JSON object, kept as text so that numbers, escapes and the order of members stay as they
/// were written.
///
/// References to other objects are `{"$restorable": handle or path}`; text that only looks like one is protected by
/// `{"$literal": …}`. Two states are equal when their compact texts are.
public struct RestorableState: Hashable, Sendable {
  /// Compact text of one object, in storage of its own.
  let text: JSONText

  /// Takes JSON text of one object; insignificant white space goes.
  ///
  /// Throws a `RestorationError` with code `parseError` where it is not JSON, and `invalidParams` where it is JSON of
  /// another kind.
  public init(jsonText: String) throws {
    let slice = try JSONInput.scan(jsonText, subject: "the state")
    guard slice.kind == .object else {
      throw RestorationError(.invalidParameter("/state", "the state is not an object", hint: "Give a JSON object."))
    }
    text = slice.compactText.detached()
  }

  init(_ text: JSONText) {
    self.text = text.detached()
  }

  /// No keys at all.
  public static let empty = RestorableState(.emptyObject)

  /// The state as compact JSON text.
  public var jsonText: String { text.string }

  /// Bytes of the text in UTF-8, as the broker's limit counts them.
  public var bytes: Int { text.count }
}

extension RestorableState: CustomStringConvertible {
  /// The JSON text.
  public var description: String { jsonText }
}
