// SPDX-License-Identifier: Apache-2.0

/// Cuts the bytes of one peer into frames and validates them. It reads each byte once, however the bytes arrive.
///
/// Feed bytes with `append`, then call `next` until it returns `nil`.
package struct FrameDecoder: Sendable {
  package enum Event: Sendable {
    case frame(Frame)
    /// Input that is not a frame: answer it, then continue. Indirect, because an event is as large as its largest case,
    /// and nearly all are frames.
    indirect case fault(ErrorObject, BrokenMessage? = nil)
    /// The peer does not speak the protocol: answer with id null, then close. Nothing follows.
    case refused(ErrorObject)
  }

  private enum Mode {
    case undecided
    case jsonStream
    case contentLength
    case http
    case ended
  }

  private var mode = Mode.undecided
  private var input = InputBuffer()
  private var stream: JSONStream
  /// Set when the peer turns out to speak it.
  private var headed: ContentLengthStream?
  private let limits: FrameLimits
  private let vocabulary: ScanVocabulary

  /// - Parameter framing: the peer's framing, if it is known already.
  package init(limits: FrameLimits, vocabulary: ScanVocabulary, framing: Framing? = nil) {
    self.limits = limits.withinOffsets
    self.vocabulary = vocabulary
    stream = JSONStream(limits: limits.withinOffsets, vocabulary: vocabulary)
    switch framing {
    case nil: break
    case .jsonStream: mode = .jsonStream
    case .contentLength:
      headed = ContentLengthStream(limits: self.limits, vocabulary: vocabulary)
      mode = .contentLength
    case .http: mode = .http
    }
  }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard mode != .ended, !bytes.isEmpty else { return }
    input.append(bytes)
  }

  /// The next event, or `nil` when more bytes are needed, or when the peer speaks HTTP.
  package mutating func next() -> Event? {
    if mode == .undecided, let refusal = decide() { return refusal }
    let event: Event?
    switch mode {
    case .jsonStream:
      event = stream.next(&input)
      position = stream.position
    case .contentLength:
      event = headed?.next(&input)
      position = headed?.position(input) ?? .betweenFrames
    case .undecided:
      event = nil
      position = input.isEmpty ? .betweenFrames : .insideFrame
    case .http, .ended:
      event = nil
      position = .betweenFrames
    }
    return event
  }

  /// Call at the end of the input, after `next` has returned `nil`. Returns the fault of a frame cut short, or `nil`.
  package mutating func finish() -> Event? {
    defer {
      input.consumeAll()
      (mode, position) = (.ended, .betweenFrames)
    }
    switch mode {
    case .jsonStream: return stream.finish()
    case .contentLength: return headed?.finish(input)
    case .undecided: return input.isEmpty ? nil : refuse()
    case .http, .ended: return nil
    }
  }

  /// Valid when `next` has returned `nil`.
  ///
  /// Stored, because access to a computed property would copy the decoder.
  package private(set) var position = FramePosition.betweenFrames

  /// Bytes held until their frame is complete or taken.
  package var bufferedBytes: Int { input.count + (headed?.bufferedBytes ?? 0) }

  /// The peer's framing, as soon as it is known.
  package var framing: Framing? {
    switch mode {
    case .jsonStream: .jsonStream
    case .contentLength: .contentLength
    case .http: .http(keepsAlive: true)
    case .undecided, .ended: nil
    }
  }

  /// The input so far of a peer that speaks HTTP; the decoder is no longer needed.
  package mutating func takeInput() -> [UInt8] { input.take(input.count) }

  /// The input that brings another decoder with the same framing to this one's state; `nil` while this one skips input,
  /// or if the peer speaks HTTP.
  package var unfinishedInput: [UInt8]? {
    switch mode {
    case .undecided: input.bytes
    case .jsonStream: stream.position.mustBeFinished ? nil : input.bytes
    case .contentLength: headed?.unfinishedInput(input)
    case .http, .ended: nil
    }
  }

  // MARK: Deciding

  /// Bytes of a peer's first word: the name of a header, or a method of HTTP.
  private static let firstWordBytesMax = 64

  /// Decides the framing by the first bytes that are not white space.
  private mutating func decide() -> Event? {
    input.skipWhiteSpace()
    guard !input.isEmpty else { return nil }
    if JSONStream.isFrameStart(input[0]) {
      mode = .jsonStream
      return nil
    }
    var end = 0
    while end < input.count, end <= Self.firstWordBytesMax, Self.isTokenByte(input[end]) { end += 1 }
    guard end > 0, end <= Self.firstWordBytesMax else { return refuse() }
    guard end < input.count else { return nil }
    switch input[end] {
    case UInt8(ascii: ":"):
      headed = ContentLengthStream(limits: limits, vocabulary: vocabulary)
      mode = .contentLength
    case UInt8(ascii: " ") where (0..<end).allSatisfy({ Self.isCapital(input[$0]) }):
      mode = .http
    default:
      return refuse()
    }
    return nil
  }

  /// Whether a header's name may contain this byte (RFC 9110, `tchar`).
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default:
      "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  private static func isCapital(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

  private mutating func refuse() -> Event {
    let isByteOrderMark = !input.isEmpty && input[0] == 0xEF
    mode = .ended
    input.consumeAll()
    return .refused(
      .parseError(
        hint: isByteOrderMark
          ? "Send UTF-8 without a byte order mark."
          : "Send JSON-RPC 2.0: each message is a JSON object or an array of them, alone, after a header "
            + "Content-Length, or in an HTTP POST.",
        offset: 0
      )
    )
  }
}

extension FrameLimits {
  /// The limits, clamped to the offsets and depths that the tape can hold.
  var withinOffsets: FrameLimits {
    var limits = self
    limits.frameBytesMax = min(frameBytesMax, Int(Int32.max) - 1)
    limits.depthMax = min(depthMax, Int(UInt16.max) - 1)
    return limits
  }
}
