// SPDX-License-Identifier: Apache-2.0

/// Reads one frame whose end is known from outside: by a length, or by the end of a request.
///
/// An invalid text costs only its own frame, because the beginning of the next one is known anyway.
package struct FrameBody: Sendable {
  private enum Mode {
    /// Only white space has arrived.
    case before
    case inside
    /// The frame is complete; only white space may follow.
    case after(Frame)
    indirect case failed(ErrorObject, BrokenMessage?)
  }

  private var mode = Mode.before
  private var input = InputBuffer()
  private var scan: JSONScan
  private var count = 0

  package init(limits: FrameLimits, vocabulary: ScanVocabulary) {
    scan = JSONScan(limits: limits.withinOffsets, vocabulary: vocabulary)
  }

  /// Why the frame is invalid, if that is known before its end.
  package var failure: ErrorObject? { if case .failed(let error, _) = mode { error } else { nil } }

  /// Bytes held until the frame is complete.
  package var bufferedBytes: Int { input.count }

  /// The input that brings another body to this one's state; `nil` if further input is skipped.
  var unfinishedInput: [UInt8]? {
    switch mode {
    case .before, .inside: input.bytes
    case .after(let frame): frame.text
    case .failed: nil
    }
  }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    count += bytes.count
    let max = scan.limits.frameBytesMax
    if count > max, failure?.code != ErrorObject.limitExceededCode { fail(Self.tooLong(count, max: max)) }
    if case .failed = mode { return }
    input.append(bytes)
    advance()
  }

  /// Ends the frame and returns its content. The next one can begin.
  package mutating func end() -> FrameDecoder.Event {
    defer { reset() }
    switch mode {
    case .before:
      return .fault(.parseError(hint: "The frame is empty. Send one JSON object or an array of them."))
    case .inside:
      let at = scan.state.at
      let broken = scan.brokenMessage(input.take(at), "invalid JSON: the text ends too early")
      return .fault(.parseError(hint: "At offset \(at) of the frame: the text ends too early.", offset: at), broken)
    case .after(let frame):
      return .frame(frame)
    case .failed(let error, let broken):
      return .fault(error, broken)
    }
  }

  /// −32008 for a frame of more than `max` bytes.
  package static func tooLong(_ count: Int, max: Int) -> ErrorObject {
    .frameExceeds("frameBytesMax", max: max, value: count)
  }

  private mutating func advance() {
    if case .before = mode { findBeginning() }
    if case .inside = mode { scanFurther() }
    if case .after = mode { findRest() }
  }

  private mutating func findBeginning() {
    input.skipWhiteSpace()
    guard !input.isEmpty else { return }
    guard JSONStream.isFrameStart(input[0]) else {
      return fail(.parseError(hint: "A frame begins with { or [."))
    }
    scan.begin(input[0] == UInt8(ascii: "[") ? .batch : .message)
    mode = .inside
  }

  private mutating func scanFurther() {
    let outcome = input.withBytes { scan.advance($0, count: $1) }
    switch outcome {
    case .complete:
      let storage = scan.storage(of: input.take(scan.state.at))
      scan.trim()
      mode = .after(Frame(storage))
    case .syntax:
      let at = scan.state.at
      let message = scan.message(for: outcome) ?? ""
      let broken = scan.brokenMessage(input.take(at), "invalid JSON: \(message) at offset \(at)")
      fail(.parseError(hint: "At offset \(at) of the frame: \(message).", offset: at), broken)
    case .needsBytes, .needsRoom, .name, .markedObject, .limit:
      guard let error = scan.limitError(for: outcome) else { break }
      fail(error, scan.brokenMessage(input.take(scan.state.at), exceeding: error))
    }
  }

  private mutating func findRest() {
    input.skipWhiteSpace()
    guard !input.isEmpty else { return }
    var broken: BrokenMessage?
    if case .after(let frame) = mode {
      broken = frame.brokenMessage("invalid JSON: something follows the message in its frame")
    }
    fail(.parseError(hint: "Nothing may follow the message in its frame. Send several messages as a batch."), broken)
  }

  private mutating func fail(_ error: ErrorObject, _ broken: BrokenMessage? = nil) {
    mode = .failed(error, broken)
    input.consumeAll()
    scan.trim()
  }

  private mutating func reset() {
    mode = .before
    count = 0
    input.consumeAll()
  }
}
