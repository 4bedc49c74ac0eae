// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Decides when an open connection reads from its socket, when it takes frames from what was read, and when calls that
/// were held back are delivered. Pure: what happens in, whether to go on out.
///
/// Invariants:
/// 1. One read is asked for at a time, and only while nothing waits to be taken: what a peer sends beyond our limits
///    stays in its own socket buffer. (At the end of the input NIO delivers what is left there in one go; the kernel
///    bounds that.)
/// 2. While input is paused, no frame is taken. So the decoder holds at most one frame and one read.
/// 3. Input is paused for each reason by itself, and also while more is held back than `heldBackBytesPause`.
/// 4. While the connection is drained, only what must be finished is read and taken, and no call is resumed.
/// 5. After the end of the input nothing is read. The end is delivered once, when all input before it was taken.
package struct InputGate {
  package struct Pause: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The receiver has too much to do already.
    package static let receiver = Pause(rawValue: 1)
    /// The peer does not take its answers.
    package static let output = Pause(rawValue: 2)
  }

  private enum End { case no, reached, delivered }

  private let heldBackBytesPause: Int
  private let inFlightMax: Int
  private var pauses: Pause = []
  private var heldBackBytes = 0
  private var isReading = false
  private var end = End.no
  /// The decoder may have more frames than were taken.
  package private(set) var hasInput = false
  package private(set) var isDraining = false

  package init(limits: TransportLimits) {
    heldBackBytesPause = limits.heldBackBytesPause
    inFlightMax = limits.conversation.inFlightMax
  }

  package mutating func pause(_ reason: Pause) { pauses.insert(reason) }
  package mutating func resume(_ reason: Pause) { pauses.remove(reason) }
  package func isPaused(_ reason: Pause) -> Bool { pauses.contains(reason) }

  /// Takes in no more than must be finished.
  package mutating func drain() { isDraining = true }

  /// Whether there may be frames that were not taken.
  package mutating func inputWaits(_ hasInput: Bool) { self.hasInput = hasInput }

  /// So much of what was taken is held back now.
  package mutating func holdBack(bytes: Int) { heldBackBytes = bytes }

  package mutating func readCompleted() { isReading = false }

  /// The peer sends nothing more.
  package mutating func inputEnded() { if end == .no { end = .reached } }

  package var isEnded: Bool { end != .no }
  package var endIsDelivered: Bool { end == .delivered }

  /// Whether frames are to be taken now, as far as that does not depend on the decoder.
  package var takesInput: Bool { pauses.isEmpty && heldBackBytes <= heldBackBytesPause }

  /// Whether frames are to be taken now.
  package func takesFrames(at position: FramePosition) -> Bool {
    takesInput && (!isDraining || position.mustBeFinished)
  }

  /// Whether more bytes may be read from the socket now.
  package func wantsInput(at position: FramePosition) -> Bool { end == .no && !hasInput && takesFrames(at: position) }

  /// Whether to ask for a read now that one is possible: false if one is under way.
  package mutating func beginsRead() -> Bool {
    defer { isReading = true }
    return !isReading
  }

  /// Whether the end of a tick may go on with input.
  package var hasWork: Bool { hasInput || heldBackBytes > 0 || !isReading }

  /// Whether calls held back are to be delivered while so many are in flight.
  package func resumesCalls(inFlight: @autoclosure () -> Int) -> Bool {
    heldBackBytes > 0 && !isDraining && pauses.isEmpty && inFlight() < inFlightMax
  }

  /// Whether, with all input taken, the end is to be delivered now.
  package mutating func deliversEnd() -> Bool {
    guard end == .reached else { return false }
    end = .delivered
    return true
  }
}
