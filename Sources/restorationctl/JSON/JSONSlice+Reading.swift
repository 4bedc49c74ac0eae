// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

extension JSONSlice {
  /// The value in a text that the broker has sent.
  static func read(sent text: String, subject: String) throws -> JSONSlice {
    try read(text, subject: subject, hint: "The broker is another one than this tool is for.")
  }

  /// The value in a text of any length, as a caller gave it.
  ///
  /// - Parameter subject: what the text is, for messages.
  static func read(_ text: String, subject: String, hint: String) throws -> JSONSlice {
    do throws(JSONError) {
      return try scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: .unframed)
    } catch {
      let message = "\(subject) is not JSON: \(error.message), at byte \(error.position)"
      throw Failure(ExitStatus.usage, kind: "usage", message, hint: hint)
    }
  }
}
