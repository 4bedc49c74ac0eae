// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Feeds a peer's input to a decoder and a conversation, and keeps their output.
struct PeerFixture {
  static let vocabulary = ScanVocabulary(referenceKey: "$restorable", literalKey: "$literal")

  var decoder: FrameDecoder
  var conversation: Conversation
  var output: [UInt8] = []

  init(frames: FrameLimits = FrameLimits(), conversation: ConversationLimits = ConversationLimits()) {
    decoder = FrameDecoder(limits: frames, vocabulary: Self.vocabulary)
    self.conversation = Conversation(limits: conversation)
  }

  init(batchMax: Int, inFlightMax: Int, parkedMax: Int) {
    var limits = ConversationLimits()
    (limits.batchMax, limits.inFlightMax, limits.parkedMax) = (batchMax, inFlightMax, parkedMax)
    self.init(conversation: limits)
  }

  /// The events after `text`, fed in pieces of `step` bytes.
  mutating func events(_ text: some Collection<UInt8>, step: Int = .max) -> [FrameDecoder.Event] {
    let bytes = Array(text)
    var events: [FrameDecoder.Event] = []
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, step == .max ? bytes.count : start + step)
      bytes[start..<end].withUnsafeBytes { decoder.append($0) }
      while let event = decoder.next() { events.append(event) }
      start = end
    }
    return events
  }

  /// The deliveries after `text`.
  mutating func send(_ text: String) -> [Conversation.Delivery] {
    events(text.utf8).flatMap { conversation.receive($0, into: &output) }
  }

  /// Answers every request, held back ones included, and gives the notifications to `dispatch` too.
  mutating func serve(_ text: String, _ dispatch: (String, Parameters) -> Outcome) {
    var deliveries = send(text)
    while !deliveries.isEmpty {
      for delivery in deliveries {
        switch delivery {
        case .request(let call, let request):
          conversation.respond(to: call, with: dispatch(request.method, request.parameters), into: &output)
        case .notification(let notification):
          _ = dispatch(notification.method, notification.parameters)
        case .response, .brokenAnswer, .closeAfterOutput:
          break
        }
      }
      deliveries = conversation.resume(into: &output)
    }
  }

  /// The lines of output since the last call; each must have ended in one line feed.
  mutating func takeLines() -> [String] {
    defer { output = [] }
    guard !output.isEmpty else { return [] }
    guard output.last == UInt8(ascii: "\n") else { return ["unfinished: " + String(decoding: output, as: UTF8.self)] }
    return output.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
  }
}

extension FrameDecoder.Event {
  /// The event in one line.
  var summary: String {
    switch self {
    case .frame(let frame):
      switch frame.content {
      case .message(let message): message.summary
      case .batch(let messages): "[" + messages.map(\.summary).joined(separator: ", ") + "]"
      }
    case .fault(let error, _): "fault \(error.code)" + (error.limit.map { " " + $0 } ?? "")
    case .refused(let error): "refused \(error.code)"
    }
  }
}

extension Message {
  var summary: String {
    switch self {
    case .request(let request): "request \(request.id) \(request.method)\(request.parameters.summary)"
    case .notification(let notification):
      "notification \(notification.method)\(notification.parameters.summary)"
        + (notification.fault.map { " fault \($0.code) \($0.pointer ?? "")" } ?? "")
    case .response(let response):
      switch response.outcome {
      case .result(let result): "response \(response.id) result \(result)"
      case .error(let error): "response \(response.id) error \(error)"
      }
    case .invalid(let id, let error):
      "invalid \(id?.text ?? "without id") \(error.code)" + (error.pointer.map { " " + $0 } ?? "")
    case .malformedResponse: "malformed response"
    }
  }
}

extension Parameters {
  var summary: String {
    switch self {
    case .none: ""
    case .named(let object): " \(object.compactText.string)"
    case .positional(let elements): " (" + elements.map(\.compactText.string).joined(separator: ",") + ")"
    }
  }
}

extension ErrorObject {
  var limit: String? { data?["limit"]?.string }
  var pointer: String? { data?["pointer"]?.string }
  var kind: String? { data?["kind"]?.string }
  var hint: String? { data?["hint"]?.string }
}

/// Scans one document.
func scan(_ text: String, limits: FrameLimits = FrameLimits()) throws(JSONError) -> JSONSlice {
  try scan(Array(text.utf8), limits: limits)
}

func scan(_ bytes: [UInt8], limits: FrameLimits = FrameLimits()) throws(JSONError) -> JSONSlice {
  try JSONSlice.scan(bytes, vocabulary: PeerFixture.vocabulary, limits: limits)
}

/// The text with sorted members and without white space, for comparisons.
func canonical(_ text: String) throws -> String {
  String(
    decoding: JSONCodec.format(try JSONCodec.parse(Array(text.utf8)), style: .compact, sortKeys: true),
    as: UTF8.self
  )
}
