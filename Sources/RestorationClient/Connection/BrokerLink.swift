// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import RestorationTransport
internal import RestorationWire

/// The I/O side of one connection: carries out the state machine's decisions and wakes waiting tasks. It runs on the
/// connection's event loop.
actor BrokerLink {
  typealias Ticket = BrokerConnection.StateMachine.Ticket
  typealias Ending = BrokerConnection.StateMachine.Ending

  /// The most bytes on their way to the broker; a frame of the broker's default limit.
  private static let windowBytes = 4 << 20

  /// Bytes a message takes besides method and parameters.
  private static let envelopeBytes = 64

  private static let notificationsMax = 1_024

  /// How long closing waits for a broker that does not read.
  private static let closeSeconds: Int64 = 5

  nonisolated let eventLoop: any EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { eventLoop.executor.asUnownedSerialExecutor() }

  nonisolated let socketPath: String
  /// `nil` before it is open and after it has ended.
  private(set) var connection: Connection?
  private var wasOpened = false
  private var machine = BrokerConnection.StateMachine(windowBytes: BrokerLink.windowBytes)
  private var waiters: [Ticket: Waiter] = [:]
  private var closeWaiters: [CheckedContinuation<Void, Never>] = []
  private var notifications = NotificationQueue<BrokerNotification>(capacity: BrokerLink.notificationsMax)
  private var notificationWaiters: [NotificationWaiter] = []
  var progressHandlers: [ProgressToken: ArchiveProgress.Handler] = [:]
  var lastProgress = 0
  private(set) weak var observer: (any BrokerLinkObserver)?
  /// Answers the broker's calls if there is no observer.
  var responder: BrokerCallResponder?
  /// Calls that came before a responder was set; `nil` if there will be none.
  var heldCalls: [(call: Conversation.Call, request: Request)]?
  /// Answers for the observer, delivered when the machine is done: the observer may send from inside.
  private var observed: [(ticket: Ticket, answer: Response.Outcome)] = []
  /// Calls whose answer is the number of a subscription, each with the events it keeps until they are taken.
  private var subscribing: [Ticket: Int] = [:]
  private var subscriptions: [Int64: Subscription] = [:]
  /// Why the connection has ended.
  private var ending: Ending?

  private struct Waiter {
    enum Continuation {
      case answer(CheckedContinuation<Response.Outcome, any Error>)
      case sent(CheckedContinuation<Void, any Error>)
      /// The observer learns of the connection's end separately.
      case observer
    }

    let method: String
    /// Released after sending.
    var parameters: JSONText?
    let continuation: Continuation
  }

  private struct NotificationWaiter {
    let ticket: Ticket
    let continuation: CheckedContinuation<BrokerNotification?, Never>
  }

  private struct Subscription {
    var queue: NotificationQueue<BrokerEvent>
    var waiters: [(ticket: Ticket, continuation: CheckedContinuation<BrokerEvent?, any Error>)] = []
  }

  private init(by route: any BrokerRoute, isToBeObserved: Bool) {
    (eventLoop, socketPath) = (route.eventLoop, route.path)
    heldCalls = isToBeObserved ? [] : nil
  }

  /// - Parameter isToBeObserved: retain calls of the broker for a later observer.
  nonisolated(nonsending) static func connect(
    by route: any BrokerRoute,
    isToBeObserved: Bool = false
  ) async throws -> BrokerLink {
    let link = BrokerLink(by: route, isToBeObserved: isToBeObserved)
    var limits = TransportLimits()
    limits.frame = .ofAnswers
    // The window bounds the output, and the broker may take any time to answer.
    limits.outQueueBytesMax = .max
    limits.partialFrameMilliseconds = 86_400_000
    // An error without an id is about one of our messages, which will get no other answer, and it is unknown which.
    limits.conversation.strayResponsesMax = 0
    do throws(TransportError) {
      try await route.connect(
        ConnectionSettings(limits: limits, vocabulary: EncodedState.vocabulary),
        delegate: link
      )
    } catch {
      // If the connection has ended at once, the first call throws the reason.
      guard error.code == .closed, await link.wasOpened else { throw BrokerConnectionError(error, path: route.path) }
    }
    return link
  }

  // MARK: Messages

  /// Calls the broker and gives its answer, good or bad. Cancelling the task cancels the call.
  ///
  /// - Parameter eventsMax: events retained for `nextEvent` from the answer to `endSubscription`.
  func call(_ method: String, _ parameters: JSONText?, eventsMax: Int? = nil) async throws -> Response.Outcome {
    try Task.checkCancellation()
    let ticket = machine.makeTicket()
    subscribing[ticket] = eventsMax
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        submit(ticket, Waiter(method: method, parameters: parameters, continuation: .answer($0)))
      }
    } onCancel: {
      cancel(ticket)
    }
  }

  /// Returns when the notification has its place in the order of messages.
  func notify(_ method: String, _ parameters: JSONText?) async throws {
    try Task.checkCancellation()
    let ticket = machine.makeTicket()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        submit(ticket, Waiter(method: method, parameters: parameters, continuation: .sent($0)))
      }
    } onCancel: {
      cancel(ticket)
    }
  }

  private func submit(_ ticket: Ticket, _ waiter: Waiter) {
    waiters[ticket] = waiter
    let expectsAnswer = if case .sent = waiter.continuation { false } else { true }
    let bytes = Self.envelopeBytes + waiter.method.utf8.count + (waiter.parameters?.count ?? 0)
    run(machine.submit(ticket, expectsAnswer: expectsAnswer, bytes: bytes))
  }

  /// Runs on the event loop, soon.
  private nonisolated func enter(_ body: @escaping @Sendable (isolated BrokerLink) -> Void) {
    eventLoop.execute { self.assumeIsolated { body($0) } }
  }

  private nonisolated func cancel(_ ticket: Ticket) { enter { $0.cancelled(ticket) } }

  private func cancelled(_ ticket: Ticket) {
    if subscribing[ticket] != nil, waiters[ticket]?.parameters == nil {
      // It was sent, and the answer must be awaited anyway: it names the subscription to end.
      fail(ticket, CancellationError())
    } else {
      subscribing[ticket] = nil
      run(machine.cancelled(ticket))
    }
  }

  // MARK: The observer

  /// Reports everything to an observer, on this event loop; false if the connection has ended.
  func observe(by observer: any BrokerLinkObserver) -> Bool {
    guard connection != nil else { return false }
    self.observer = observer
    let calls = heldCalls ?? []
    heldCalls = nil
    for (call, request) in calls { observer.called(call, request, by: self) }
    while let notification = notifications.next() { observer.notified(notification, by: self) }
    return true
  }

  /// Calls the broker without waiting: the observer gets the answer. Messages are sent in the order of these calls.
  func begin(_ method: String, _ parameters: JSONText?) -> Ticket {
    let ticket = machine.makeTicket()
    submit(ticket, Waiter(method: method, parameters: parameters, continuation: .observer))
    return ticket
  }

  func giveUp(_ ticket: Ticket) { run(machine.cancelled(ticket)) }

  private func tellObserver() {
    while !observed.isEmpty {
      let told = observed
      observed = []
      for (ticket, answer) in told { observer?.answered(ticket, answer, by: self) }
    }
  }

  // MARK: Notifications of the broker

  /// The next notification; `nil` after the end of the connection, or if the task was cancelled.
  func nextNotification() async -> BrokerNotification? {
    let ticket = machine.makeTicket()
    return await withTaskCancellationHandler {
      // Checked at the start of the wait: other tasks may run before this one gets there.
      await withCheckedContinuation { waiting in
        if let notification = notifications.next() {
          waiting.resume(returning: notification)
        } else if connection != nil, !Task.isCancelled {
          notificationWaiters.append(NotificationWaiter(ticket: ticket, continuation: waiting))
        } else {
          waiting.resume(returning: nil)
        }
      }
    } onCancel: {
      enter { $0.endNotificationWait(ticket) }
    }
  }

  private func endNotificationWait(_ ticket: Ticket) {
    guard let index = notificationWaiters.firstIndex(where: { $0.ticket == ticket }) else { return }
    notificationWaiters.remove(at: index).continuation.resume(returning: nil)
  }

  private func take(_ notification: BrokerNotification) {
    if let observer {
      observer.notified(notification, by: self)
    } else if notificationWaiters.isEmpty {
      notifications.append(notification)
    } else {
      notificationWaiters.removeFirst().continuation.resume(returning: notification)
    }
  }

  // MARK: Events

  private func subscribed(_ answer: Response.Outcome, eventsMax: Int, isAwaited: Bool) {
    guard case .result(let result) = answer, let number = Subscribe.Reply(result)?.subscription else { return }
    subscriptions[number] = Subscription(
      queue: NotificationQueue(capacity: eventsMax) { BrokerEvent.lost($0, of: number) }
    )
    if !isAwaited { endSubscription(number) }
  }

  /// The next event; `nil` if the subscription has ended or the task was cancelled. Throws if the broker has ended.
  func nextEvent(of number: Int64) async throws -> BrokerEvent? {
    let ticket = machine.makeTicket()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiting in
        if let event = subscriptions[number]?.queue.next() {
          waiting.resume(returning: event)
        } else if subscriptions[number] == nil || Task.isCancelled {
          waiting.resume(returning: nil)
        } else if let ending {
          if ending == .closed { return waiting.resume(returning: nil) }
          waiting.resume(throwing: BrokerConnectionError(ending, path: socketPath))
        } else {
          subscriptions[number]?.waiters.append((ticket, waiting))
        }
      }
    } onCancel: {
      enter { $0.endEventWait(ticket, of: number) }
    }
  }

  private func endEventWait(_ ticket: Ticket, of number: Int64) {
    guard let index = subscriptions[number]?.waiters.firstIndex(where: { $0.ticket == ticket }) else { return }
    subscriptions[number]?.waiters.remove(at: index).continuation.resume(returning: nil)
  }

  private func take(_ event: BrokerEvent, of number: Int64) {
    guard let subscription = subscriptions[number] else { return }
    if subscription.waiters.isEmpty {
      subscriptions[number]?.queue.append(event, standingFor: event.lost ?? 1)
    } else {
      subscriptions[number]?.waiters.removeFirst().continuation.resume(returning: event)
    }
  }

  /// Ends a subscription; may be called repeatedly.
  nonisolated func endSubscription(_ number: Int64) { enter { $0.forgetSubscription(number) } }

  private func forgetSubscription(_ number: Int64) {
    guard let subscription = subscriptions.removeValue(forKey: number) else { return }
    for waiter in subscription.waiters { waiter.continuation.resume(returning: nil) }
    guard ending == nil else { return }
    var writer = JSONWriter()
    writer.object { Unsubscribe().with { $0.subscription = number }.writeMembers(to: &$0) }
    let parameters = JSONText(validated: writer.bytes)
    // Not awaited: events on their way are dropped anyway.
    Task { try? await notify(Unsubscribe.method, parameters) }
  }

  // MARK: The end

  /// Closes the connection once everything sent is with the kernel, and waits for its end.
  func close() async {
    run(machine.close())
    await withCheckedContinuation { waiting in
      if connection != nil { closeWaiters.append(waiting) } else { waiting.resume() }
    }
  }

  /// Closes the connection without waiting, after its last reference.
  nonisolated func abandon() { enter { $0.run($0.machine.close()) } }

  /// Closes the connection at once: unsent messages do not reach the broker.
  nonisolated func cut() { enter { $0.connection?.close(afterOutput: false) } }

  private func closeAfterOutput() {
    connection?.close(afterOutput: true)
    eventLoop.scheduleTask(in: .seconds(Self.closeSeconds)) { [weak self] in self?.cut() }
  }

  // MARK: Carrying out

  private func run(_ actions: [BrokerConnection.StateMachine.Action], answer: Response.Outcome? = nil) {
    for action in actions {
      switch action {
      case .sendCall(let ticket):
        run(machine.sent(ticket, as: send(ticket)))
      case .sendNotification(let ticket):
        sendNotification(ticket)
      case .sendPing:
        machine.sentPing(as: connection?.call(method: Ping.method, parameters: nil))
      case .forget(let callID):
        connection?.forget(callID)
      case .complete(let ticket):
        if let answer { complete(ticket, answer) }
      case .cancel(let ticket):
        fail(ticket, CancellationError())
      case .fail(let ticket, let ending):
        fail(ticket, BrokerConnectionError(ending, path: socketPath))
      case .close(let afterOutput):
        if afterOutput { closeAfterOutput() } else { connection?.close(afterOutput: false) }
      }
    }
  }

  private func send(_ ticket: Ticket) -> Int? {
    guard let waiter = waiters[ticket] else { return nil }
    waiters[ticket]?.parameters = nil
    return connection?.call(method: waiter.method, parameters: waiter.parameters)
  }

  private func sendNotification(_ ticket: Ticket) {
    guard let waiter = waiters.removeValue(forKey: ticket), case .sent(let continuation) = waiter.continuation else {
      return
    }
    connection?.notify(method: waiter.method, parameters: waiter.parameters)
    continuation.resume()
  }

  private func complete(_ ticket: Ticket, _ answer: Response.Outcome) {
    if let eventsMax = subscribing.removeValue(forKey: ticket) {
      subscribed(answer, eventsMax: eventsMax, isAwaited: waiters[ticket] != nil)
    }
    switch waiters.removeValue(forKey: ticket)?.continuation {
    case .answer(let continuation): continuation.resume(returning: answer)
    case .observer: observed.append((ticket, answer))
    case .sent, nil: break
    }
  }

  private func fail(_ ticket: Ticket, _ error: any Error) {
    if !(error is CancellationError) { subscribing[ticket] = nil }
    switch waiters.removeValue(forKey: ticket)?.continuation {
    case .answer(let continuation): continuation.resume(throwing: error)
    case .sent(let continuation): continuation.resume(throwing: error)
    case .observer, nil: break
    }
  }
}

extension BrokerLink: ConnectionDelegate {
  nonisolated func connectionOpened(_ connection: Connection) { assumeIsolated { $0.opened(connection) } }

  nonisolated func received(_ delivery: Conversation.Delivery, from connection: Connection) {
    assumeIsolated { $0.take(delivery, from: connection) }
  }

  nonisolated func refused(_ error: JSONSlice, by connection: Connection) {
    assumeIsolated { $0.run($0.machine.closed(.refused(RestorationError(answer: error)))) }
  }

  nonisolated func callsAbandoned(_ callIDs: [Int], by connection: Connection) {
    assumeIsolated { $0.run($0.machine.inputEnded()) }
  }

  nonisolated func connectionClosed(_ connection: Connection, reason: CloseReason) {
    assumeIsolated { $0.ended(reason) }
  }

  private func opened(_ connection: Connection) {
    self.connection = connection
    wasOpened = true
  }

  private func take(_ delivery: Conversation.Delivery, from connection: Connection) {
    switch delivery {
    case .response(let callID, let outcome):
      run(machine.answered(callID), answer: outcome)
      tellObserver()
    case .notification(let notification) where notification.method == EventNotification.method:
      guard notification.fault == nil, case .named(let parameters) = notification.parameters,
        let number = parameters["subscription"]?.integer(), let event = BrokerEvent(parameters)
      else { break }
      take(event, of: number)
    case .notification(let notification):
      if tellProgress(notification) { break }
      if let known = BrokerNotification(notification) { take(known) }
    case .request(let call, let request):
      take(call, request)
    case .brokenAnswer:
      // A peer that does not write JSON is not a broker.
      run(machine.closed(.protocolFault))
      connection.close(afterOutput: false)
    case .closeAfterOutput:
      break
    }
  }

  private func ended(_ reason: CloseReason) {
    connection = nil
    let cause: Ending =
      switch reason {
      case .closed: .closed
      case .protocolFault: .protocolFault
      case .peerClosed, .partialFrame, .outputOverflow: .lost
      }
    run(machine.closed(cause))
    // If we closed the connection, that reason stays.
    let ending = machine.ending ?? cause
    self.ending = ending
    for number in subscriptions.keys {
      for waiter in subscriptions[number]?.waiters ?? [] {
        if ending == .closed {
          waiter.continuation.resume(returning: nil)
        } else {
          waiter.continuation.resume(throwing: BrokerConnectionError(ending, path: socketPath))
        }
      }
      subscriptions[number]?.waiters = []
    }
    for waiter in notificationWaiters { waiter.continuation.resume(returning: nil) }
    notificationWaiters = []
    for continuation in closeWaiters { continuation.resume() }
    closeWaiters = []
    observer?.ended(self)
  }
}
