// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
internal import RestorationWire

extension BrokerCore {
  mutating func initialize(_ message: IncomingMessage, _ client: Client) throws(ErrorObject) {
    let request = try Initialize(message.parameters)
    guard ProtocolVersion.supported.contains(request.protocolVersion) else {
      throw .restoration(
        .unsupportedProtocolVersion,
        "unsupported protocol version \(request.protocolVersion)",
        hint: "Use one of the versions in supported.",
        details: ["supported": .array(ProtocolVersion.supported.map { .integer($0) })]
      )
    }
    try client.require(request.application)
    if let (application, session) = boundSession(client), request.session != session.token {
      if request.application.base != application.name.base {
        throw .invalidParameter(
          "/application",
          "this connection was initialized for \(application.name)",
          hint: "Use another connection, or say goodbye first."
        )
      }
      throw .invalidRequest(hint: "This connection is initialized for \(application.name) already; say goodbye first.")
    }
    guard let name = try applicationName(request, message, client) else { return }
    guard let application = try application(named: name, for: client, message) else { return }
    try count(client, application)
    let others = application.sessions.values.filter { other in
      other.facts.process != nil && !other.facts.isDetached && other.client != client.id
        && !(other.hasExited && other.token == request.session) && !application.sessions.isVerified(other)
    }
    guard others.isEmpty || application.sessions.isVerifying else {
      // A process that has just ended must not count as alive: the reason of the run depends on it (R16, R20).
      application.probe(others.map(\.id), for: message, client)
      return
    }
    let session = try session(for: request, client, application)
    (client.chosenInstance, client.loss) = (nil, nil)
    context.emit(.cancelTimer(.lost(application.id, session.id)))
    if client.canBeCalled {
      client.bound = (application.id, session.id)
      application.watch(session, for: client)
    } else {
      context.emit(.unwatch(application.id, session.id))
      remember(session, of: application, client)
    }
    application.noteUnit(of: session, seen: client.unit)
    if let affinity = request.affinity { application.noteAffinity(affinity) }
    let reply = Initialize.Reply().with {
      $0.broker = BrokerVersion().with {
        $0.name = "restorationd"
        $0.version = context.settings.version
      }
      $0.application = name
      $0.session = session.token
      $0.restoration = application.situation(for: session)
      $0.limits = context.limits
    }
    application.turn.answer(message.caller, reply)
    application.tellPaths(to: session)
    if session.facts.isDelegate { application.note(.delegateJoined) }
  }

  /// The application with its instance; `nil` if the store must list the instances first.
  private mutating func applicationName(
    _ request: Initialize,
    _ message: IncomingMessage,
    _ client: Client
  ) throws(ErrorObject) -> ApplicationName? {
    guard let instance = request.instance else { return request.application }
    if instance == Initialize.automaticInstance {
      // The choice is retained until the session exists: if the call waits for the archive, it is handled again.
      if let chosen = client.chosenInstance { return chosen }
      client.choosesInstance = true
      listInstances(of: request.application, for: message)
      return nil
    }
    return request.application.with(instance: instance) ?? request.application
  }

  private func session(
    for request: Initialize,
    _ client: Client,
    _ application: Application
  ) throws(ErrorObject) -> Session {
    let resumed = request.session.flatMap { application.sessions[token: $0] }
    if request.delegate,
      let other = application.sessions.values.first(where: { session in
        session.facts.isDelegate && session !== resumed && !session.isDiscarded && !session.hasExited
          && !(!session.isReachable && session.facts.process == client.process)
      })
    {
      throw .restoration(
        .alreadyServed,
        "\(other.words) is the delegate",
        hint: "An application has one delegate: initialize without delegate, or resume that session by its token.",
        details: ["owners": [other.ownerJSON]]
      )
    }
    var facts = SessionFacts()
    facts.role = request.process
    facts.process = client.process
    facts.isDetached = !client.canBeCalled
    facts.isConfined = client.confinement != nil
    facts.bundleVersion = request.bundleVersion
    facts.userInterfaceIdiom = request.userInterfaceIdiom
    facts.storyboard = request.storyboard
    facts.isDelegate = request.delegate
    facts.serves = Set(request.serves)
    facts.messageBytesMax = request.messageBytesMax.map { Int64($0) }
    facts.aliases = request.aliases
    guard facts.stored.utf8.count <= SessionFacts.initialBytesMax else {
      throw .invalidParameter(
        "/aliases",
        "the parameters of initialize take more than \(SessionFacts.initialBytesMax) bytes",
        hint: "They are kept as long as the session lives; give fewer aliases."
      )
    }
    guard let resumed, resumed.facts.process?.uid == client.process?.uid else {
      try SessionQuota(applications).requireRoom(for: client.process, in: application)
      return application.beginSession(facts, client: client.canBeCalled ? client.id : nil, unit: client.unit)
    }
    if let before = resumed.client, before != client.id {
      clients[before]?.bound = nil
      context.emit(.disconnect(before))
    }
    if resumed.facts.isDetached, client.canBeCalled {
      // The session is now bound to this connection, and no longer to those that used its token.
      context.emit(.cancelTimer(.detached(application.id, resumed.id)))
      for other in clients.values where other.detached[application.id] == resumed.token {
        other.detached[application.id] = nil
      }
    }
    facts.isDiscarded = resumed.isDiscarded
    facts.restorationClasses = resumed.facts.restorationClasses
    facts.dataSources = resumed.facts.dataSources
    facts.unit = resumed.facts.unit
    resumed.client = client.canBeCalled ? client.id : nil
    resumed.exit = nil
    if resumed.facts != facts {
      resumed.facts = facts
      for node in resumed.objects.values { node.claim?.origin = nil }
      application.write(.session(resumed.record))
    }
    if client.canBeCalled { application.stopPolling(resumed) } else { resumed.isPolling = true }
    application.note(.sessionReturned(resumed.id))
    return resumed
  }

  // MARK: Listings

  /// Lists the instances after a probe of their processes: an ended process must not occupy its instance.
  mutating func listInstances(
    of name: ApplicationName,
    for message: IncomingMessage,
    known: Set<ApplicationID> = []
  ) {
    for application in applications.values where application.name.base == name.base && !known.contains(application.id) {
      // The last messages of a session with an ended process are still to be read.
      guard let sessions = application.unverifiedSessions?.filter({ application.sessions[$0]?.hasExited == false }),
        !sessions.isEmpty
      else { continue }
      let call = ProbedCall.instance(message, known: known.union([application.id]))
      return application.sessions.probe(sessions, for: call, in: &application.turn)
    }
    context.emit(.list(.chooseInstance(message)))
  }

  package mutating func listingFinished(
    _ purpose: ListingPurpose,
    _ result: Result<ArchiveListing, ArchiveError>,
    at now: Moment
  ) {
    context.now = now
    switch (result, purpose) {
    case (.success(let listing), .listApplications(let caller)):
      guard let client = clients[caller.client] else { return }
      let all = ApplicationOverview.all(in: self, listing.summaries, for: client)
      let reply = ListApplications.Reply().with { ($0.applications, $0.unreachable) = (all, listing.isIncomplete) }
      context.emit(.respond(caller, .result(reply)))
    case (.success(let listing), .metrics(let caller, let page)):
      guard let client = clients[caller.client] else { return }
      context.emit(.reportMetrics(caller, page, ApplicationOverview.all(in: self, listing.summaries, for: client)))
    case (.success(let listing), .chooseInstance(let message)): chooseInstance(message, listing.summaries)
    case (.failure(let error), .listApplications(let caller)), (.failure(let error), .metrics(let caller, _)):
      context.emit(.respond(caller, .error(.storeError(error))))
    case (.failure(let error), .chooseInstance(let message)):
      context.emit(.respond(message.caller, .error(.storeError(error))))
      guard let client = clients[message.caller.client] else { return }
      client.choosesInstance = false
      drain(client)
    }
  }

  private mutating func chooseInstance(_ message: IncomingMessage, _ summaries: [ArchiveSummary]) {
    guard let client = clients[message.caller.client], let request = try? Initialize(message.parameters) else { return }
    var choice = InstanceChoice(of: request.application, affinity: request.affinity)
    for application in applications.values where !application.sessions.isEmpty { choice.exclude(application.name) }
    for name in clients.values.compactMap(\.chosenInstance) { choice.exclude(name) }
    for name in summaries.filter(\.isElsewhere).compactMap({ ApplicationName($0.application) }) { choice.exclude(name) }
    client.chosenInstance = choice.choose(among: summaries)
    client.choosesInstance = false
    process(message, client)
    drain(client)
  }
}
