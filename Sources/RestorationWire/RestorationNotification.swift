// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A notification that the broker sends to clients that list it in `serves`.
package protocol RestorationNotification: Sendable {
  static var method: ServedMethod { get }

  /// One sentence: what has happened.
  static var summary: String { get }

  static var parameters: [Schema.Member] { get }

  /// Reads the parameters; nil where they have not the form `Protocol/notifications.md` gives them.
  init?(_ parameters: JSONSlice)

  /// Writes the parameters as one JSON value.
  func write(to writer: inout JSONWriter)
}

extension RestorationNotification {
  /// The parameters as JSON text.
  package var parameters: JSONText {
    var writer = JSONWriter()
    write(to: &writer)
    return JSONText(validated: writer.bytes)
  }
}
