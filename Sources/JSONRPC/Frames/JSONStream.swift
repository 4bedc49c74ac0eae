// SPDX-License-Identifier: Apache-2.0

/// The framing "JSON stream": nesting separates frames, and white space between them is ignored.
struct JSONStream {
  private enum Mode {
    case betweenFrames
    case insideFrame
    /// Skipping the rest of a frame beyond a limit, by nesting alone.
    case skipping(nesting: Int, insideString: Bool, escaped: Bool)
    /// Looking for a line that begins with a frame, after a syntax error.
    case recovering(atLineStart: Bool)
  }

  private var mode = Mode.betweenFrames
  private var scan: JSONScan

  init(limits: FrameLimits, vocabulary: ScanVocabulary) { scan = JSONScan(limits: limits, vocabulary: vocabulary) }

  var position: FramePosition {
    switch mode {
    case .betweenFrames, .recovering(atLineStart: true): .betweenFrames
    case .insideFrame: .insideFrame
    case .skipping: .finishingFrame
    case .recovering(atLineStart: false): .finishingLine
    }
  }

  static func isFrameStart(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") }

  /// Consumes input until an event occurs; `nil` when more bytes are needed.
  mutating func next(_ input: inout InputBuffer) -> FrameDecoder.Event? {
    while !input.isEmpty {
      switch mode {
      case .betweenFrames:
        if let event = findFrame(&input) { return event }
      case .insideFrame:
        return advance(&input)
      case .skipping(let nesting, let insideString, let escaped):
        skip(&input, nesting: nesting, insideString: insideString, escaped: escaped)
      case .recovering(let atLineStart):
        recover(&input, atLineStart: atLineStart)
      }
    }
    return nil
  }

  /// Call at the end of the input: a frame cut short is a fault.
  func finish() -> FrameDecoder.Event? {
    guard case .insideFrame = mode else { return nil }
    return .fault(.parseError(hint: "The input ended inside a frame.", offset: scan.state.at))
  }

  private mutating func findFrame(_ input: inout InputBuffer) -> FrameDecoder.Event? {
    input.skipWhiteSpace()
    guard !input.isEmpty else { return nil }
    guard Self.isFrameStart(input[0]) else {
      mode = .recovering(atLineStart: false)
      return .fault(.parseError(hint: "A frame begins with { or [. " + Self.recovery))
    }
    scan.begin(input[0] == UInt8(ascii: "[") ? .batch : .message)
    mode = .insideFrame
    return nil
  }

  private mutating func advance(_ input: inout InputBuffer) -> FrameDecoder.Event? {
    let outcome = input.withBytes { scan.advance($0, count: $1) }
    // Judged by the byte's position, so that the answer does not depend on how much has arrived.
    if scan.state.at > scan.limits.frameBytesMax
      || scan.state.at == scan.limits.frameBytesMax && outcome != .complete && input.count > scan.state.at
    {
      let error = ErrorObject.frameExceeds("frameBytesMax", max: scan.limits.frameBytesMax)
      return giveUp(for: error, isComplete: outcome == .complete, &input)
    }
    switch outcome {
    case .complete:
      let storage = scan.storage(of: input.take(scan.state.at))
      scan.trim()
      mode = .betweenFrames
      return .frame(Frame(storage))
    case .syntax:
      let at = scan.state.at
      mode = .recovering(atLineStart: at > 0 && input[at - 1] == UInt8(ascii: "\n"))
      let message = scan.message(for: outcome) ?? ""
      let broken = scan.brokenMessage(input.take(at), "invalid JSON: \(message) at offset \(at)")
      scan.trim()
      return .fault(.parseError(hint: "At offset \(at) of the frame: \(message). " + Self.recovery, offset: at), broken)
    case .needsBytes, .needsRoom, .name, .markedObject, .limit:
      return scan.limitError(for: outcome).map { giveUp(for: $0, &input) }
    }
  }

  private static let recovery = "Reading resumes at the next line that begins with { or [."

  /// Abandons the current frame and consumes its examined bytes.
  private mutating func giveUp(
    for error: ErrorObject,
    isComplete: Bool = false,
    _ input: inout InputBuffer
  ) -> FrameDecoder.Event {
    let state = scan.state
    mode =
      isComplete
      ? .betweenFrames
      : .skipping(
        nesting: state.depth,
        insideString: state.phase == .insideString || state.phase == .insideName,
        escaped: false
      )
    let broken = scan.brokenMessage(input.take(state.at), exceeding: error)
    scan.trim()
    return .fault(error, broken)
  }

  private mutating func skip(_ input: inout InputBuffer, nesting: Int, insideString: Bool, escaped: Bool) {
    var (nesting, insideString, escaped) = (nesting, insideString, escaped)
    var index = 0
    while index < input.count {
      let byte = input[index]
      index += 1
      if insideString {
        if escaped {
          escaped = false
        } else if byte == UInt8(ascii: "\\") {
          escaped = true
        } else if byte == UInt8(ascii: "\"") {
          insideString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): insideString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): nesting += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): nesting -= 1
      default: continue
      }
      if nesting <= 0, !insideString {
        input.consume(index)
        mode = .betweenFrames
        return
      }
    }
    input.consumeAll()
    mode = .skipping(nesting: nesting, insideString: insideString, escaped: escaped)
  }

  private mutating func recover(_ input: inout InputBuffer, atLineStart: Bool) {
    var atLineStart = atLineStart
    for index in 0..<input.count {
      if atLineStart, Self.isFrameStart(input[index]) {
        input.consume(index)
        mode = .betweenFrames
        return
      }
      atLineStart = input[index] == UInt8(ascii: "\n")
    }
    input.consumeAll()
    mode = .recovering(atLineStart: atLineStart)
  }
}
