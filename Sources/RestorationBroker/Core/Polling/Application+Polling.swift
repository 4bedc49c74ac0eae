// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Sessions that fetch calls and notifications by `nextRequest`.
extension Application {
  // MARK: Fetching

  /// Returns the oldest entry, or waits for one.
  func nextRequest(_ request: NextRequest, by session: Session, for caller: Caller) throws(ErrorObject) {
    let wait = request.waitMilliseconds ?? 0
    let waits = wait > 0 && session.polled.isEmpty && caller.call != nil && !turn.isEnding
    if waits {
      let others = sessions.values.count { $0 !== session && $0.poll?.client == caller.client }
      try turn.requireRoom(toWaitBeside: others, of: caller.client)
    }
    let written = request.serves.map { serve(Set($0), session) } ?? 0
    if !session.isPolling, let client = session.client { turn.ask(.clientChanged(client)) }
    session.isPolling = true
    if let caller = endPoll(of: session) { turn.ask(.respond(caller, .result(NextRequest.Reply.none))) }
    // Without an answer the entry would be lost.
    guard caller.call != nil else { return }
    if waits {
      session.poll = caller
      turn.ask(.park(caller))
      turn.ask(.setTimer(.poll(id, session.id), milliseconds: wait))
    } else {
      turn.answer(caller, after: written, session.nextPolled())
    }
  }

  /// Sets the methods that the session serves, and returns the number of the change, 0 if nothing changed.
  private func serve(_ served: Set<ServedMethod>, _ session: Session) -> SequenceNumber {
    guard session.facts.serves != served else { return 0 }
    session.facts.serves = served
    let written = write(.session(session.record))
    note(.servedChanged(session.id))
    tellPaths(to: session)
    return written
  }

  /// Adds an entry, or answers the waiting `nextRequest` with it.
  private func put(_ entry: PollQueue.Entry, for session: Session) {
    session.polled.add(entry)
    guard let caller = endPoll(of: session) else { return }
    turn.ask(.respond(caller, .result(session.nextPolled())))
  }

  func put(_ call: CallNumber, _ method: ServedMethod, _ parameters: JSONText, for session: Session) {
    put(PollQueue.Entry(call: call, method: method.rawValue, parameters: parameters), for: session)
  }

  func putNotification(_ method: String, _ parameters: JSONText, for session: SessionID) {
    guard let session = sessions[session] else { return }
    put(PollQueue.Entry(call: nil, method: method, parameters: parameters), for: session)
  }

  // MARK: The call that waits

  /// - Returns: the caller to answer, if one waited.
  private func endPoll(of session: Session) -> Caller? {
    guard let caller = session.poll else { return nil }
    session.poll = nil
    turn.ask(.cancelTimer(.poll(id, session.id)))
    turn.ask(.unpark(caller))
    return caller
  }

  func pollTimerFired(_ number: SessionID) {
    guard let session = sessions[number], let caller = endPoll(of: session) else { return }
    turn.ask(.respond(caller, .result(NextRequest.Reply.none)))
  }

  /// - Returns: whether the caller was waiting.
  func cancelPoll(_ caller: Caller) -> Bool {
    guard let session = sessions.values.first(where: { $0.poll == caller }) else { return false }
    return endPoll(of: session) != nil
  }

  /// A connection has ended. Unfetched entries stay for the session's next one.
  func forgetPolls(of client: ClientID) {
    for session in sessions.values where session.poll?.client == client { _ = endPoll(of: session) }
  }

  func abandonPoll(of session: Session) {
    guard let caller = endPoll(of: session) else { return }
    turn.refuse(caller, .sessionEnded())
  }

  /// The broker is ending: waiting callers ask the next one.
  func endPolls() {
    for session in sessions.inOrder {
      guard let caller = endPoll(of: session) else { continue }
      turn.ask(.respond(caller, .result(NextRequest.Reply.none)))
    }
  }

  // MARK: Answering

  func answerRequest(
    _ request: AnswerRequest,
    at pointer: String,
    by session: Session,
    for caller: Caller
  ) throws(ErrorObject) {
    guard let call = calls[request.id], call.session == session.id, call.client == nil,
      !session.polled.holds(request.id)
    else {
      throw .invalidParameter(
        pointer,
        "the session has no call \(request.id) to answer",
        hint: "It was answered before, or is no longer awaited; continue with nextRequest."
      )
    }
    turn.ask(.respond(caller, .result(EmptyResult())))
    if let error = request.error {
      callEnded(request.id, .error(code: Int(clamping: error.code), message: error.message))
    } else if let result = request.result {
      callEnded(request.id, .result(result.slice))
    }
  }

  // MARK: Coming and going

  /// Calls the session over its new connection until it polls again. Unfetched calls are sent over the connection;
  /// fetched ones may still be answered by `answerRequest`.
  func stopPolling(_ session: Session) {
    guard session.isPolling, let client = session.client else { return }
    session.isPolling = false
    if let caller = endPoll(of: session) { turn.ask(.respond(caller, .result(NextRequest.Reply.none))) }
    while let entry = session.polled.next() {
      let isServed =
        ServedMethod(rawValue: entry.method).map { session.serves($0) && session.reads($0, entry.parameters) } ?? false
      switch entry.call {
      case let call? where isServed:
        calls.send(call, entry.method, entry.parameters, over: client, in: &turn)
      case let call?: callEnded(call, .lost)
      case nil where isServed: turn.ask(.tell(client, method: entry.method, parameters: entry.parameters))
      case nil: break
      }
    }
  }

  /// States that were never fetched cannot have crashed the process (R31).
  func forgetUnfetchedStates(of session: Session) {
    for number in session.polled.calls {
      switch calls[number]?.purpose {
      case .restoring(.make(let node)): trials.forget(node, of: session.id)
      case .delivery:
        for node in deliveries.batch(of: session.id)?.nodes ?? [] { trials.forget(node, of: session.id) }
      case .restoring(.ask), .restoring(.tell), .save, .pull, .resolving, nil: break
      }
    }
  }
}

extension Session {
  func nextPolled() -> PolledRequest? {
    polled.next().map { entry in
      PolledRequest().with {
        $0.id = entry.call
        $0.method = entry.method
        $0.parameters = entry.parameters
      }
    }
  }
}

extension BrokerCore {
  /// A notification for a polling session is durable now.
  package mutating func notified(
    _ id: ApplicationID,
    _ session: SessionID,
    method: String,
    parameters: JSONText,
    at now: Moment
  ) {
    context.now = now
    applications[id]?.settled.putNotification(method, parameters, for: session)
  }
}
