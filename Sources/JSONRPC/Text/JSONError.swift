// SPDX-License-Identifier: Apache-2.0

/// Why some text is not JSON that we accept.
package struct JSONError: Error, Equatable, Sendable {
  /// One sentence without a full stop, for a person.
  package let message: String

  /// Offset in bytes, from the start of the text, of the first byte that cannot be.
  package let position: Int

  package init(message: String, position: Int) {
    self.message = message
    self.position = position
  }
}
