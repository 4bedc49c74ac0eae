// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Number of a call of the broker to a client: positive, below 2^53, never reused, even after a restart.
package typealias CallNumber = Int64

package enum CallAnswer: Sendable {
  case result(JSONSlice)
  case error(code: Int, message: String)
  /// No answer can come: the connection is gone, or the client has ended its sending direction.
  case lost
}

extension CallAnswer {
  package init(_ outcome: Response.Outcome) {
    self =
      switch outcome {
      case .result(let result): .result(result)
      case .error(let error):
        .error(code: Int(clamping: error["code"]?.integer() ?? 0), message: error["message"]?.string() ?? "")
      }
  }

  var message: String? { if case .error(_, let message) = self { Self.brief(message) } else { nil } }

  /// Why it was never read, which the client need not know; or why the client has not written it.
  var fault: ErrorCode? {
    guard case .error(let code, _) = self else { return nil }
    return [ErrorCode.parseError, .limitExceeded].first { $0.rawValue == code }
  }

  /// The beginning of a client's message, for people; `nil` if it is empty.
  static func brief(_ message: String) -> String? {
    guard !message.isEmpty else { return nil }
    guard message.utf8.count > messageBytesMax else { return message }
    // `String` rounds an index inside a character down to its beginning.
    return message[..<message.utf8.index(message.startIndex, offsetBy: messageBytesMax - 3)] + "…"
  }

  private static let messageBytesMax = 256
}

package struct PendingCall {
  package let session: SessionID
  /// `nil` if the session fetches the call by `nextRequest`.
  package internal(set) var client: ClientID?
  let purpose: CallPurpose

  package init(session: SessionID, client: ClientID?, purpose: CallPurpose) {
    (self.session, self.client, self.purpose) = (session, client, purpose)
  }
}

/// The purpose decides who gets the answer.
package enum CallPurpose {
  case save(SaveRound.Question)
  case pull
  case restoring(RestoringCall)
  /// Delivers states to their owner, in the batch with this number.
  case delivery(batch: Int)
  /// Asks for an element of a view, for the resolution with this number.
  case resolving(Int)
}

extension Application {
  /// Calls the client of a session.
  ///
  /// - Returns: `nil` if no answer is possible: the session is unreachable, does not serve the method, or does not read
  ///   a message of that length.
  func call<Call: RestorationCall>(_ session: Session, _ call: Call, for purpose: CallPurpose) -> CallNumber? {
    guard session.serves(Call.method), session.isReachable else { return nil }
    var parameters = call.text
    guard session.reads(Call.method, parameters) else { return nil }
    let traced = trace(of: purpose)?.added(to: parameters)
    if let traced, session.reads(Call.method, traced) { parameters = traced }
    let call = PendingCall(session: session.id, client: session.isPolling ? nil : session.client, purpose: purpose)
    let number = calls.make(call, Call.method.rawValue, parameters, in: &turn)
    if call.client == nil { put(number, Call.method, parameters, for: session) }
    return number
  }

  func trace(of purpose: CallPurpose) -> TraceContext? {
    switch purpose {
    case .save: saving.round?.trace
    case .restoring, .delivery: restoring.trace
    case .pull, .resolving: nil
    }
  }

  /// Notifies the client once everything written so far is durable, if it is reachable and serves the notification.
  func notify<Notification: RestorationNotification>(_ session: Session, _ notification: Notification) {
    guard let (recipient, parameters) = readable(notification, by: session) else { return }
    turn.ask(.notify(id, recipient, method: Notification.method.rawValue, parameters: parameters))
  }

  /// Notifies at once; for notifications that are not about a change.
  func tell<Notification: RestorationNotification>(_ session: Session, _ notification: Notification) {
    guard let (recipient, parameters) = readable(notification, by: session) else { return }
    tell(recipient, Notification.method, parameters)
  }

  func tell(_ recipient: Recipient, _ method: ServedMethod, _ parameters: JSONText) {
    switch recipient {
    case .client(let client): turn.ask(.tell(client, method: method.rawValue, parameters: parameters))
    case .poller(let session): putNotification(method.rawValue, parameters, for: session)
    }
  }

  /// The recipient of the notification; `nil` if the session is unreachable, does not serve it, or does not read that
  /// length.
  private func readable<Notification: RestorationNotification>(
    _ notification: Notification,
    by session: Session
  ) -> (Recipient, JSONText)? {
    guard session.serves(Notification.method), session.isReachable else { return nil }
    let parameters = (session.facts.isConfined ? notification.concealed : notification).text
    guard session.reads(Notification.method, parameters) else {
      let text = "\(Notification.method.rawValue) was not sent: it exceeds the client's messageBytesMax"
      turn.ask(.log(.warning, text, of: name))
      return nil
    }
    let recipient = session.isPolling ? Recipient.poller(session.id) : session.client.map { .client($0) }
    return recipient.map { ($0, parameters) }
  }

  func endCall(_ number: CallNumber) { _ = giveUp(number) }

  private func giveUp(_ number: CallNumber) -> PendingCall? {
    let call = calls.giveUp(number, in: &turn)
    if let call, call.client == nil { sessions[call.session]?.polled.remove(number) }
    return call
  }

  /// The session of a lost call, if it was resumed meanwhile and can be asked again.
  func sessionBack(after call: PendingCall) -> Session? {
    sessions[call.session].flatMap { $0.isReachable && ($0.isPolling || $0.client != call.client) ? $0 : nil }
  }

  func callEnded(_ number: CallNumber, _ answer: CallAnswer) {
    if let call = calls.end(number) { callEnded(number, call, answer) }
  }

  private func callEnded(_ number: CallNumber, _ call: PendingCall, _ answer: CallAnswer) {
    if case .lost = answer {} else if let session = sessions[call.session] { heard(from: session) }
    switch call.purpose {
    case .save(let question): return saveCallEnded(call, question, answer)
    case .pull: return encoded(answer, to: call, isPull: true)
    case .resolving(let resolution): return elementFound(resolution, answer)
    case .restoring(let purpose): callEnded(purpose, answer, by: call.session)
    case .delivery(let batch): deliveryEnded(answer, batch: batch, by: call.session)
    }
    // The session may have resumed on another connection before the old one was gone.
    if case .lost = answer, let session = sessionBack(after: call) { note(.sessionReturned(session.id)) }
  }

  func endCalls(where isOver: (PendingCall) -> Bool) { for number in calls.numbers(where: isOver) { endCall(number) } }

  /// Ends the calls of a session that has ended, even if its connection continues.
  func loseCalls(of session: SessionID) {
    for number in calls.numbers(where: { $0.session == session }) {
      if let call = giveUp(number) { callEnded(number, call, .lost) }
    }
  }

  /// Ends the calls of a closed connection.
  func loseCalls(of client: ClientID) {
    for number in calls.numbers(where: { $0.client == client }) { callEnded(number, .lost) }
  }
}

extension BrokerCore {
  package mutating func callEnded(_ id: ApplicationID, _ number: CallNumber, _ answer: CallAnswer, at now: Moment) {
    context.now = now
    applications[id]?.settled.callEnded(number, answer)
  }
}
