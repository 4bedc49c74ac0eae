// SPDX-License-Identifier: Apache-2.0

/// The limits of one frame of a peer. A value equal to a limit passes, one more fails.
package struct FrameLimits: Sendable, Equatable {
  /// Bytes of a frame, from its first bracket to its last. At most 2^31 − 1.
  package var frameBytesMax = 4 << 20

  /// Nesting of a frame: `{}` has depth 1.
  package var depthMax = 64

  /// Values in a frame: objects, arrays, strings, numbers and literals; member names do not count.
  package var valuesPerFrameMax = 65_536

  package var keysPerObjectMax = 4_096

  /// For texts that are not frames of a peer: of any length, and as deep as a frame.
  package static let unframed = FrameLimits(
    frameBytesMax: Int(Int32.max) - 16,
    depthMax: 64,
    valuesPerFrameMax: .max,
    keysPerObjectMax: Int(Int32.max)
  )

  package init() {}

  package init(frameBytesMax: Int, depthMax: Int, valuesPerFrameMax: Int, keysPerObjectMax: Int) {
    (self.frameBytesMax, self.depthMax, self.valuesPerFrameMax) = (frameBytesMax, depthMax, valuesPerFrameMax)
    self.keysPerObjectMax = keysPerObjectMax
  }
}
