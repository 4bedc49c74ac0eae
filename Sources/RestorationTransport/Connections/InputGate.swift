// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Decides when an open connection reads from its socket, when it takes frames from the input, and when calls that were
/// held back are delivered. Pure: events in, decisions out.
///
/// Invariants:
/// 1. One read is requested at a time, and only while no input waits: a peer's bytes beyond our limits stay in the
///    socket's buffer. (At the end of the input NIO delivers the rest of that buffer at once; the kernel bounds it.)
/// 2. While input is paused, no frame is taken. So the decoder holds at most one frame and one read.
/// 3. Each reason pauses input independently, and so does more than `heldBackBytesPause` of held-back input.
/// 4. While the connection is drained, only begun frames are read and taken, and no call is resumed.
/// 5. After the end of the input nothing is read. The end is delivered once, after all input before it.
package struct InputGate {
  package struct Pause: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let receiver = Pause(rawValue: 1)
    /// The peer does not read its answers.
    package static let output = Pause(rawValue: 2)
    /// Too much input of the peer's process waits.
    package static let process = Pause(rawValue: 4)
  }

  private enum End { case no, reached, delivered }

  private let heldBackBytesPause: Int
  private let inFlightMax: Int
  private var pauses: Pause = []
  private var heldBackBytes = 0
  private var isReading = false
  private var end = End.no
  /// Whether the decoder may have further frames.
  package private(set) var hasInput = false
  package private(set) var isDraining = false

  package init(limits: TransportLimits) {
    heldBackBytesPause = limits.heldBackBytesPause
    inFlightMax = limits.conversation.inFlightMax
  }

  package mutating func pause(_ reason: Pause) { pauses.insert(reason) }
  package mutating func resume(_ reason: Pause) { pauses.remove(reason) }
  package func isPaused(_ reason: Pause) -> Bool { pauses.contains(reason) }

  package mutating func drain() { isDraining = true }

  package mutating func inputWaits(_ hasInput: Bool) { self.hasInput = hasInput }

  package mutating func holdBack(bytes: Int) { heldBackBytes = bytes }

  package mutating func readCompleted() { isReading = false }

  package mutating func inputEnded() { if end == .no { end = .reached } }

  package var isEnded: Bool { end != .no }
  package var endIsDelivered: Bool { end == .delivered }

  /// Whether frames may be taken now, apart from the decoder's position.
  package var takesInput: Bool { pauses.isEmpty && heldBackBytes <= heldBackBytesPause }

  package func takesFrames(at position: FramePosition) -> Bool {
    takesInput && (!isDraining || position.mustBeFinished)
  }

  /// Whether more bytes may be read from the socket now.
  package func wantsInput(at position: FramePosition) -> Bool { end == .no && !hasInput && takesFrames(at: position) }

  /// Whether to request a read; false if one is pending.
  package mutating func beginsRead() -> Bool {
    defer { isReading = true }
    return !isReading
  }

  /// Whether the end of a tick may continue with input.
  package var hasWork: Bool { hasInput || heldBackBytes > 0 || !isReading }

  /// Whether to deliver calls that were held back. They count as waiting input of their process, which this reduces.
  package func resumesCalls(inFlight: @autoclosure () -> Int) -> Bool {
    heldBackBytes > 0 && !isDraining && pauses.isSubset(of: .process) && inFlight() < inFlightMax
  }

  /// Whether to deliver the end now, after all input was taken.
  package mutating func deliversEnd() -> Bool {
    guard end == .reached else { return false }
    end = .delivered
    return true
  }
}
