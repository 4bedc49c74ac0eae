// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport

/// The broker's calls to this client.
extension BrokerLink {
  func take(_ call: Conversation.Call, _ request: Request) {
    if let observer {
      observer.called(call, request, by: self)
    } else if heldCalls != nil {
      heldCalls?.append((call, request))
    } else if let responder {
      Task { answer(call, with: await responder.answer(request)) }
    } else {
      answer(call, with: .error(.methodNotFound(request.method, hint: "Call what the client lists in serves.")))
    }
  }

  func respond(by responder: BrokerCallResponder) {
    self.responder = responder
  }

  /// Answers a call that came on this connection; does nothing once that has ended.
  func answer(_ call: Conversation.Call, with outcome: Outcome) {
    connection?.respond(to: call, with: outcome)
  }
}
