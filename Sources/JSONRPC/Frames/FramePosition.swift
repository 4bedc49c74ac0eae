// SPDX-License-Identifier: Apache-2.0

/// The state of a decoder that needs more bytes.
package enum FramePosition: Sendable {
  /// The next bytes are read as at the beginning.
  case betweenFrames
  /// Another decoder can continue from here if it gets the arrived part of the frame.
  case insideFrame
  /// In a frame that no other decoder can continue, for example a skipped one.
  case finishingFrame
  /// In a line that is skipped to its end, after a syntax error.
  case finishingLine

  package var isInsideFrame: Bool { self == .insideFrame || self == .finishingFrame }

  /// Whether only this decoder can reach the end of the frame or line.
  package var mustBeFinished: Bool { self == .finishingFrame || self == .finishingLine }
}
