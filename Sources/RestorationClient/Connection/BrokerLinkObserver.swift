// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Is told what one connection receives, instead of those who wait for it. Always called on the link's event loop.
protocol BrokerLinkObserver: AnyObject, Sendable {
  /// The answer to what `begin` sent. Without one the connection ends.
  func answered(_ ticket: BrokerLink.Ticket, _ answer: Response.Outcome, by link: BrokerLink)

  /// To be answered once, by `BrokerLink.answer`, unless the connection ends before.
  func called(_ call: Conversation.Call, _ request: Request, by link: BrokerLink)

  func notified(_ notification: BrokerNotification, by link: BrokerLink)

  /// Last call.
  func ended(_ link: BrokerLink)
}
