// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Numbers a call of the broker to a client; never given twice in one application.
package typealias CallNumber = Int64

/// How a call of the broker to a client ended.
package enum CallAnswer: Sendable {
  case result(JSONSlice)
  /// The client answered with an error.
  case error(code: Int, message: String)
  /// No answer can come: the connection is gone, or the client has ended its sending direction.
  case lost
}

/// A call of the broker to a client that has not ended.
struct PendingCall {
  let session: SessionID
  let client: ClientID
  let purpose: CallPurpose
}

/// What a call to a client was made for: who gets its answer.
enum CallPurpose {
  /// Of the save round under way.
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
  /// - Returns: nil where nobody can answer: the session has no connection, or does not serve the method.
  func call<Call: RestorationCall>(_ session: Session, _ call: Call, for purpose: CallPurpose) -> CallNumber? {
    guard session.serves(Call.method), let client = session.client else { return nil }
    callCounter += 1
    calls[callCounter] = PendingCall(session: session.id, client: client, purpose: purpose)
    let method = Call.method.rawValue
    context.emit(.call(id, callCounter, client, method: method, parameters: call.parameters))
    return callCounter
  }

  /// Notifies the client of a session when everything written so far is durable, if it is there and serves that.
  func notify<Notification: RestorationNotification>(_ session: Session, _ notification: Notification) {
    guard session.serves(Notification.method), let client = session.client else { return }
    let method = Notification.method.rawValue
    context.emit(.notify(id, client, method: method, parameters: notification.parameters))
  }

  /// The answer is no longer wanted; one that still comes is dropped.
  func endCall(_ number: CallNumber) {
    guard let call = calls.removeValue(forKey: number) else { return }
    context.emit(.endCall(call.client, number, of: id))
  }

  /// A call has ended, with or without answer.
  func callEnded(_ number: CallNumber, _ answer: CallAnswer) {
    guard let call = calls.removeValue(forKey: number) else { return }
    if case .lost = answer {} else if let session = sessions[call.session] { heard(from: session) }
    switch call.purpose {
    case .save(let question): saveCallEnded(call, question, answer)
    case .pull: pullEnded(call, answer)
    case .restoring(let purpose):
      callEnded(number, purpose, answer, by: call.session)
      // It has come back by another connection before the old one was gone.
      if case .lost = answer, let session = sessions[call.session], session.client != nil,
        session.client != call.client
      {
        returned(session)
      }
    case .resolving(let resolution): elementFound(resolution, answer)
    }
  }

  /// A session has ended, though its connection may go on.
  func loseCalls(of session: SessionID) {
    guard !calls.isEmpty else { return }
    for (number, call) in calls.filter({ $0.value.session == session }).sorted(by: { $0.key < $1.key }) {
      context.emit(.endCall(call.client, number, of: id))
      callEnded(number, .lost)
    }
  }

  /// A connection is gone: nothing comes from it any more.
  func loseCalls(of client: ClientID) {
    guard !calls.isEmpty else { return }
    for number in calls.filter({ $0.value.client == client }).keys.sorted() {
      callEnded(number, .lost)
    }
  }
}

extension BrokerCore {
  /// A call to a client has ended, with or without answer.
  package mutating func callEnded(
    _ id: ApplicationID,
    _ number: CallNumber,
    _ answer: CallAnswer,
    at now: Moment
  ) {
    context.now = now
    applications[id]?.callEnded(number, answer)
  }
}
