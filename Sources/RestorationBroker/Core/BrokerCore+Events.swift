// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Subscriptions, and events that do not belong to an application.
extension BrokerCore {
  package var subscriptionCount: Int { context.subscriptions.count }

  package func isSubscribed(_ subscriber: Subscriber) -> Bool { context.subscriptions.contains(subscriber) }

  /// Whether the client reads an event of that length. Without a session, the default limit holds.
  package func reads(_ parameters: JSONText, _ client: ClientID) -> Bool {
    let session = clients[client].flatMap { boundSession($0) }?.1
    return Session.fits(EventNotification.method, parameters, in: session?.pushBytesMax ?? Session.pushBytesDefault)
  }

  /// Does not open the archive; the application need not exist yet.
  func subscribe(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    // `nil` means all applications.
    let application = try namedApplication(message, client)
    let request = try Subscribe(message.parameters)
    guard client.canBeCalled else {
      throw .restoration(
        .forbidden,
        "events cannot be sent over this connection",
        hint: "Subscribe over a connection with a JSON stream; nextRequest fetches what sessions serve."
      )
    }
    try context.subscriptions.requireRoom(for: client, among: clients.values, context.limits)
    // Without an answer the client would not learn the number.
    guard message.caller.call != nil else { return }
    // A long turn may have announced some of its events already, so it is finished before the subscription begins.
    for other in applications.values where application == nil || other.name == application { _ = other.settled }
    client.lastSubscription += 1
    let subscriber = Subscriber(client: client.id, number: client.lastSubscription)
    let names = request.events.map { Set($0) }
    context.subscriptions.add(subscriber, to: names, of: application, within: client.confinement)
    context.emit(.clientChanged(client.id))
    let reply = Subscribe.Reply().with { $0.subscription = subscriber.number }
    context.emit(.respond(message.caller, .result(reply)))
  }

  func unsubscribe(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    let subscriber = Subscriber(client: client.id, number: try Unsubscribe(message.parameters).subscription)
    guard context.subscriptions.remove(subscriber) else {
      throw .invalidParameter(
        Unsubscribe.pointer(to: "subscription", in: message.parameters),
        "this connection has no subscription \(subscriber.number)",
        hint: "Give the number that subscribe gave on this connection; it ends with the subscription."
      )
    }
    context.emit(.clientChanged(client.id))
    context.emit(.endSubscription(subscriber))
    context.emit(.respond(message.caller, .result(EmptyResult())))
  }

  // MARK: Notifications that fail

  /// Handles an invalid notification.
  package mutating func refused(_ message: IncomingMessage, _ error: ErrorObject, at now: Moment) {
    context.now = now
    guard let client = clients[message.caller.client] else { return }
    announceFailure(of: message, client, error)
  }

  /// Tells subscribers that an encode without an answer has failed.
  func announceFailure(of message: IncomingMessage, _ client: Client, _ error: ErrorObject) {
    guard context.hasSubscribers, message.caller.call == nil, message.method == EncodeRestorableState.method,
      let name = applicationName(of: message, client)
    else { return }
    let id = applicationIDs[name]
    context.announce(id ?? 0, name, .settled) {
      let application = id.flatMap { applications[$0] }
      let reference = EncodeRestorableState.object(of: message.parameters)
      let node = reference.flatMap { application?.node($0) }
      var path = node.flatMap { application?.tree.path(of: $0) }
      // The path of the message may be invalid.
      if path == nil, case .path(let sent) = reference, sent.bytes <= context.limits.pathBytesMax { path = sent }
      return EncodeFailed().with {
        $0.object = node?.claim?.handle
        $0.path = path
        $0.session = Application.identity(of: session(of: message, client, application))
        $0.error = EncodeFailed.Failure(error)
      }
    }
  }

  /// `nil` if the application of the message is unknown, or the client may not use it.
  private func applicationName(of message: IncomingMessage, _ client: Client) -> ApplicationName? {
    if let (application, _) = boundSession(client) { return application.name }
    return (try? CallScope(message.parameters))?.application.flatMap { try? client.application(named: $0) }
  }

  private func session(of message: IncomingMessage, _ client: Client, _ application: Application?) -> Session? {
    if let (_, session) = boundSession(client) { return session }
    guard let application else { return nil }
    let named = (try? CallScope(message.parameters))?.session
    return (named ?? client.detached[application.id]).flatMap { application.sessions[token: $0] }
  }

  /// The application and session of a message, for the log. The session's token is a secret, so its number is given.
  func subject(of message: IncomingMessage) -> (application: ApplicationName?, session: SessionID?) {
    guard let client = clients[message.caller.client] else { return (nil, nil) }
    let name = applicationName(of: message, client)
    let application = name.flatMap { applicationIDs[$0] }.flatMap { applications[$0] }
    return (name, session(of: message, client, application)?.id)
  }
}
