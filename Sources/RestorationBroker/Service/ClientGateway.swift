// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import RestorationTransport
internal import RestorationWire

/// The clients' connections, and the calls in progress on them.
/// An object, because a connection may report an event during a call to it.
final class ClientGateway {
  /// A call of the broker to a client, as the core names it.
  struct Call: Hashable {
    let application: ApplicationID
    let number: CallNumber
  }

  private let handsConnectionsOver: Bool
  private let log: BrokerLog
  private var connections: [ClientID: Connection] = [:]
  /// Unfinished calls, by the connection's id of the call.
  private var calls: [ClientID: [Int: Call]] = [:]
  /// Clients that must not learn of anything outside of their application.
  private var confined: [ClientID: String] = [:]
  private var sandboxes: [String: Int] = [:]
  private var pauses = InputPauses()
  private(set) var outlet = EventOutlet()
  /// Clients with a call that waits no longer, until the effects of its release are carried out.
  private var released: [ClientID] = []

  init(handsConnectionsOver: Bool, log: BrokerLog) {
    (self.handsConnectionsOver, self.log) = (handsConnectionsOver, log)
  }

  /// Calls answered with an error since the start.
  private(set) var errors: Int64 = 0

  var count: Int { connections.count }

  var holdings: Holdings {
    [
      "connections": connections.count, "calls over connections": calls.count, "confined clients": confined.count,
      "paused clients": pauses.count, "losses": outlet.untold, "released clients": released.count,
    ]
  }

  func opened(_ connection: Connection) { connections[connection.id.value] = connection }

  func closed(_ connection: Connection, _ reason: CloseReason) {
    let client = connection.id.value
    connections[client] = nil
    pauses.forget(client)
    outlet.forget(client)
    calls[client] = nil
    if let application = confined.removeValue(forKey: client), let count = sandboxes[application] {
      sandboxes[application] = count > 1 ? count - 1 : nil
    }
    guard reason == .outputOverflow else { return }
    log.note(.warning, "a client did not read its notifications and was cut", of: connection.peer, .clientCut)
  }

  func confine(_ client: ClientID, to application: String) {
    confined[client] = application
    sandboxes[application, default: 0] += 1
  }

  private func isConfined(_ client: ClientID) -> Bool { !confined.isEmpty && confined[client] != nil }

  /// Whether the application, a name without instance, has clients in a sandbox.
  func isConfined(_ application: @autoclosure () -> String) -> Bool {
    !sandboxes.isEmpty && sandboxes[application()] != nil
  }

  func close(_ client: ClientID) { connections[client]?.close(afterOutput: true) }

  func peer(of client: ClientID) -> PeerCredentials? { connections[client]?.peer }

  // MARK: Answers and notifications

  func respond(_ answer: Answer, to call: Conversation.Call, of client: ClientID) {
    let isConfined = isConfined(client)
    switch answer {
    case .result(let result):
      if isConfined, let result = result as? any WireValue {
        respond(result.concealed, to: call, of: client)
      } else {
        respond(result, to: call, of: client)
      }
    case .error(let error):
      errors += 1
      connections[client]?.respond(to: call, with: .error(isConfined ? error.concealed : error))
    }
  }

  func respond(_ result: some JSONWritable, to call: Conversation.Call, of client: ClientID) {
    connections[client]?.respond(to: call) { result.writeJSON(to: &$0) }
  }

  func respond(_ metrics: BrokerMetrics, on page: MetricsPage, to call: Conversation.Call, of client: ClientID) {
    let text = metrics.text(byApplication: page == .ofApplications)
    connections[client]?.respond(to: call, mediaType: MetricsPage.mediaType, page: text)
  }

  func notify(_ client: ClientID, method: String, parameters: JSONText) {
    connections[client]?.notify(method: method, parameters: parameters)
  }

  // MARK: The broker's calls
  //
  // The core hears of each exactly once, unless it ended the call itself or its client has disconnected.

  /// False if no answer can come.
  func call(_ client: ClientID, _ call: Call, method: String, parameters: JSONText) -> Bool {
    guard let callID = connections[client]?.call(method: method, parameters: parameters) else { return false }
    calls[client, default: [:]][callID] = call
    return true
  }

  func endCall(_ client: ClientID, _ call: Call) {
    guard let callID = calls[client]?.first(where: { $0.value == call })?.key else { return }
    calls[client]?[callID] = nil
    connections[client]?.forget(callID)
  }

  /// The call that this answer ends; `nil` if it has ended already.
  func ended(_ callID: Int, of client: ClientID) -> Call? { calls[client]?.removeValue(forKey: callID) }

  // MARK: Requests under way

  /// The request that the client wants to cancel; `nil` if it has been answered.
  func cancelled(_ parameters: Parameters, by client: ClientID) -> Caller? {
    guard let id = CancelRequest(parameters)?.id, let call = connections[client]?.pendingCall(withID: id)
    else { return nil }
    return Caller(client: client, call: call)
  }

  func mayPark(_ client: ClientID) -> Bool { connections[client]?.mayPark ?? true }

  func park(_ caller: Caller) {
    guard let call = caller.call else { return hold(caller.client) }
    guard let connection = connections[caller.client] else { return }
    do throws(ErrorObject) {
      try connection.park(call)
    } catch {
      // Too many calls wait: this one stays in the count of calls in flight, which pauses reading.
      log.note(.notice, "a client has too many waiting calls", of: connection.peer)
    }
  }

  func unpark(_ caller: Caller) {
    if let call = caller.call { connections[caller.client]?.unpark(call) } else { release(caller.client) }
  }

  // MARK: Back-pressure

  func pauseWriter(_ client: ClientID) { if pauses.pauseWriter(client) { connections[client]?.setInputPaused(true) } }

  var hasPausedWriters: Bool { pauses.hasWriters }

  func resumeWriters() { for client in pauses.resumeWriters() { connections[client]?.setInputPaused(false) } }

  /// Shorter answers do not count: those to all calls in flight equal about one long answer.
  private static let shortAnswer = 4_096

  /// Announces an answer of about this many bytes.
  func expect(_ bytes: Int, for caller: Caller) {
    guard bytes > Self.shortAnswer, let call = caller.call else { return }
    connections[caller.client]?.expect(bytes, from: call)
  }

  /// Whether the output has room for the answer to this message.
  func admit(_ caller: Caller) -> Connection.Admission {
    guard let call = caller.call, let connection = connections[caller.client] else { return .granted }
    return connection.admit(call)
  }

  func setWaiting(_ client: ClientID, _ isWaiting: Bool) {
    let isPaused = pauses.setWaiting(client, isWaiting)
    connections[client]?.setInputPaused(isPaused)
  }

  func stopReading() {
    pauses.stop()
    for connection in connections.values { connection.setInputPaused(true) }
  }

  // MARK: Handing over
  //
  // A connection can continue in another process only if all input of its client is handled and durable.

  func setContext(_ context: @autoclosure () -> [UInt8], of client: ClientID) {
    if handsConnectionsOver { connections[client]?.setContext(context()) }
  }

  func hold(_ client: ClientID) { if handsConnectionsOver { connections[client]?.countUnsettled(1) } }

  func release(_ client: ClientID) { if handsConnectionsOver { released.append(client) } }

  /// Call when a notification has effects; `unsettled` is the number of archives in which they are not durable yet.
  func notified(by client: ClientID, _ unsettled: @autoclosure () -> Int) {
    guard handsConnectionsOver else { return }
    let unsettled = unsettled()
    if unsettled > 0 { connections[client]?.countUnsettled(unsettled) }
  }

  /// Call when all effects are carried out: the effects of released calls are known now.
  func settleReleased(_ unsettled: (ClientID) -> Int) {
    guard !released.isEmpty else { return }
    for client in released { connections[client]?.countUnsettled(unsettled(client) - 1) }
    released.removeAll(keepingCapacity: true)
  }

  func settled(_ clients: [ClientID]) { for client in clients { connections[client]?.countUnsettled(-1) } }

  // MARK: Events

  /// Sends an event to the subscriptions that still exist. If the client does not read, the event counts as lost.
  func send(
    _ announcement: Announcement,
    ifSubscribed: (Subscriber) -> Bool,
    reads: (JSONText, ClientID) -> Bool
  ) {
    let application = announcement.application
    lazy var whole = EventNotification(application: application, event: announcement.event)
    lazy var concealed = EventNotification(application: application, event: announcement.event.concealed)
    for subscriber in announcement.recipients where ifSubscribed(subscriber) {
      let client = subscriber.client
      guard let connection = connections[client] else { continue }
      var isTooLong = false
      outlet.send(to: subscriber) {
        let parameters = (isConfined(client) ? concealed : whole).parameters(for: subscriber.number)
        isTooLong = !reads(parameters, client)
        return !isTooLong && connection.offer(method: EventNotification.method, parameters: parameters)
      }
      // Reports the loss at once, because a small message fits.
      if isTooLong { tellLosses(to: client) { reads($0, client) } }
    }
  }

  /// Call when the client can read again.
  func tellLosses(to client: ClientID, reads: (JSONText) -> Bool) {
    guard let connection = connections[client] else { return }
    outlet.tellLosses(to: client) { number, lost in
      let parameters = Self.loss(of: lost, to: number)
      return reads(parameters) && connection.offer(method: EventNotification.method, parameters: parameters)
    }
  }

  /// Reports the last loss before the answer to `unsubscribe`, even if other output waits: it is small and single.
  func endSubscription(_ subscriber: Subscriber) {
    if let lost = outlet.take(subscriber) { tellLoss(of: lost, to: subscriber) }
  }

  /// - Parameter lost: 0 if unknown.
  func tellLoss(of lost: Int64, to subscriber: Subscriber) {
    let parameters = Self.loss(of: lost, to: subscriber.number)
    notify(subscriber.client, method: EventNotification.method, parameters: parameters)
  }

  /// Reports all losses now, even if other output waits, because the next process does not know of them.
  func tellAllLosses() {
    for client in connections.keys {
      outlet.tellLosses(to: client) { number, lost in
        tellLoss(of: lost, to: Subscriber(client: client, number: number))
        return true
      }
    }
  }

  private static func loss(of lost: Int64, to number: Int64) -> JSONText {
    EventNotification(application: nil, event: EventsLost(lost: lost)).parameters(for: number)
  }
}
