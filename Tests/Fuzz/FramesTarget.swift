// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

extension FuzzTarget {
  /// A peer's bytes, cut into frames and messages. However they are cut in pieces, and if another process continues in
  /// the middle, the answers are the same.
  static let frames = FuzzTarget(
    name: "frames",
    seeds: {
      let texts = [
        #"{"jsonrpc":"2.0","id":7,"method":"m","params":{"object":["a"],"state":{"x":120.5,"y":-64,"z":[true]}}}"#,
        #"[{"jsonrpc":"2.0","id":"\u00e9\ud83d\ude00","params":[1e10,-0.5E-3,0,"é\n\\"]},{"jsonrpc":null}]"#,
        #" { "a" : [ [ ] , { } , [ { "b" : "" } ] ] , "c" : { "$restorable" : [ "Main" ] , "$literal" : 1 } } "#,
        #"{"jsonrpc":"2.0","id":1,"result":{"n":[1]}}{"jsonrpc":"2.0","id":1,"method":"a"} [] nonsense"# + "\n{}",
        "Content-Length: 38\r\nContent-Type: application/json; charset=utf-8\r\n\r\n"
          + #"{"jsonrpc":"2.0","id":1,"method":"ab"}"# + "Content-Length: 2\r\n\r\n{}",
      ]
      return (0..<8).flatMap { head in texts.map { [UInt8(head), 0x33] + Array($0.utf8) } }
    },
    run: { input in
      guard input.count > 2 else { return }
      let text = input.dropFirst(2)
      let (step, cut) = (Int(input[1] & 15) + 1, text.startIndex + text.count * Int(input[1] >> 4) / 16)
      var whole = FuzzedReader(input[0])
      whole.take(text)
      whole.finish()
      var pieces = FuzzedReader(input[0])
      for start in stride(from: text.startIndex, to: text.endIndex, by: step) {
        pieces.take(text[start..<min(text.endIndex, start + step)])
      }
      pieces.finish()
      demand(pieces.output == whole.output, "\(pieces.shown)\n in pieces, else \(whole.shown)")
      var handed = FuzzedReader(input[0])
      handed.take(text[..<cut])
      guard handed.moves() else { return }
      handed.take(text[cut...])
      handed.finish()
      demand(handed.output == whole.output, "\(handed.shown)\n if handed over, else \(whole.shown)")
    }
  )
}

/// Reads a peer and writes what it understood, besides the answers.
private struct FuzzedReader {
  private var decoder: FrameDecoder
  private var conversation: Conversation
  private let limits: FrameLimits
  private var isClosed = false
  private var hadFault = false
  private(set) var output: [UInt8] = []

  init(_ choice: UInt8) {
    var (limits, talk) = (FrameLimits(), ConversationLimits())
    if choice & 4 != 0 {
      limits = FrameLimits(frameBytesMax: 60, depthMax: 3, valuesPerFrameMax: 9, keysPerObjectMax: 3)
      talk.batchMax = 2
    }
    let framing: Framing? = [nil, .jsonStream, .contentLength, nil][Int(choice & 3)]
    self.limits = limits
    decoder = FrameDecoder(limits: limits, vocabulary: EncodedState.vocabulary, framing: framing)
    conversation = Conversation(limits: talk)
  }

  var shown: String { String(decoding: output, as: UTF8.self) }

  mutating func take(_ bytes: ArraySlice<UInt8>) {
    guard !isClosed else { return }
    bytes.withUnsafeBytes { decoder.append($0) }
    while !isClosed, let event = decoder.next() { handle(event) }
  }

  mutating func finish() {
    guard !isClosed, let event = decoder.finish() else { return }
    handle(event)
  }

  /// Another decoder continues; false if this one cannot be left. After a fault the next one may say once more that
  /// what follows is no frame.
  mutating func moves() -> Bool {
    guard !isClosed, !hadFault, let input = decoder.unfinishedInput else { return false }
    decoder = FrameDecoder(limits: limits, vocabulary: EncodedState.vocabulary, framing: decoder.framing)
    take(input[...])
    return true
  }

  private mutating func handle(_ event: FrameDecoder.Event) {
    if case .fault = event { hadFault = true }
    var deliveries = conversation.receive(event, into: &output)
    while !deliveries.isEmpty {
      for delivery in deliveries { handle(delivery) }
      deliveries = isClosed ? [] : conversation.resume(into: &output)
    }
  }

  private mutating func handle(_ delivery: Conversation.Delivery) {
    switch delivery {
    case .request(let call, let request):
      conversation.respond(to: call, with: .result(Self.text(request.parameters)), into: &output)
    case .notification(let notification):
      output += Array(notification.method.utf8) + Self.text(notification.parameters).bytes
    case .response(let id, let outcome): output += Array("\(id) \(outcome)".utf8)
    case .brokenAnswer(let id, let code, let reason): output += Array("\(id) \(code) \(reason)".utf8)
    case .closeAfterOutput: isClosed = true
    }
  }

  private static func text(_ parameters: Parameters) -> JSONText {
    switch parameters {
    case .none: JSONText(.null)
    case .named(let object): object.compactText
    case .positional(let values): values.last?.compactText ?? JSONText(.array([]))
    }
  }
}
