// SPDX-License-Identifier: Apache-2.0

/// Cuts the bytes of one peer into frames and validates them; each byte is looked at once, however it arrives.
///
/// Feed bytes with `append`, then call `next` until it returns nil.
package struct FrameDecoder: Sendable {
  package enum Event: Sendable {
    case frame(Frame)
    /// Input that is no frame: to be answered with id null, then go on.
    case fault(ErrorObject)
    /// The peer speaks something else: to be answered with id null, then close. Nothing follows.
    case refused(ErrorObject)
  }

  /// How frames are told apart; decided once, by the first byte that is not white space.
  private enum Framing {
    case undecided
    case jsonStream
    case refused
  }

  private var framing = Framing.undecided
  private var input = InputBuffer()
  private var stream: JSONStream

  package init(limits: FrameLimits, vocabulary: ScanVocabulary) {
    stream = JSONStream(limits: limits.withinOffsets, vocabulary: vocabulary)
  }

  /// Takes the next bytes of the peer.
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard framing != .refused, !bytes.isEmpty else { return }
    input.append(bytes)
  }

  /// The next event, or nil when more bytes are needed.
  package mutating func next() -> Event? {
    defer { isInsideFrame = stream.isInsideFrame }
    switch framing {
    case .undecided:
      while !input.isEmpty, JSONWalk.isWhiteSpace(input[0]) { input.consume(1) }
      guard !input.isEmpty else { return nil }
      guard JSONStream.isFrameStart(input[0]) else { return refuse() }
      framing = .jsonStream
      return stream.next(&input)
    case .jsonStream:
      return stream.next(&input)
    case .refused:
      return nil
    }
  }

  /// The end of the input, after `next` has returned nil: the fault of a frame cut short, or nil.
  package mutating func finish() -> Event? {
    defer { isInsideFrame = stream.isInsideFrame }
    return stream.finish()
  }

  /// Whether a frame has begun and not ended; asked when `next` has returned nil.
  ///
  /// Stored, because whoever asks for what is computed copies the decoder first.
  package private(set) var isInsideFrame = false

  /// Bytes held until their frame is complete or taken.
  package var bufferedBytes: Int { input.count }

  private mutating func refuse() -> Event {
    let isByteOrderMark = input[0] == 0xEF
    framing = .refused
    input.consumeAll()
    return .refused(
      .parseError(
        hint: isByteOrderMark
          ? "Send UTF-8 without a byte order mark."
          : "Send JSON-RPC 2.0: each message is a JSON object or an array of them; the first byte is { or [.",
        offset: 0
      )
    )
  }
}

extension FrameLimits {
  /// The limits within what offsets and depths on the tape can hold.
  fileprivate var withinOffsets: FrameLimits {
    var limits = self
    limits.frameBytesMax = min(frameBytesMax, Int(Int32.max) - 1)
    limits.depthMax = min(depthMax, Int(UInt16.max) - 1)
    return limits
  }
}
