// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Finds the application of a message, and passes the message to it.
extension BrokerCore {
  mutating func process(_ message: IncomingMessage, _ client: Client) {
    client.canBeCalled = message.canBeCalled
    if !client.cancelled.isEmpty, client.cancelled.remove(message.caller) != nil {
      client.chosenInstance = nil
      if message.method == ImportArchive.method { dropUpload(of: client) }
      return refuseCancelled(message.caller)
    }
    do throws(ErrorObject) {
      try dispatch(message, client)
    } catch {
      client.chosenInstance = nil
      closeUnwritten(of: client)
      if message.caller.call == nil {
        // Other names are text of a client and not logged.
        let method = MethodTable.rows[message.method] != nil ? message.method : "an unknown method"
        let text = "\(method) as a notification failed: \(error.kind)"
        context.emit(.log(.warning, text, of: subject(of: message).application))
        announceFailure(of: message, client, error)
      } else {
        context.emit(.respond(message.caller, .error(error)))
      }
    }
  }

  private mutating func dispatch(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    try row(of: message, client).perform(&self, message, client)
  }

  private func row(of message: IncomingMessage, _ client: Client) throws(ErrorObject) -> MethodTable.Row {
    // Most clients call the same method repeatedly.
    if let last = client.lastRow, last.name == message.method { return last }
    guard let row = MethodTable.rows[message.method] else { throw Self.noSuchMethod(message.method) }
    client.lastRow = row
    return row
  }

  private static func noSuchMethod(_ name: String) -> ErrorObject {
    .methodNotFound(name, hint: "Call rpc.discover for the methods that exist; names are case sensitive.")
  }

  /// If the call has no session, the registration begins a detached one.
  mutating func register(_ call: MethodTable.Call<RegisterObjectForStateRestoration>) throws(ErrorObject) {
    counters.registrations += 1
    try SessionQuota(applications).requireTextRoom(for: call.client.process, in: call.application)
    // The check comes first: a refused call begins no session and creates no archive.
    if call.session == nil { try call.application.check(call.request) }
    let owner = if let session = call.session { session } else { try detachedSession(call.client, call.application) }
    let waiting = call.application.parentWaits.count
    let contested = try call.application.register(call.request, by: owner, for: call.caller)
    guard contested.isEmpty else { return call.application.probe(contested, for: call.message, call.client) }
    if call.application.parentWaits.count == waiting { call.application.note(.appeared) }
  }

  mutating func sayGoodbye(_ call: MethodTable.Call<Goodbye>) throws(ErrorObject) {
    let (client, application, session) = (call.client, call.application, try Self.require(call.session))
    application.end(session, SessionEnding(call.request.reason))
    if let bound = client.bound, bound.application == application.id, bound.session == session.id { client.bound = nil }
    if client.detached[application.id] == session.token { client.detached[application.id] = nil }
    application.turn.answer(call.caller, EmptyResult())
    closeIfUseless(application)
  }

  /// Throws if the application has no write: reading does not create it.
  func requireKnown(_ application: Application, _ session: Session?) throws(ErrorObject) {
    guard session == nil, application.sequence == 0, case .open = application.phase else { return }
    throw .unknownApplication("unknown application \(application.name)")
  }

  static func require(_ session: Session?) throws(ErrorObject) -> Session {
    guard let session else {
      throw .restoration(
        .notInitialized,
        "this call needs a session",
        hint: "Call initialize first, or give the token of a detached session as session."
      )
    }
    return session
  }

  // MARK: Scope

  mutating func scope(of message: IncomingMessage, _ client: Client) throws(ErrorObject) -> (Application, Session?)? {
    let scope = try CallScope(message.parameters, after: client.lastApplication?.text ?? "")
    if let (application, session) = boundSession(client) {
      application.heard(from: session)
      if let named = scope.application { try require(named, of: application, client) }
      if application.isUnsettled {
        return try self.application(named: application.name, for: client, message).map { ($0, session) }
      }
      if let token = scope.session, token != session.token {
        return (application, try detached(token, client, application))
      }
      return (application, session)
    }
    guard let text = scope.application else {
      if let loss = client.loss, try context.isOver(message, client, loss) { return nil }
      throw Self.noApplication()
    }
    guard let application = try application(text, for: client, message) else { return nil }
    return (application, try detached(scope.session, client, application))
  }

  /// The application of a call, without opening its archive: that of the connection's session, else the named one, else
  /// `nil`.
  func namedApplication(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) -> ApplicationName? {
    let named = try CallScope(message.parameters).application
    guard let (application, _) = boundSession(client) else {
      guard let named else { return nil }
      return try client.application(named: named)
    }
    if let named { try require(named, of: application, client) }
    return application.name
  }

  private func require(_ named: String, of application: Application, _ client: Client) throws(ErrorObject) {
    guard !application.name.isSpelled(named) else { return }
    _ = try client.application(named: named)
    throw .invalidParameter(
      "/application",
      "this connection was initialized for \(application.name)",
      hint: "Omit application, or use another connection."
    )
  }

  static func noApplication() -> ErrorObject {
    .restoration(
      .notInitialized,
      "the call names no application",
      hint: "Call initialize first, or give application as a member of params."
    )
  }

  private mutating func application(
    _ text: String,
    for client: Client,
    _ message: IncomingMessage
  ) throws(ErrorObject) -> Application? {
    // A repeated name needs neither a look-up nor counting.
    if let last = client.lastApplication, let application = applications[last.id],
      application.name.isSpelled(text), !application.isUnsettled
    {
      application.sessions.use(in: application.turn)
      return application
    }
    let name = try client.application(named: text)
    if let loss = client.loss, loss.application == name, try context.isOver(message, client, loss) { return nil }
    guard let application = try application(named: name, for: client, message) else { return nil }
    try count(client, application)
    // Each call about a copy that was set aside is checked.
    if !name.isSetAside { client.lastApplication = (application.name.description, application.id) }
    return application
  }

  /// Counts a connection against the application's limit when it first names the application.
  func count(_ client: Client, _ application: Application) throws(ErrorObject) {
    guard !client.applications.contains(application.id) else { return }
    try application.sessions.connect(client.id, in: application.turn)
    client.applications.insert(application.id)
  }

  // MARK: Detached sessions

  /// The detached session of a call, by its token or else by its connection.
  private func detached(
    _ token: String?,
    _ client: Client,
    _ application: Application
  ) throws(ErrorObject) -> Session? {
    if token == nil, let own = client.detached[application.id], application.sessions[token: own] == nil {
      client.detached[application.id] = nil
    }
    guard let token = token ?? client.detached[application.id] else { return nil }
    guard let session = application.sessions[token: token], session.facts.process?.uid == client.process?.uid else {
      throw .invalidParameter(
        "/session",
        "unknown or ended session of \(application.name)",
        hint: "Omit session to begin a new one."
      )
    }
    if client.confinement != nil, !session.facts.isConfined {
      session.facts.isConfined = true
      application.write(.session(session.record))
    }
    session.lastUsed = context.now.monotonic
    if session.client != client.id, !session.usedElsewhere {
      session.usedElsewhere = true
      if let own = session.client { context.emit(.clientChanged(own)) }
    }
    if session.facts.isDetached, !client.canBeCalled { session.isPolling = true }
    return session
  }

  private func detachedSession(_ client: Client, _ application: Application) throws(ErrorObject) -> Session {
    try application.turn.requireStorable()
    var facts = SessionFacts()
    facts.isDetached = true
    facts.isConfined = client.confinement != nil
    facts.process = client.process
    try SessionQuota(applications).requireRoom(for: client.process, in: application)
    let session = application.beginSession(facts, client: client.canBeCalled ? client.id : nil)
    session.isUnannounced = true
    remember(session, of: application, client)
    return session
  }

  /// Binds later calls on this connection to the detached session, unless they give another token.
  func remember(_ session: Session, of application: Application, _ client: Client) {
    client.detached[application.id] = session.token
    context.emit(.setTimer(.detached(application.id, session.id), milliseconds: Application.detachedMilliseconds))
    guard !client.canBeCalled else { return }
    // Such connections may serve a single call.
    session.usedElsewhere = true
    session.isPolling = true
  }
}
