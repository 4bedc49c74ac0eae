// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Finds out what a message is about, and hands it to the application it names.
extension BrokerCore {
  mutating func process(_ message: IncomingMessage, _ client: Client) {
    counters.requests += 1
    client.canBeCalled = message.canBeCalled
    if !client.cancelled.isEmpty, client.cancelled.remove(message.caller) != nil {
      return refuseCancelled(message.caller)
    }
    do throws(ErrorObject) {
      try dispatch(message, client)
    } catch {
      counters.errors += 1
      client.chosenInstance = nil
      if message.caller.call == nil {
        // Names of methods that exist are ours; anything else is a client's text and does not get into the log.
        let method = RestorationMethods.names.contains(message.method) ? message.method : "an unknown method"
        let kind = error.data?["kind"]?.string ?? "error \(error.code)"
        context.emit(.log(.warning, "\(method) as a notification failed: \(kind)", application: nil))
        announceFailure(of: message, client, error)
      } else {
        context.emit(.respond(message.caller, .error(error)))
      }
    }
  }

  private mutating func dispatch(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    switch message.method {
    // The two that come most are looked for first.
    case EncodeRestorableState.method:
      guard let (application, session) = try scope(of: message, client) else { return }
      counters.encodes += 1
      try application.encode(EncodeRestorableState(message.parameters), by: session, for: message.caller)
    case DecodeRestorableState.method:
      guard let (application, session) = try scope(of: message, client) else { return }
      try requireKnown(application, session)
      counters.decodes += 1
      try application.decode(DecodeRestorableState(message.parameters), by: session, for: message.caller)
    default:
      try dispatchOther(message, client)
    }
  }

  private mutating func dispatchOther(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    if let (application, session) = boundSession(client) { application.heard(from: session) }
    // What is not in the table, and so not described by rpc.discover, cannot be called.
    guard RestorationMethods.names.contains(message.method) else { throw Self.noSuchMethod(message.method) }
    switch message.method {
    case Ping.method:
      context.emit(.respond(message.caller, .result(EmptyResult())))
    case Discover.method:
      context.emit(.respond(message.caller, .result(OpenRPCDocument.current)))
    case ReportLimits.method:
      context.emit(.respond(message.caller, .result(context.limits)))
    case ReportStatistics.method:
      context.emit(.reportStatistics(message.caller))
    case ListApplications.method:
      guard message.caller.call != nil else { return }
      context.emit(.list(.listApplications(message.caller)))
    case Initialize.method:
      try initialize(message, client)
    case Subscribe.method:
      try subscribe(message, client)
    case Unsubscribe.method:
      try unsubscribe(message, client)
    case NextRequest.method, AnswerRequest.method:
      try dispatchPolling(message, client)
    case RestoreApplicationState.method:
      guard let (application, session) = try scope(of: message, client) else { return }
      try requireKnown(application, session)
      try application.restore(RestoreApplicationState(message.parameters), by: session, for: message.caller)
    case DescribeApplication.method, ListGenerations.method, ReadArchive.method, ExplainRestoration.method,
      DiscardApplicationState.method, SaveApplicationState.method, ListQuarantine.method, ReleaseQuarantine.method:
      guard let (application, session) = try scope(of: message, client) else { return }
      try requireKnown(application, session)
      try dispatchOpen(message, client, application, session)
    case RegisterObjectForStateRestoration.method, UnregisterObject.method, SetRestorationParent.method,
      SetRestorationIdentifier.method, SetChildren.method, RegisterRestorationClass.method,
      RegisterDataSource.method, ExtendStateRestoration.method, CompleteStateRestoration.method, Goodbye.method,
      InvalidateRestorableState.method:
      guard let (application, session) = try scope(of: message, client) else { return }
      try dispatchOwned(message, client, application, session)
    case VerifyArchive.method, BackupArchive.method, ExportArchive.method, ImportArchive.method,
      DiffGenerations.method, RollBack.method:
      try dispatchArchive(message, client)
    default:
      throw Self.noSuchMethod(message.method)
    }
  }

  static func noSuchMethod(_ name: String) -> ErrorObject {
    .methodNotFound(name, hint: "Call rpc.discover for the methods that exist; names are case sensitive.")
  }

  /// Other calls that need no session.
  private mutating func dispatchOpen(
    _ message: IncomingMessage,
    _ client: Client,
    _ application: Application,
    _ session: Session?
  ) throws(ErrorObject) {
    let (caller, parameters) = (message.caller, message.parameters)
    // Reports are work that nobody would see.
    let changes = [DiscardApplicationState.method, SaveApplicationState.method, ReleaseQuarantine.method]
    guard caller.call != nil || changes.contains(message.method) else { return }
    switch message.method {
    case SaveApplicationState.method:
      try application.save(SaveApplicationState(parameters), by: session, for: caller)
    case DescribeApplication.method:
      try application.describe(DescribeApplication(parameters), for: caller)
    case ListGenerations.method:
      try application.listGenerations(for: caller)
    case ReadArchive.method:
      let max = session?.facts.messageBytesMax
      try application.readArchive(ReadArchive(parameters), messageBytesMax: max, for: caller)
    case ExplainRestoration.method:
      try application.explain(ExplainRestoration(parameters), for: caller)
    case ListQuarantine.method:
      let max = session?.facts.messageBytesMax
      try application.listQuarantine(ListQuarantine(parameters), messageBytesMax: max, for: caller)
    case ReleaseQuarantine.method:
      try application.releaseQuarantine(ReleaseQuarantine(parameters), for: caller)
    case DiscardApplicationState.method:
      try application.discard(DiscardApplicationState(parameters), for: caller)
    default:
      throw Self.noSuchMethod(message.method)
    }
  }

  /// Calls of a session; a registration makes a detached one where there is none.
  private mutating func dispatchOwned(
    _ message: IncomingMessage,
    _ client: Client,
    _ application: Application,
    _ session: Session?
  ) throws(ErrorObject) {
    let (caller, parameters) = (message.caller, message.parameters)
    if let session, session.isDiscarded, message.method != Goodbye.method {
      context.emit(.respond(caller, .result(EncodeRestorableState.Reply.discarded)))
      return
    }
    switch message.method {
    case RegisterObjectForStateRestoration.method:
      counters.registrations += 1
      let request = try RegisterObjectForStateRestoration(parameters)
      let owner: Session
      if let session { owner = session } else { owner = try detachedSession(client, application) }
      let contested = try application.register(request, by: owner, for: caller)
      if !contested.isEmpty { probe(contested, of: application, for: message, client) }
    case UnregisterObject.method:
      try application.unregister(UnregisterObject(parameters), by: session, for: caller)
    case SetRestorationParent.method:
      try application.setParent(SetRestorationParent(parameters), by: session, for: caller)
    case SetRestorationIdentifier.method:
      try application.setIdentifier(SetRestorationIdentifier(parameters), by: session, for: caller)
    case SetChildren.method:
      try application.setChildren(SetChildren(parameters), by: session, for: caller)
    case InvalidateRestorableState.method:
      try application.invalidate(InvalidateRestorableState(parameters), by: session, for: caller)
    case RegisterRestorationClass.method:
      let request = try RegisterRestorationClass(parameters)
      try application.registerRestorationClass(request, by: try Self.require(session), for: caller)
    case RegisterDataSource.method:
      let request = try RegisterDataSource(parameters)
      try application.registerDataSource(request, by: try Self.require(session), for: caller)
    case ExtendStateRestoration.method:
      let pending = try application.extendRestoration(of: try Self.require(session))
      application.respond(caller, ExtendStateRestoration.Reply(pending: Int64(pending)))
    case CompleteStateRestoration.method:
      let pending = application.completeRestoration(of: try Self.require(session))
      application.respond(caller, CompleteStateRestoration.Reply(pending: Int64(pending)))
    case Goodbye.method:
      try sayGoodbye(Goodbye(parameters), client, application, Self.require(session), for: caller)
    default:
      throw Self.noSuchMethod(message.method)
    }
  }

  private mutating func sayGoodbye(
    _ request: Goodbye,
    _ client: Client,
    _ application: Application,
    _ session: Session,
    for caller: Caller
  ) {
    application.end(session, SessionEnding(request.reason))
    if let bound = client.bound, bound.application == application.id, bound.session == session.id {
      client.bound = nil
    }
    if client.detached[application.id] == session.token { client.detached[application.id] = nil }
    application.respond(caller, EmptyResult())
    closeIfUseless(application)
  }

  /// Reading does not make an application: one that nothing was ever written to is unknown.
  func requireKnown(_ application: Application, _ session: Session?) throws(ErrorObject) {
    guard session == nil, application.sequence == 0, case .open = application.phase else { return }
    throw Application.unknownApplication("there is no application \(application.name)")
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

  /// The application and session of a call; nil where it waits for the archive to open.
  mutating func scope(
    of message: IncomingMessage,
    _ client: Client
  ) throws(ErrorObject) -> (Application, Session?)? {
    let scope = try CallScope(message.parameters, after: client.lastApplication?.text ?? "")
    if let (application, session) = boundSession(client) {
      if let named = scope.application, !application.name.isSpelled(named) {
        throw Self.otherApplication(than: application)
      }
      if let token = scope.session, token != session.token {
        return (application, try detached(token, client, application))
      }
      if case .opening = application.phase {
        return try self.application(named: application.name, for: client, message).map { ($0, session) }
      }
      application.heard(from: session)
      return (application, session)
    }
    guard let text = scope.application else { throw Self.noApplication() }
    guard let application = try application(text, for: client, message) else { return nil }
    return (application, try detached(scope.session, client, application))
  }

  /// The application a call is about, which need not have an archive: that of the connection's session, else the one it
  /// names; nil where it names none.
  func namedApplication(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) -> ApplicationName? {
    let named = try CallScope(message.parameters).application
    guard let (application, _) = boundSession(client) else { return try named.map(Self.name) }
    if let named, !application.name.isSpelled(named) { throw Self.otherApplication(than: application) }
    return application.name
  }

  private static func otherApplication(than application: Application) -> ErrorObject {
    .invalidParameter(
      "/application",
      "this connection was initialized for \(application.name)",
      hint: "Leave application out, or use another connection."
    )
  }

  static func noApplication() -> ErrorObject {
    .restoration(
      .notInitialized,
      "the call names no application",
      hint: "Call initialize first, or give application as a member of params."
    )
  }

  static func name(_ text: String) throws(ErrorObject) -> ApplicationName {
    guard let name = ApplicationName(text) else {
      throw .invalidParameter(
        "/application",
        "this is no application name",
        hint: "Use letters, digits, '.', '_' and '-', at most 128, and @instance behind it if need be."
      )
    }
    return name
  }

  /// The application a call names, open; nil where the client must wait for it.
  private mutating func application(
    _ text: String,
    for client: Client,
    _ message: IncomingMessage
  ) throws(ErrorObject) -> Application? {
    // One that was named before and is still there needs neither look-up by name nor counting.
    if let last = client.lastApplication, let application = applications[last.id],
      application.name.isSpelled(text), case .open = application.phase
    {
      application.lastUsed = context.now.monotonic
      return application
    }
    guard let application = try application(named: Self.name(text), for: client, message) else { return nil }
    try count(client, application)
    client.lastApplication = (application.name.description, application.id)
    return application
  }

  /// Counts the connection against the application's limit when it first names it.
  func count(_ client: Client, _ application: Application) throws(ErrorObject) {
    guard !client.applications.contains(application.id) else { return }
    let max = context.limits.connectionsPerApplicationMax
    guard application.clients.count < max else {
      throw .limitExceeded("connectionsPerApplicationMax", max: max, value: application.clients.count + 1)
    }
    client.applications.insert(application.id)
    application.clients.insert(client.id)
  }

  // MARK: Detached sessions

  /// The detached session of a call: the one its token names, or the one the connection's calls made.
  private func detached(
    _ token: String?,
    _ client: Client,
    _ application: Application
  ) throws(ErrorObject) -> Session? {
    if token == nil, let own = client.detached[application.id], application.session(token: own) == nil {
      client.detached[application.id] = nil
    }
    guard let token = token ?? client.detached[application.id] else { return nil }
    guard let session = application.session(token: token), session.facts.process?.uid == client.process?.uid else {
      throw .invalidParameter(
        "/session",
        "this session has ended, or never was one of \(application.name)",
        hint: "Leave session out to begin a new one."
      )
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
    try application.requireWritable()
    var facts = SessionFacts()
    facts.isDetached = true
    facts.process = client.process
    try application.requireRoomForSession()
    let session = application.beginSession(facts, client: client.canBeCalled ? client.id : nil)
    session.isUnannounced = true
    remember(session, of: application, client)
    return session
  }

  /// Calls on this connection are of this detached session from now on, unless they give another token.
  func remember(_ session: Session, of application: Application, _ client: Client) {
    client.detached[application.id] = session.token
    context.emit(.setTimer(.detached(application.id, session.id), milliseconds: Application.detachedMilliseconds))
    guard !client.canBeCalled else { return }
    // Such connections come and go with each call.
    session.usedElsewhere = true
    session.isPolling = true
  }
}
