// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// Who wrote a state and when: what the reserved keys of its coder say (R26).
public struct StateOrigin: Hashable, Sendable {
  /// As the session that wrote the state gave it.
  public let bundleVersion: String?
  /// By UIKit's numbers; −1 where the session gave none.
  public let userInterfaceIdiom: Int64
  /// When the state was written, by the broker's clock.
  public let time: Timestamp
  /// Of the operating system that ran the broker.
  public let systemVersion: String?
  /// The unit of a view controller's storyboard.
  public let storyboardUnit: String?
  /// The coder as JSON text, under the names UIKit has for its keys.
  public let jsonText: String

  /// Nil where the text is not a coder.
  init?(_ text: JSONText) {
    guard let slice = try? JSONSlice.scan(Array(text.bytes), vocabulary: EncodedState.vocabulary),
      let keys = try? ReservedKeys(wire: slice)
    else { return nil }
    bundleVersion = keys.bundleVersion
    userInterfaceIdiom = keys.userInterfaceIdiom
    time = keys.timestamp
    systemVersion = keys.systemVersion
    storyboardUnit = keys.storyboard
    jsonText = text.string
  }
}
