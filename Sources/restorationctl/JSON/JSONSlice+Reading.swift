// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

extension JSONSlice {
  /// The value of a text from the broker.
  static func read(sent text: String, subject: String) throws -> JSONSlice {
    try read(text, subject: subject, hint: "Use the restorationctl of the broker's version.")
  }

  /// The value of a text from the user, of any length.
  ///
  /// - Parameter subject: the text's name in messages.
  static func read(_ text: String, subject: String, hint: String) throws -> JSONSlice {
    do throws(JSONError) {
      return try scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: .unframed)
    } catch {
      let message = "\(subject) is not JSON: \(error.message), at byte \(error.position)"
      throw Failure(ExitStatus.usage, kind: "usage", message, hint: hint)
    }
  }
}
