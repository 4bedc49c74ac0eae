// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Numbers a call of the broker to a client; positive, below 2^53, never used twice, even after a restart.
package typealias CallNumber = Int64

/// How a call of the broker to a client ended.
package enum CallAnswer: Sendable {
  case result(JSONSlice)
  /// The client answered with an error.
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

  /// The error as explanations report it.
  var message: String? { if case .error(_, let message) = self { Self.brief(message) } else { nil } }

  /// The beginning of a client's message, for people; `nil` if there is none.
  static func brief(_ message: String) -> String? {
    guard !message.isEmpty else { return nil }
    guard message.utf8.count > messageBytesMax else { return message }
    // An index inside a character means its beginning.
    return message[..<message.utf8.index(message.startIndex, offsetBy: messageBytesMax - 3)] + "…"
  }

  private static let messageBytesMax = 256
}

/// A call of the broker to a client that has not ended.
package struct PendingCall {
  package let session: SessionID
  /// `nil` if the session fetches it by `nextRequest`.
  package internal(set) var client: ClientID?
  let purpose: CallPurpose

  package init(session: SessionID, client: ClientID?, purpose: CallPurpose) {
    (self.session, self.client, self.purpose) = (session, client, purpose)
  }
}

/// The purpose of a call to a client: it decides who gets the answer.
package enum CallPurpose {
  /// For the current save round.
  case save(SaveRound.Question)
  /// For the states of objects that were invalidated.
  case pull
  case restoring(RestoringCall)
  /// An element of a view is looked for, for the resolution with this number.
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
    if let traced = trace(of: purpose).map(call.text(in:)), session.reads(Call.method, traced) { parameters = traced }
    let call = PendingCall(session: session.id, client: session.isPolling ? nil : session.client, purpose: purpose)
    let number = calls.make(call, Call.method.rawValue, parameters, in: &turn)
    if call.client == nil { put(number, Call.method, parameters, for: session) }
    return number
  }

  /// The trace of the request that has caused such a call.
  func trace(of purpose: CallPurpose) -> TraceContext? {
    switch purpose {
    case .save: saving.round?.trace
    case .restoring: restoring.trace
    case .pull, .resolving: nil
    }
  }

  /// Notifies the client of a session once everything written so far is durable, if the client is reachable and serves
  /// that.
  func notify<Notification: RestorationNotification>(_ session: Session, _ notification: Notification) {
    guard let (recipient, parameters) = readable(notification, by: session) else { return }
    turn.ask(.notify(id, recipient, method: Notification.method.rawValue, parameters: parameters))
  }

  /// Notifies at once, for notifications that are not about a change.
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

  /// How a notification reaches the session; `nil` if the session is unreachable, does not serve it, or does not read
  /// that much.
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

  /// The answer is no longer wanted.
  func endCall(_ number: CallNumber) { _ = giveUp(number) }

  private func giveUp(_ number: CallNumber) -> PendingCall? {
    let call = calls.giveUp(number, in: &turn)
    if let call, call.client == nil { sessions[call.session]?.polled.remove(number) }
    return call
  }

  /// The session whose connection was lost with this call, if it was resumed meanwhile and can be asked again.
  func sessionBack(after call: PendingCall) -> Session? {
    sessions[call.session].flatMap { $0.isReachable && ($0.isPolling || $0.client != call.client) ? $0 : nil }
  }

  /// A call has ended, answered or not.
  func callEnded(_ number: CallNumber, _ answer: CallAnswer) {
    if let call = calls.end(number) { callEnded(number, call, answer) }
  }

  private func callEnded(_ number: CallNumber, _ call: PendingCall, _ answer: CallAnswer) {
    if case .lost = answer {} else if let session = sessions[call.session] { heard(from: session) }
    switch call.purpose {
    case .save(let question): saveCallEnded(call, question, answer)
    case .pull: encoded(answer, to: call, isPull: true)
    case .restoring(let purpose):
      callEnded(purpose, answer, by: call.session)
      // It has come back by another connection before the old one was gone.
      if case .lost = answer, let session = sessionBack(after: call) { note(.sessionReturned(session.id)) }
    case .resolving(let resolution): elementFound(resolution, answer)
    }
  }

  /// The answers to these calls are no longer wanted.
  func endCalls(where isOver: (PendingCall) -> Bool) { for number in calls.numbers(where: isOver) { endCall(number) } }

  /// A session has ended, though its connection may go on.
  func loseCalls(of session: SessionID) {
    for number in calls.numbers(where: { $0.session == session }) {
      if let call = giveUp(number) { callEnded(number, call, .lost) }
    }
  }

  /// A connection is gone: nothing more comes from it.
  func loseCalls(of client: ClientID) {
    for number in calls.numbers(where: { $0.client == client }) { callEnded(number, .lost) }
  }
}

extension BrokerCore {
  /// A call to a client has ended, with or without answer.
  package mutating func callEnded(_ id: ApplicationID, _ number: CallNumber, _ answer: CallAnswer, at now: Moment) {
    context.now = now
    applications[id]?.settled.callEnded(number, answer)
  }
}
