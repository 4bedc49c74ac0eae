// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire

extension BrokerLink {
  func take(_ call: Conversation.Call, _ request: Request) {
    if let observer {
      observer.called(call, request, by: self)
    } else if heldCalls != nil {
      heldCalls?.append((call, request))
    } else if let responder {
      Task { answer(call, with: await CallTrace.following(request) { await responder.answer(request) }) }
    } else {
      answer(call, with: .error(.methodNotFound(request.method, hint: "Call what the client lists in serves.")))
    }
  }

  func respond(by responder: BrokerCallResponder) { self.responder = responder }

  /// Answers a call of this connection; does nothing after its end.
  func answer(_ call: Conversation.Call, with outcome: Outcome) { connection?.respond(to: call, with: outcome) }
}

extension BrokerLink {
  /// A token for the calls of one operation; `handler` receives its progress.
  func add(_ handler: @escaping ArchiveProgress.Handler) -> ProgressToken {
    lastProgress += 1
    let token = ProgressToken("progress-\(lastProgress)")
    progressHandlers[token] = handler
    return token
  }

  func removeProgress(_ token: ProgressToken?) { if let token { progressHandlers[token] = nil } }

  /// Whether the notification is about progress; then its handler is called.
  func tellProgress(_ notification: JSONRPC.Notification) -> Bool {
    guard notification.method == ArchiveProgress.method.rawValue else { return false }
    if notification.fault == nil, case .named(let parameters) = notification.parameters,
      let progress = try? ArchiveProgress(wire: parameters)
    {
      progressHandlers[progress.progressToken]?(progress)
    }
    return true
  }
}

/// Receives everything of one connection, instead of waiting tasks. Always called on the link's event loop.
protocol BrokerLinkObserver: AnyObject, Sendable {
  /// The answer to a message of `begin`. Without one the connection ends.
  func answered(_ ticket: BrokerLink.Ticket, _ answer: Response.Outcome, by link: BrokerLink)

  /// To be answered once, by `BrokerLink.answer`, unless the connection ends before.
  func called(_ call: Conversation.Call, _ request: Request, by link: BrokerLink)

  func notified(_ notification: BrokerNotification, by link: BrokerLink)

  /// Last call.
  func ended(_ link: BrokerLink)
}
