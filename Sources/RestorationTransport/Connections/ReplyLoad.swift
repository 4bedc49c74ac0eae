// SPDX-License-Identifier: Apache-2.0

/// The reply bytes of all connections of a listener: in the making, gathered for batches, and not read yet. Pure.
package struct ReplyLoad: Sendable {
  /// Beyond this, each connection gets a smaller share.
  package static let bytesMax = 64 << 20
  /// The memory is returned to the kernel when this much less is used than at the peak. A smaller amount is soon
  /// reused.
  static let trimBytes = 32 << 20

  package private(set) var bytes = 0
  private var peak = 0

  package init() {}

  package var isHigh: Bool { bytes > Self.bytesMax }

  /// - Returns: whether to return memory, until `trimmed` is called.
  package mutating func change(by difference: Int) -> Bool {
    bytes += difference
    peak = max(peak, bytes)
    return peak - bytes > Self.trimBytes
  }

  package mutating func trimmed() { peak = bytes }
}
