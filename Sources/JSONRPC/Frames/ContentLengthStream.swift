// SPDX-License-Identifier: Apache-2.0

/// The framing of LSP: a header section, which gives the length of the text after it, then the text.
///
/// Headers come in any order and case and with either line end; unknown ones are skipped. An invalid header section
/// ends the connection, because the beginning of the next one is unknown.
struct ContentLengthStream {
  static let headersBytesMax = 4_096

  private enum Mode {
    case headers
    /// In a text of which `left` bytes have not arrived.
    case body(left: Int)
    /// Skipping `left` bytes of a text that is too long.
    case skipping(left: Int)
    case ended
  }

  private var mode = Mode.headers
  /// Bytes held until the frame is complete.
  var bufferedBytes: Int { body.bufferedBytes }
  private var body: FrameBody
  private let frameBytesMax: Int
  /// Bytes of the header section examined so far, without those of complete lines.
  private var looked = 0
  private var headersBytes = 0
  private var length: Int?

  init(limits: FrameLimits, vocabulary: ScanVocabulary) {
    body = FrameBody(limits: limits, vocabulary: vocabulary)
    frameBytesMax = limits.frameBytesMax
  }

  func position(_ input: borrowing InputBuffer) -> FramePosition {
    switch mode {
    case .headers: headersBytes > 0 || !input.isEmpty ? .insideFrame : .betweenFrames
    case .body: body.failure == nil ? .insideFrame : .finishingFrame
    case .skipping: .finishingFrame
    case .ended: .betweenFrames
    }
  }

  /// The input that brings another stream to this one's state; `nil` while this one skips input.
  func unfinishedInput(_ input: borrowing InputBuffer) -> [UInt8]? {
    switch mode {
    case .headers:
      // Ignored headers are gone; one stands for them, so that the section has begun.
      let header = length.map { "Content-Length: \($0)\r\n" } ?? (headersBytes > 0 ? "Content-Type: utf-8\r\n" : "")
      return Array(header.utf8) + input.bytes
    case .body(let left):
      guard let begun = body.unfinishedInput else { return nil }
      // Input that arrived since belongs to the body too, or to the next frame.
      return Array("Content-Length: \(begun.count + left)\r\n\r\n".utf8) + begun + input.bytes
    case .skipping, .ended:
      return nil
    }
  }

  /// Consumes input until an event occurs; `nil` when more bytes are needed.
  mutating func next(_ input: inout InputBuffer) -> FrameDecoder.Event? {
    while true {
      switch mode {
      case .headers:
        guard let line = nextLine(&input) else {
          guard headersBytes + input.count > Self.headersBytesMax else { return nil }
          return refuse("A header section may have at most \(Self.headersBytesMax) bytes.", &input)
        }
        if let event = take(line, &input) { return event }
      case .body(let left):
        let part = min(left, input.count)
        input.withBytes { bytes, _ in body.append(UnsafeRawBufferPointer(start: bytes, count: part)) }
        input.consume(part)
        mode = .body(left: left - part)
        guard left == part else { return nil }
        mode = .headers
        return body.end()
      case .skipping(let left):
        let part = min(left, input.count)
        input.consume(part)
        mode = left == part ? .headers : .skipping(left: left - part)
        guard left == part else { return nil }
      case .ended:
        input.consumeAll()
        return nil
      }
    }
  }

  /// The end of the input: a frame cut short is a fault.
  func finish(_ input: borrowing InputBuffer) -> FrameDecoder.Event? {
    if case .skipping = mode { return nil }
    return position(input).isInsideFrame ? .fault(.parseError(hint: "The input ended inside a frame.")) : nil
  }

  /// The next line without its end; `nil` if it is incomplete.
  private mutating func nextLine(_ input: inout InputBuffer) -> [UInt8]? {
    while looked < input.count, input[looked] != UInt8(ascii: "\n") { looked += 1 }
    guard looked < input.count else { return nil }
    var line = input.take(looked + 1).dropLast()
    looked = 0
    if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
    // Empty lines between frames mean nothing.
    if !line.isEmpty || headersBytes > 0 { headersBytes += line.count + 2 }
    return Array(line)
  }

  private mutating func take(_ line: [UInt8], _ input: inout InputBuffer) -> FrameDecoder.Event? {
    guard !line.isEmpty else { return headersBytes > 0 ? beginBody(&input) : nil }
    guard headersBytes <= Self.headersBytesMax else {
      return refuse("A header section may have at most \(Self.headersBytesMax) bytes.", &input)
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
      return refuse("Give each header as a name, a colon and a value; an empty line ends the headers.", &input)
    }
    let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
    var bytes = line[(colon + 1)...].drop(while: JSONWalk.isWhiteSpace)
    while let last = bytes.last, JSONWalk.isWhiteSpace(last) { bytes.removeLast() }
    let value = String(decoding: bytes, as: UTF8.self)
    switch name {
    case "content-length":
      guard length == nil, !value.isEmpty, value.utf8.count <= 15, value.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else {
        return refuse("Give Content-Length once, as a number of bytes.", &input)
      }
      length = Int(value)
    case "content-type":
      guard Framing.isUTF8(contentType: value) else {
        return refuse("Use the charset utf-8.", &input)
      }
    default:
      break
    }
    return nil
  }

  private mutating func beginBody(_ input: inout InputBuffer) -> FrameDecoder.Event? {
    guard let length else { return refuse("The header Content-Length is missing.", &input) }
    self.length = nil
    headersBytes = 0
    guard length <= frameBytesMax else {
      mode = .skipping(left: length)
      return .fault(FrameBody.tooLong(length, max: frameBytesMax))
    }
    mode = .body(left: length)
    return nil
  }

  private mutating func refuse(_ hint: String, _ input: inout InputBuffer) -> FrameDecoder.Event {
    mode = .ended
    input.consumeAll()
    return .refused(.parseError(hint: hint + " The connection is closed.", offset: 0))
  }
}
