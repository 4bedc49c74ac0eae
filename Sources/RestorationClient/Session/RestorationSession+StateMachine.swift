// SPDX-License-Identifier: Apache-2.0

extension RestorationSession {
  /// Decides when to connect, what is sent and repeated when, and how each call ends. Pure: events in, actions out;
  /// `SessionDriver` carries them out.
  ///
  ///     open ── lost ──▶ connecting ── connected ──▶ initializing ── initialized ──▶ open
  ///                       ▲      │ connectFailed           │ lost, postponed
  ///               elapsed │      ▼                         ▼
  ///                      waiting ◀─────────────────────────┘
  ///     any ── goodbye answered, end given up, refused, fenced ──▶ ended
  ///
  /// A session that finds no broker at its start begins in `connecting` and is *alone* until it is open for the first
  /// time: `send` is then answered from memory, and the end is not said to anybody.
  ///
  /// Invariants:
  /// 1. A ticket ends exactly once: completed, cancelled or failed. Nothing is sent for a ticket that has ended.
  /// 2. On each connection calls are sent in the order of their submission, except those that wait for an object to be
  ///    registered again; calls of one object always keep their order. Calls that the broker itself asks to repeat come
  ///    after the rest, because they would have taken effect after it.
  /// 3. A call that is not idempotent is sent once at most; others `triesMax` times at most.
  /// 4. At most `windowBytes` are at the broker, except for a single larger call.
  /// 5. When the session has ended, every ticket has, and later ones fail at once.
  /// 6. Without a broker, a call beyond the `CallQueue.Limit`s fails at once; those that wait stay.
  /// 7. With a `timeout`, no call but the goodbye stays with a broker that says nothing at all.
  package struct StateMachine {
    package typealias Ticket = CallQueue.Ticket
    package typealias ObjectID = ObjectPlan.ObjectID
    package typealias Call = CallQueue.Call

    /// The most tries of one call: it may itself end the connections that are lost with it.
    package static let triesMax = 8

    /// A connection that has lived this long was useful.
    package static let usefulMilliseconds: Int64 = 1_000

    /// A broker that owes an answer may be silent this long, whatever `timeout` is.
    package static let silenceMilliseconds: Int64 = 1_000

    package enum Ending: Equatable, Sendable {
      /// We left. Whether the broker has confirmed it.
      case left(isConfirmed: Bool)
      /// The broker does not take the session back, or another host has the application.
      case refused
    }

    package enum Failure: Equatable {
      /// The session has ended; the call has not reached the broker.
      case ended
      /// No broker came in time; the call has not reached one.
      case timedOut
      case outcomeUnknown
      /// The object is no longer this session's.
      case notRegistered(ObjectID)
      /// So much waits for a broker already.
      case limitExceeded(CallQueue.Limit)
    }

    package enum Report: Equatable {
      case connected
      case reconnecting
      case ended(Ending)
    }

    /// Carried out in this order.
    package enum Action: Equatable {
      /// To be reported by `connected` or `connectFailed`. A wait is over by it.
      case connect
      /// To be reported by `elapsed`.
      case wait(milliseconds: Int64)
      /// Resume the session. To be reported by `initialized`, `postponed` or `refused`, if not by `lost`.
      case initialize
      /// To be reported by `settled`.
      case register(ObjectID)
      /// See whether the broker is alive: `heard` if it answers.
      case ping
      /// All objects are registered with a new session: repeat all other registrations.
      case replay
      case send(Ticket)
      /// The answer to this call is no longer expected.
      case forget(Ticket)
      case complete(Ticket)
      case cancel(Ticket)
      case fail(Ticket, Failure)
      /// To be reported by `alarm`; `nil` cancels it.
      case setAlarm(at: Int64?)
      /// Close the connection; `lost` follows.
      case disconnect
      /// Close the connection after its output. If `leaving`, say goodbye first.
      case close(leaving: Bool)
      case report(Report)
    }

    private enum State: Equatable {
      case open(since: Int64)
      case connecting
      case initializing
      case waiting(milliseconds: Int64)
      case ended
    }

    private let timeout: Int64?
    private var state: State
    package private(set) var isAlone: Bool
    private var delay = ReconnectDelay()
    private var queue: CallQueue
    private var plan = ObjectPlan()
    private var lastTicket = 0
    private var goodbye: Ticket?
    /// Another host has the application: nothing more is sent, and the session ends when all sent calls are answered.
    private var isFenced = false
    private var alarmTime: Int64?
    /// Start of the silence while the broker owes an answer.
    private var quietSince: Int64
    private var isReplaying = false
    private var hasRegisteredAgain = false

    /// A machine that is connected and initialized. Times are milliseconds of any monotonic clock.
    ///
    /// - Parameters:
    ///   - timeout: milliseconds that a call may wait for a broker; `nil` for ever.
    ///   - isAlone: whether the first try found no broker; `connectFailed` follows.
    package init(windowBytes: Int, timeout: Int64?, isAlone: Bool = false, at now: Int64) {
      (self.timeout, self.isAlone) = (timeout, isAlone)
      state = isAlone ? .connecting : .open(since: now)
      quietSince = now
      queue = CallQueue(windowBytes: windowBytes)
    }

    package var pending: Int { queue.count }
    package var hasEnded: Bool { state == .ended }
    package var isEnding: Bool { goodbye != nil || isFenced || hasEnded }
    private var isOpen: Bool { if case .open = state { true } else { false } }
    /// Whether calls are answered, by a broker or from memory.
    private var isAnswering: Bool { isOpen || isAlone && !hasEnded }

    package mutating func makeTicket() -> Ticket {
      lastTicket += 1
      return lastTicket
    }

    // MARK: Calls

    package mutating func submit(_ ticket: Ticket, _ call: Call, at now: Int64) -> [Action] {
      guard !isEnding else { return [.fail(ticket, .ended)] }
      if !isAnswering, let limit = queue.limit(for: call) { return [.fail(ticket, .limitExceeded(limit))] }
      return enqueue(ticket, call, at: now)
    }

    /// Ends the session once all earlier calls are at the broker.
    package mutating func end(_ ticket: Ticket, bytes: Int, at now: Int64) -> [Action] {
      guard !isEnding else { return [.fail(ticket, .ended)] }
      if isAlone { return finish(.left(isConfirmed: false), leaving: state == .initializing) }
      goodbye = ticket
      return enqueue(ticket, Call(isIdempotent: true, bytes: bytes), at: now)
    }

    private mutating func enqueue(_ ticket: Ticket, _ call: Call, at now: Int64) -> [Action] {
      if queue.isEmpty { quietSince = now }
      queue.append(ticket, call, at: now)
      if case .waiting(let milliseconds) = state, milliseconds > ReconnectDelay.longestWithWork, !isAlone {
        state = .connecting
        return [.connect] + updateAlarm()
      }
      return drain() + updateAlarm()
    }

    /// - Parameter isFinal: whether the answer settles the call; otherwise it needs another connection.
    package mutating func answered(_ ticket: Ticket, isFinal: Bool) -> [Action] {
      guard let entry = queue[ticket], entry.place == .sent, isAnswering else { return [] }
      if !isFinal, entry.call.isIdempotent, entry.tries < Self.triesMax {
        // The call keeps its place until the connection is gone.
        return [.disconnect]
      }
      if isOpen { delay.reset() }
      _ = queue.remove(ticket)
      if ticket == goodbye { return [.complete(ticket)] + finish(.left(isConfirmed: true)) }
      return [.complete(ticket)] + goOn()
    }

    /// The broker is ending, and has not done the call: it is sent again over the same connection. The next broker
    /// reads it, if the connection outlives this one. `nil` if the answer is final.
    package mutating func shuttingDown(_ ticket: Ticket) -> [Action]? {
      guard isOpen, !isFenced, let entry = queue[ticket], entry.place == .sent, entry.call.isIdempotent,
        entry.tries < Self.triesMax
      else { return nil }
      queue.putBack(ticket)
      return drain()
    }

    /// The broker does not know a registered object, because its archive is older: all objects are registered again,
    /// which changes nothing for known ones. `nil` if that does not help.
    package mutating func unknownObject(_ ticket: Ticket) -> [Action]? {
      guard isOpen, !isFenced, let entry = queue[ticket], entry.place == .sent, entry.call.isIdempotent else {
        return nil
      }
      guard !hasRegisteredAgain || entry.call.objects.contains(where: { !isRegistered($0) }) else { return nil }
      var registrations: [Action] = []
      if !hasRegisteredAgain {
        hasRegisteredAgain = true
        plan.forgetRegistrations()
        registrations = plan.begin().map { .register($0) }
      }
      queue.putBack(ticket)
      return registrations + drain()
    }

    package mutating func unsendable(_ ticket: Ticket) -> [Action] {
      guard queue.remove(ticket) != nil else { return [] }
      return goOn()
    }

    package mutating func cancelled(_ ticket: Ticket) -> [Action] {
      guard ticket != goodbye else { return giveUp() }
      guard let entry = queue.remove(ticket) else { return [] }
      let forget: [Action] = entry.place == .sent ? [.forget(ticket)] : []
      return forget + [.cancel(ticket)] + goOn() + updateAlarm()
    }

    /// The broker has said something.
    package mutating func heard(at now: Int64) { quietSince = now }

    /// The alarm for calls without a broker, or for a silent one.
    package mutating func alarm(at now: Int64) -> [Action] {
      alarmTime = nil
      guard let timeout, let silenceMax, !hasEnded else { return [] }
      if isOpen {
        guard !queue.isEmpty, now - quietSince >= silenceMax / 2 else { return updateAlarm() }
        // It may be stopped, and will resume the session when it continues.
        guard now - quietSince < silenceMax else { return [.disconnect] }
        alarmTime = quietSince + silenceMax
        return [.ping, .setAlarm(at: alarmTime)]
      }
      var actions: [Action] = []
      for ticket in queue.tickets where ticket != goodbye {
        guard let entry = queue[ticket], entry.since + timeout <= now else { break }
        _ = queue.remove(ticket)
        actions.append(.fail(ticket, entry.tries > 0 ? .outcomeUnknown : .timedOut))
      }
      return actions + updateAlarm()
    }

    // MARK: Objects

    package mutating func registered(_ object: ObjectID, below parent: ObjectID?) { plan.add(object, below: parent) }

    package mutating func moved(_ object: ObjectID, below parent: ObjectID?) { plan.move(object, below: parent) }

    package mutating func removed(_ object: ObjectID) -> [Action] { settled(object, isRegistered: false) }

    /// The broker has answered a repeated registration.
    package mutating func settled(_ object: ObjectID, isRegistered: Bool) -> [Action] {
      let ready = isRegistered ? plan.settle(object) : plan.remove(object)
      queue.unpark(object)
      return ready.map { .register($0) } + replay() + drain()
    }

    package func isRegistered(_ object: ObjectID) -> Bool { plan.status(of: object) == .registered }

    private mutating func replay() -> [Action] {
      guard isReplaying, plan.unsettled == 0, isOpen else { return [] }
      isReplaying = false
      return [.replay]
    }

    // MARK: The connection

    /// The connection is gone, closed by either side.
    package mutating func lost(at now: Int64) -> [Action] {
      guard !hasEnded else { return [] }
      if isFenced { return finish(.refused) }
      if case .open(let since) = state, now - since >= Self.usefulMilliseconds { delay.reset() }
      var actions: [Action] = isOpen ? [.report(.reconnecting)] : []
      for ticket in queue.tickets {
        guard let entry = queue[ticket], entry.place == .sent else { continue }
        if !entry.call.isRepeated || entry.tries >= Self.triesMax && ticket != goodbye {
          _ = queue.remove(ticket)
          actions.append(.fail(ticket, .outcomeUnknown))
        }
      }
      plan.interrupt()
      if isOpen {
        // Useless connections do not restart the wait; a silent broker was gone before this.
        let isSilent = silenceMax.map { now - quietSince >= $0 } ?? false
        queue.requeue(since: !delay.isReset ? 0 : isSilent ? quietSince : now)
      }
      return actions + reconnect() + updateAlarm()
    }

    package mutating func connectFailed() -> [Action] { hasEnded ? [] : reconnect() }

    package mutating func connected() -> [Action] {
      guard !hasEnded else { return [.close(leaving: false)] }
      state = .initializing
      return [.initialize]
    }

    /// Looks for the first broker at once.
    package mutating func look() -> [Action] { isAlone ? elapsed() : [] }

    package mutating func elapsed() -> [Action] {
      guard case .waiting = state else { return [] }
      state = .connecting
      return [.connect]
    }

    /// The broker has resumed the session, or given a new one.
    package mutating func initialized(isResumed: Bool, at now: Int64) -> [Action] {
      guard state == .initializing else { return [] }
      isAlone = false
      if !isResumed {
        if let goodbye, let entry = queue[goodbye], entry.tries > 0 {
          // The goodbye took effect: the session no longer exists.
          _ = queue.remove(goodbye)
          return [.complete(goodbye)] + finish(.left(isConfirmed: true), leaving: true)
        }
        plan.forgetRegistrations()
        isReplaying = true
      }
      hasRegisteredAgain = !isResumed
      state = .open(since: now)
      quietSince = now
      return updateAlarm() + [.report(.connected)] + plan.begin().map { .register($0) } + replay() + drain()
    }

    /// The broker cannot resume the session now.
    package mutating func postponed() -> [Action] {
      guard state == .initializing else { return [] }
      return [.disconnect]
    }

    /// The broker refuses to resume the session.
    package mutating func refused() -> [Action] {
      guard state == .initializing else { return [] }
      return finish(.refused)
    }

    /// Another host has the application: a call or a connection would take it back (R36).
    package mutating func fenced() -> [Action] {
      guard !isFenced, !hasEnded else { return [] }
      isFenced = true
      var actions: [Action] = []
      for ticket in queue.tickets where queue[ticket]?.place != .sent {
        guard let entry = queue.remove(ticket) else { continue }
        actions.append(.fail(ticket, entry.tries > 0 ? .outcomeUnknown : .ended))
      }
      return actions + goOn()
    }

    /// A ticket has ended.
    private mutating func goOn() -> [Action] {
      guard isFenced else { return drain() }
      return queue.isEmpty ? finish(.refused) : []
    }

    /// Stops waiting for the goodbye and all other calls.
    package mutating func giveUp() -> [Action] {
      guard !hasEnded else { return [] }
      var last: [Action] = []
      if isOpen, let goodbye, queue[goodbye]?.place == .waiting {
        // The goodbye can still be sent.
        queue.send(goodbye)
        last = [.send(goodbye)]
      }
      return last + finish(.left(isConfirmed: false))
    }

    private mutating func reconnect() -> [Action] {
      let milliseconds = delay.next(hasWork: !queue.isEmpty, isAlone: isAlone)
      state = milliseconds == 0 ? .connecting : .waiting(milliseconds: milliseconds)
      return [milliseconds == 0 ? .connect : .wait(milliseconds: milliseconds)]
    }

    private mutating func finish(_ ending: Ending, leaving: Bool = false) -> [Action] {
      var actions: [Action] = []
      for ticket in queue.tickets {
        guard let entry = queue.remove(ticket) else { continue }
        actions.append(.fail(ticket, entry.tries > 0 ? .outcomeUnknown : .ended))
      }
      state = .ended
      return updateAlarm() + actions + [.close(leaving: leaving), .report(.ended(ending))]
    }

    /// Sends calls while the window has room, from the front of the queue.
    private mutating func drain() -> [Action] {
      guard isAnswering else { return [] }
      var actions: [Action] = []
      while let ticket = queue.first(), let call = queue[ticket]?.call {
        if ticket == goodbye, queue.hasParked { break }
        if let object = call.objects.first(where: { plan.status(of: $0) == nil }) {
          _ = queue.remove(ticket)
          actions.append(.fail(ticket, .notRegistered(object)))
        } else if let object = queue.blocker(of: call) ?? call.objects.first(where: { !isRegistered($0) }) {
          queue.park(ticket, for: object)
        } else if queue.hasRoom(for: call.bytes) {
          queue.send(ticket)
          actions.append(.send(ticket))
        } else {
          break
        }
      }
      return actions
    }

    private var silenceMax: Int64? { timeout.map { max($0, Self.silenceMilliseconds) } }

    /// The alarm is for the first call in order, which waits longest. With a connection it watches the broker's
    /// silence; it is postponed when it fires, not at each answer.
    private mutating func updateAlarm() -> [Action] {
      guard let timeout, let silenceMax else { return [] }
      var time: Int64?
      if isOpen {
        if !queue.isEmpty { time = alarmTime ?? quietSince + silenceMax / 2 }
      } else if !hasEnded, let first = queue.first(), first != goodbye, let entry = queue[first] {
        time = entry.since + timeout
      }
      guard time != alarmTime else { return [] }
      alarmTime = time
      return [.setAlarm(at: time)]
    }
  }
}
