// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

extension BrokerConnection {
  /// Decides what is sent, when, and how each call ends. Pure: events in, actions out; `BrokerLink` carries them out.
  ///
  ///     open ── close() ──────────────▶ ending(.closed) ── closed ──▶ ended
  ///       ├──── the broker's last word ─▶ ending(.lost) ──── closed ──▶ ended
  ///       └──── closed ──────────────────────────────────────────────▶ ended
  ///
  /// Invariants:
  /// 1. Messages are sent in the order in which they were submitted.
  /// 2. A ticket ends exactly once: completed, cancelled or failed. Nothing is sent for a ticket that has ended.
  /// 3. At most `windowBytes` are sent and not confirmed by an answer, unless a single larger message is all there is.
  /// 4. Bytes without an answer (notifications, abandoned calls) are confirmed by our own ping. They are never charged
  ///    to a call, because a call may wait at the broker for messages queued behind it here.
  /// 5. When the connection has ended, every ticket has, and later ones fail at once.
  package struct StateMachine {
    /// Names one message from its submission to its end.
    package typealias Ticket = Int

    /// Why there will be no answer.
    package enum Ending: Equatable, Sendable {
      /// We closed the connection.
      case closed
      /// The broker did, or it ended.
      case lost
      /// The peer is not a broker.
      case protocolFault
      /// The broker has said that it takes no calls, or could not read one.
      case refused(RestorationError)
    }

    /// Carried out in this order.
    package enum Action: Equatable {
      /// To be reported by `sent(_:as:)`.
      case sendCall(Ticket)
      /// The ticket has ended by it.
      case sendNotification(Ticket)
      /// To be reported by `sentPing(as:)`.
      case sendPing
      case forget(callID: Int)
      /// The current answer belongs to this ticket.
      case complete(Ticket)
      case cancel(Ticket)
      case fail(Ticket, Ending)
      /// Close when all output has been taken, or at once.
      case close(afterOutput: Bool)
    }

    private enum State: Equatable {
      case open
      case ending(Ending)
      case ended(Ending)
    }

    private struct Waiting {
      var expectsAnswer: Bool
      var bytes: Int
    }

    /// A call that awaits its answer; without a ticket it is a ping.
    private struct Sent {
      var ticket: Ticket?
      var bytes: Int
    }

    private let windowBytes: Int
    private var state = State.open
    private var lastTicket = 0
    /// In order of submission; tickets that are no longer in `waiting` are skipped.
    private var queue: Deque<Ticket> = []
    private var waiting: [Ticket: Waiting] = [:]
    /// Calls that are being sent; without an id before their report, or when the connection is about to end.
    private var sending: [Ticket: Int] = [:]
    private var pingsToSend: [Int] = []
    private var sent: [Int: Sent] = [:]
    private var callIDs: [Ticket: Int] = [:]
    /// Sent and not confirmed, including `unclaimedBytes`.
    package private(set) var unconfirmedBytes = 0
    /// Those of them that no answer will confirm.
    private var unclaimedBytes = 0

    /// - Parameter windowBytes: the most bytes of parameters on their way to the broker.
    package init(windowBytes: Int) { self.windowBytes = windowBytes }

    package var pending: Int { waiting.count + sending.count + callIDs.count }

    /// Why no more answers come; `nil` while the connection is open.
    package var ending: Ending? {
      switch state {
      case .open: nil
      case .ending(let ending), .ended(let ending): ending
      }
    }

    package mutating func makeTicket() -> Ticket {
      lastTicket += 1
      return lastTicket
    }

    // MARK: Messages

    /// `bytes` is the message's share of the window.
    package mutating func submit(_ ticket: Ticket, expectsAnswer: Bool, bytes: Int) -> [Action] {
      switch state {
      case .open:
        queue.append(ticket)
        waiting[ticket] = Waiting(expectsAnswer: expectsAnswer, bytes: bytes)
        return drain()
      case .ending(let ending), .ended(let ending):
        return [.fail(ticket, ending)]
      }
    }

    /// A call was sent under this id; `nil` if it could not be sent: the end of the connection follows.
    package mutating func sent(_ ticket: Ticket, as callID: Int?) -> [Action] {
      guard let callID else { return [] }
      guard let bytes = sending.removeValue(forKey: ticket) else { return [.forget(callID: callID)] }
      sent[callID] = Sent(ticket: ticket, bytes: bytes)
      callIDs[ticket] = callID
      return []
    }

    /// A ping was sent under this id; `nil` if it could not be sent.
    package mutating func sentPing(as callID: Int?) {
      guard !pingsToSend.isEmpty else { return }
      let bytes = pingsToSend.removeFirst()
      if let callID { sent[callID] = Sent(ticket: nil, bytes: bytes) }
    }

    /// An answer has come, good or bad.
    package mutating func answered(_ callID: Int) -> [Action] {
      guard let ended = sent.removeValue(forKey: callID) else { return [] }
      unconfirmedBytes -= ended.bytes
      guard let ticket = ended.ticket else { return drain() }
      callIDs[ticket] = nil
      return [.complete(ticket)] + drain()
    }

    package mutating func cancelled(_ ticket: Ticket) -> [Action] {
      if waiting.removeValue(forKey: ticket) != nil { return [.cancel(ticket)] + drain() }
      if sending.removeValue(forKey: ticket) != nil { return [.cancel(ticket)] }
      guard let callID = callIDs.removeValue(forKey: ticket), let ended = sent.removeValue(forKey: callID) else {
        return []
      }
      unclaimedBytes += ended.bytes
      return [.forget(callID: callID), .cancel(ticket)] + drain()
    }

    // MARK: The end

    /// Closes the connection; sent messages still reach the broker.
    package mutating func close() -> [Action] {
      guard state == .open else { return [] }
      return end(as: .ending(.closed), .closed) + [.close(afterOutput: true)]
    }

    /// The broker has closed its output: no further answer can come.
    package mutating func inputEnded() -> [Action] {
      guard state == .open else { return [] }
      return end(as: .ending(.lost), .lost) + [.close(afterOutput: false)]
    }

    /// The connection is gone. If we closed it, that reason stays.
    package mutating func closed(_ ending: Ending) -> [Action] {
      switch state {
      case .open: return end(as: .ended(ending), ending)
      case .ending(let earlier):
        state = .ended(earlier)
        return []
      case .ended: return []
      }
    }

    private mutating func end(as state: State, _ ending: Ending) -> [Action] {
      let tickets = (Array(waiting.keys) + sending.keys + callIDs.keys).sorted()
      self.state = state
      queue = []
      waiting = [:]
      sending = [:]
      pingsToSend = []
      sent = [:]
      callIDs = [:]
      unconfirmedBytes = 0
      unclaimedBytes = 0
      return tickets.map { .fail($0, ending) }
    }

    // MARK: The window

    private func hasRoom(for bytes: Int) -> Bool { unconfirmedBytes == 0 || unconfirmedBytes + bytes <= windowBytes }

    /// Sends messages while the window has room, from the front of the queue.
    private mutating func drain() -> [Action] {
      guard state == .open else { return [] }
      var actions: [Action] = []
      var isBlocked = false
      while let ticket = queue.first {
        if let message = waiting[ticket] {
          guard hasRoom(for: message.bytes) else {
            isBlocked = true
            break
          }
          waiting[ticket] = nil
          actions.append(send(ticket, message))
        }
        queue.removeFirst()
      }
      if unclaimedBytes > windowBytes / 2 || isBlocked && unclaimedBytes > 0 {
        pingsToSend.append(unclaimedBytes)
        unclaimedBytes = 0
        actions.append(.sendPing)
      }
      return actions
    }

    private mutating func send(_ ticket: Ticket, _ message: Waiting) -> Action {
      unconfirmedBytes += message.bytes
      if message.expectsAnswer {
        sending[ticket] = message.bytes
        return .sendCall(ticket)
      }
      unclaimedBytes += message.bytes
      return .sendNotification(ticket)
    }
  }
}
