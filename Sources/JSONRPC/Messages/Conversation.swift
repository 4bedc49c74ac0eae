// SPDX-License-Identifier: Apache-2.0

/// The open requests of both directions with one peer. Pure: frames in, deliveries and output bytes out.
///
/// Invariants:
/// 1. A call is answered at most once; further answers are ignored.
/// 2. A request with an id in flight, parked or not, is refused and leaves the first untouched; `null` is not an id.
/// 3. The answers of one batch leave as one array when the last is there; a batch without answers leaves nothing.
///    Present answers are never replaced: the receiver asks before each request of a batch whether its answer has room.
/// 4. Calls are delivered in the order of their arrival; while `inFlightMax` are in flight, later ones are held back.
/// 5. Answers to our own calls are never held back.
/// 6. Every frame in the output has the peer's framing.
package struct Conversation: Sendable {
  /// Names one unanswered request; never reused in a conversation.
  package struct Call: Hashable, Sendable {
    let slot: UInt32
    let serial: UInt32
  }

  package enum Delivery: Sendable {
    /// To be answered exactly once with `respond(to:with:into:)`.
    case request(Call, Request)
    case notification(Notification)
    /// The answer to a call of ours, which ends the call.
    case response(callID: Int, Response.Outcome)
    /// An unreadable answer, which ends a call of ours; the text completes "the answer is".
    case brokenAnswer(callID: Int, code: Int, String)
    /// The peer takes no calls or breaks the protocol: send the output, then close. `refusal`: the peer's own error
    /// without id, if it sent one.
    case closeAfterOutput(refusal: JSONSlice?)
  }

  /// The peer's framing, which ours follows; `nil` until the peer has sent enough to decide it.
  package var framing: Framing?

  private let limits: ConversationLimits
  private var pending = PendingCalls()
  private var batches = Batches()
  private var outgoing = OutgoingCalls()
  private var heldBack: [Frame] = []
  private var heldBackStart = 0
  private var hasEnded = false
  /// The method called last, because the next call mostly names the same one.
  private var lastMethod = ""

  /// Answers dropped because they belong to no call or are malformed.
  package private(set) var strayResponses = 0

  /// About the bytes of memory of frames with calls held back.
  package private(set) var heldBackBytes = 0

  /// About the bytes of memory of unanswered requests and of frames held back. Stored, because it is read at each
  /// message: a computed property would copy values of this module.
  package private(set) var waitingBytes = 0

  /// - Parameter past: another conversation's calls to the same peer.
  package init(limits: ConversationLimits, after past: CallsMade = CallsMade()) {
    self.limits = limits
    outgoing = OutgoingCalls(after: past)
  }

  package var callsMade: CallsMade { outgoing.past }

  package var awaitsAnswers: Bool { !pending.isEmpty }

  /// Whether neither side waits for an answer.
  package var isSettled: Bool { !owesAnswers && outgoing.isEmpty }

  /// Requests delivered and neither answered nor parked.
  package var inFlight: Int { pending.inFlight }

  package var parked: Int { pending.parked }

  /// Bytes of the answers in the making.
  package var expectedBytes: Int { pending.expectedBytes }

  /// Bytes of the answers in the making, and of those that wait for the rest of their batch.
  package var unfinishedBytes: Int { pending.expectedBytes + batches.gatheredBytes }

  package var hasHeldBackCalls: Bool { heldBackStart < heldBack.count }

  /// The frames with calls held back, in an equivalent form, for the next conversation with this peer.
  ///
  /// They may contain answers to our calls that have been delivered; these have no effect the second time.
  package var heldBackInput: [UInt8] {
    var input: [UInt8] = []
    for frame in heldBack[heldBackStart...] {
      let start = input.count
      input += frame.text
      framing.enclose(&input, from: start)
    }
    return input
  }

  /// Whether a call received now would be delivered at once.
  package var acceptsRequests: Bool { !hasHeldBackCalls && pending.inFlight < limits.inFlightMax }

  package var owesAnswers: Bool { !pending.isEmpty || hasHeldBackCalls }

  package var isDrained: Bool { hasEnded && !owesAnswers }
}

extension Conversation {
  /// Takes one event; immediate answers are appended to `out`.
  package mutating func receive(_ event: FrameDecoder.Event, into out: inout [UInt8]) -> [Delivery] {
    var deliveries: [Delivery] = []
    receive(event, into: &out, &deliveries)
    return deliveries
  }

  /// The same, for callers that reuse the array of deliveries.
  package mutating func receive(_ event: FrameDecoder.Event, into out: inout [UInt8], _ deliveries: inout [Delivery]) {
    switch event {
    case .frame(let frame):
      receive(frame, into: &out, &deliveries)
    case .fault(let error, let broken):
      // An answer's id is that of a call of ours; the peer may use the same id for a call of its own.
      write(error, to: broken?.isCall == true ? broken?.id : nil, into: &out)
      if let broken, !broken.isCall, let callID = outgoing.end(broken) {
        deliveries.append(.brokenAnswer(callID: callID, code: error.code, broken.reason))
      }
    case .refused(let error):
      write(error, to: nil, into: &out)
      deliveries.append(.closeAfterOutput(refusal: nil))
    }
  }

  /// Delivers calls held back while there is room.
  package mutating func resume(into out: inout [UInt8]) -> [Delivery] {
    var deliveries: [Delivery] = []
    while hasHeldBackCalls, pending.inFlight < limits.inFlightMax {
      let frame = heldBack[heldBackStart]
      heldBackStart += 1
      heldBackBytes -= frame.memory
      waitingBytes -= frame.memory
      take(frame, responses: false, into: &out, &deliveries)
    }
    // Rare enough that the cost of a frame does not depend on their number.
    if heldBackStart > heldBack.count / 2 {
      heldBack.removeFirst(heldBackStart)
      heldBackStart = 0
    }
    return deliveries
  }

  package func awaitsAnswer(to callID: Int) -> Bool { outgoing.isOpen(callID) }

  /// The peer sends nothing more. Returns our calls that can no longer be answered; they have ended.
  @discardableResult
  package mutating func inputEnded() -> [Int] {
    hasEnded = true
    return outgoing.endAll()
  }

  private mutating func receive(_ frame: Frame, into out: inout [UInt8], _ deliveries: inout [Delivery]) {
    if let count = frame.batchCount, count > limits.batchMax || count == 0 {
      let error: ErrorObject =
        count == 0
        ? .invalidRequest(hint: "Send a batch with at least one message.")
        : .limitExceeded("batchMax", max: limits.batchMax, value: count, hint: "Send the messages in smaller batches.")
      return write(error, to: nil, into: &out)
    }
    if acceptsRequests {
      take(frame, into: &out, &deliveries)
    } else {
      take(frame, calls: false, into: &out, &deliveries)
      if frame.holdsCalls {
        heldBack.append(frame)
        heldBackBytes += frame.memory
        waitingBytes += frame.memory
      }
    }
  }

  /// Takes the calls and the answers of a frame.
  private mutating func take(
    _ frame: Frame,
    calls: Bool = true,
    responses: Bool = true,
    into out: inout [UInt8],
    _ deliveries: inout [Delivery]
  ) {
    switch frame.content(after: &lastMethod) {
    case .message(let message):
      if message.isResponse ? responses : calls {
        take(message, batch: nil, bytes: frame.memory, into: &out, &deliveries)
      }
    case .batch(let messages):
      let chosen = messages.filter { $0.isResponse ? responses : calls }
      let share = frame.memory / max(1, chosen.count)
      guard calls else { return chosen.forEach { take($0, batch: nil, bytes: share, into: &out, &deliveries) } }
      let batch = batches.begin()
      chosen.forEach { take($0, batch: batch, bytes: share, into: &out, &deliveries) }
      let start = out.count
      if batches.endReading(batch, into: &out) { framing.enclose(&out, from: start) }
    }
  }

  private mutating func take(
    _ message: Message,
    batch: Batches.Key?,
    bytes: Int,
    into out: inout [UInt8],
    _ deliveries: inout [Delivery]
  ) {
    switch message {
    case .request(let request):
      guard let call = pending.add(request.id, batch: batch, bytes: bytes) else {
        let error = ErrorObject.invalidRequest(hint: "A request with this id is still unanswered; use another id.")
        return answer(error, to: request.id, batch: batch, into: &out)
      }
      waitingBytes += bytes
      if let batch { batches.expect(batch) }
      deliveries.append(.request(call, request))
    case .notification(let notification):
      deliveries.append(.notification(notification))
    case .invalid(let id, let error):
      answer(error, to: id, batch: batch, into: &out)
    case .response(let response):
      if let callID = outgoing.end(response.id) {
        deliveries.append(.response(callID: callID, response.outcome))
      } else if !outgoing.forgives(response.id) {
        countStray(response.refusal, into: &out, &deliveries)
      }
    case .malformedResponse:
      countStray(nil, into: &out, &deliveries)
    }
  }

  private mutating func countStray(
    _ refusal: JSONSlice?,
    into out: inout [UInt8],
    _ deliveries: inout [Delivery]
  ) {
    strayResponses += 1
    guard strayResponses == limits.strayResponsesMax + 1 else { return }
    let hint = "More than \(limits.strayResponsesMax) answers came to calls that were never made."
    write(.invalidRequest(hint: hint), to: nil, into: &out)
    deliveries.append(.closeAfterOutput(refusal: refusal))
  }
}

extension Conversation {
  /// Answers a request. The answer of one in a batch waits for the others.
  package mutating func respond(to call: Call, with outcome: Outcome, into out: inout [UInt8]) {
    guard let ended = pending.remove(call) else { return }
    waitingBytes -= ended.bytes
    answer(batch: ended.batch, into: &out) { Self.write(outcome, to: ended.id, into: &$0) }
  }

  /// Answers a request; `writing` writes the result as one value, straight into the output.
  package mutating func respond(to call: Call, into out: inout [UInt8], writing: (inout JSONWriter) -> Void) {
    guard let ended = pending.remove(call) else { return }
    waitingBytes -= ended.bytes
    answer(batch: ended.batch, into: &out) {
      Self.write(#","result":"#, to: ended.id, into: &$0, writing)
    }
  }

  /// Answers a request with a whole frame that is not a message.
  package mutating func respond(to call: Call, verbatim frame: some Sequence<UInt8>, into out: inout [UInt8]) {
    guard let ended = pending.remove(call) else { return }
    waitingBytes -= ended.bytes
    out += frame
  }

  /// Announces a later answer of about this many bytes.
  package mutating func expect(_ bytes: Int, from call: Call) { pending.expect(bytes, from: call) }

  /// Why a request in a batch must not begin: the earlier answers use up the room of the batch.
  package func refusal(of call: Call) -> ErrorObject? {
    guard let batch = pending.batch(of: call) else { return nil }
    let (gathered, max) = (batches.gatheredBytes(of: batch), limits.batchReplyBytesMax)
    guard gathered >= max else { return nil }
    return .limitExceeded(
      "frameBytesMax",
      max: max,
      value: gathered,
      hint: "The answers to its batch have half of frameBytesMax, so it was not done. Send it in another batch."
    )
  }

  /// Stops counting a request as in flight, because its answer waits for an event.
  ///
  /// Throws the error to answer with if too many are parked.
  package mutating func park(_ call: Call) throws(ErrorObject) {
    guard pending.parked < limits.parkedMax || pending.isParked(call) else {
      throw .limitExceeded(
        "parkedMax",
        max: limits.parkedMax,
        value: limits.parkedMax + 1,
        hint: "Wait for some answers before sending more requests."
      )
    }
    pending.setParked(true, call)
    // The event may come from this very peer, which must be read.
    pending.expect(0, from: call)
  }

  /// Counts a parked request as in flight again.
  package mutating func unpark(_ call: Call) { pending.setParked(false, call) }

  /// The unanswered request with that id.
  package func pendingCall(withID id: RequestID) -> Call? { pending.find(id) }

  private mutating func answer(_ error: ErrorObject, to id: RequestID?, batch: Batches.Key?, into out: inout [UInt8]) {
    if let batch { batches.expect(batch) }
    answer(batch: batch, into: &out) { Self.write(.error(error), to: id ?? .null, into: &$0) }
  }

  /// Writes one answer as a frame or into its batch, which becomes a frame with its last answer.
  @inline(__always)
  private mutating func answer(batch: Batches.Key?, into out: inout [UInt8], _ writing: (inout [UInt8]) -> Void) {
    let start = out.count
    if let batch {
      guard batches.add(to: batch, into: &out, writing) else { return }
    } else {
      writing(&out)
    }
    framing.enclose(&out, from: start)
  }

  private func write(_ error: ErrorObject, to id: RequestID?, into out: inout [UInt8]) {
    let start = out.count
    Self.write(.error(error), to: id ?? .null, into: &out)
    framing.enclose(&out, from: start)
  }

  /// The text of an error without an id.
  package static func text(of error: ErrorObject) -> [UInt8] {
    var out: [UInt8] = []
    write(.error(error), to: .null, into: &out)
    return out
  }

  /// Writes one answer, not yet a frame.
  private static func write(_ outcome: Outcome, to id: RequestID, into out: inout [UInt8]) {
    switch outcome {
    case .result(let result): write(#","result":"#, to: id, into: &out) { $0.text(result) }
    case .error(let error): write(#","error":"#, to: id, into: &out) { error.write(to: &$0) }
    }
  }

  /// Writes one answer, not yet a frame: `member` precedes the value that `writing` writes.
  private static func write(
    _ member: StaticString,
    to id: RequestID,
    into out: inout [UInt8],
    _ writing: (inout JSONWriter) -> Void
  ) {
    JSONWriter.append(to: &out) { writer in
      writer.verbatim(#"{"jsonrpc":"2.0","id":"#)
      id.write(to: &writer)
      writer.verbatim(member)
      writing(&writer)
      writer.endObject()
    }
  }
}

extension Conversation {
  /// Returns the call's id, which a response or `forget` must end.
  package mutating func call(method: String, parameters: JSONText?, into out: inout [UInt8]) -> Int {
    let callID = outgoing.begin()
    write(method: method, parameters: parameters, id: callID, into: &out)
    return callID
  }

  /// Ends a call without an answer; a late answer is dropped.
  package mutating func forget(_ callID: Int) { outgoing.forget(callID) }

  package mutating func notify(method: String, parameters: JSONText?, into out: inout [UInt8]) {
    write(method: method, parameters: parameters, id: nil, into: &out)
  }

  private func write(method: String, parameters: JSONText?, id: Int?, into out: inout [UInt8]) {
    let start = out.count
    JSONWriter.append(to: &out) { writer in
      writer.verbatim(#"{"jsonrpc":"2.0","#)
      if let id {
        writer.verbatim(#""id":"#)
        writer.integer(id)
        writer.verbatim(",")
      }
      writer.verbatim(#""method":"#)
      writer.string(method)
      if let parameters {
        writer.verbatim(#","params":"#)
        writer.text(parameters)
      }
      writer.endObject()
    }
    framing.enclose(&out, from: start)
  }
}
