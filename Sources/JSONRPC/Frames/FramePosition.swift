// SPDX-License-Identifier: Apache-2.0

/// Where a decoder is in its input when it needs more bytes.
package enum FramePosition: Sendable {
  /// What comes next is read as it would be at the beginning.
  case betweenFrames
  /// Another decoder could go on from here if it is given what has come of the frame.
  case insideFrame
  /// In a frame that no other decoder could go on with, for example one that was given up.
  case finishingFrame
  /// In a line that is passed over to its end, after a syntax error.
  case finishingLine

  /// Whether a frame has begun and not ended.
  package var isInsideFrame: Bool { self == .insideFrame || self == .finishingFrame }

  /// Whether only the decoder that has begun can come to the end of what has begun.
  package var mustBeFinished: Bool { self == .finishingFrame || self == .finishingLine }
}
