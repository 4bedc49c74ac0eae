// SPDX-License-Identifier: Apache-2.0

/// The bytes of replies that all connections of a listener hold: in the making, gathered for batches, and not read yet.
/// Pure.
package struct ReplyLoad: Sendable {
  /// Beyond it each connection may have little.
  package static let bytesMax = 64 << 20
  /// So much less than at the peak, the memory is given back to the kernel. Less than that is soon used again.
  static let trimBytes = 32 << 20

  package private(set) var bytes = 0
  private var peak = 0

  package init() {}

  package var isHigh: Bool { bytes > Self.bytesMax }

  /// - Returns: whether memory is to be given back, until `trimmed` is called.
  package mutating func change(by difference: Int) -> Bool {
    bytes += difference
    peak = max(peak, bytes)
    return peak - bytes > Self.trimBytes
  }

  package mutating func trimmed() { peak = bytes }
}
