// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Hands clients over to the next broker, and adopts those of the former one. Their connections outlive both.
extension BrokerCore {
  /// The text for the next broker's `adopted`; empty if it need not know anything about the client.
  package func record(of id: ClientID) -> [UInt8] {
    // While a client is being adopted, its record has not changed.
    guard let record = clients[id].map({ $0.pendingAdoption ?? ClientSnapshot(of: $0, in: self) }),
      record != ClientSnapshot()
    else { return [] }
    return Array(record.stored.utf8)
  }

  /// Adopts a client of the former broker. Its messages wait until the archives of its sessions are open.
  package mutating func adopted(
    _ id: ClientID,
    process: ClientProcess?,
    record text: [UInt8],
    afterKill: Bool,
    at now: Moment
  ) {
    // The client may have been confined, so its connection ends. It is judged anew when it connects again.
    guard var record = ClientSnapshot(record: text) else { return context.emit(.disconnect(id)) }
    connected(id, process: process, confinement: record.confinement, at: now)
    guard let client = clients[id] else { return }
    record.isAfterKill = afterKill
    client.canBeCalled = record.canBeCalled
    client.lastSubscription = record.lastSubscription
    for entry in record.subscriptions {
      let subscriber = Subscriber(client: id, number: entry.number)
      context.subscriptions.add(subscriber, to: entry.names, of: entry.application, within: client.confinement)
      // After a kill, events of durable changes may be missing.
      if afterKill { context.emit(.tellLoss(subscriber)) }
    }
    context.emit(.clientChanged(id))
    guard record.session != nil || !record.detached.isEmpty else { return }
    client.pendingAdoption = record
    adopt(client)
  }

  mutating func adopt(_ client: Client) {
    guard let record = client.pendingAdoption else { return }
    for name in record.detached + (record.session.map { [$0] } ?? []) {
      let application = reopened(name.application)
      guard case .opening = application.phase else { continue }
      counters.waits += 1
      client.waitsFor = application.id
      client.waitsSince = counters.waits
      return
    }
    client.pendingAdoption = nil
    for name in record.detached { adopt(client, toDetached: name, record) }
    if let name = record.session { guard adopt(client, to: name, record) else { return giveUp(client) } }
    context.emit(.clientChanged(client.id))
    drain(client)
  }

  private mutating func reopened(_ name: ApplicationName) -> Application {
    if let id = applicationIDs[name], let application = applications[id]?.settled { return application }
    return open(name, for: .reading)
  }

  private mutating func adopt(_ client: Client, to name: ClientSnapshot.SessionName, _ record: ClientSnapshot) -> Bool {
    guard let application = applicationIDs[name.application].flatMap({ applications[$0] }),
      let session = application.sessions[token: name.token], session.client == nil,
      session.facts.process?.uid == client.process?.uid, (try? count(client, application)) != nil
    else { return false }
    context.emit(.cancelTimer(.lost(application.id, session.id)))
    session.client = client.id
    session.isPolling = record.polls
    client.bound = (application.id, session.id)
    application.watch(session, for: client)
    application.note(.sessionReturned(session.id))
    if record.isAfterKill { application.invalidateAll(of: session) }
    return true
  }

  private mutating func adopt(_ client: Client, toDetached name: ClientSnapshot.SessionName, _ record: ClientSnapshot) {
    guard let application = applicationIDs[name.application].flatMap({ applications[$0] }),
      let session = application.sessions[token: name.token], (try? count(client, application)) != nil
    else { return }
    if name.isOwn {
      session.client = client.id
      session.usedElsewhere = false
    }
    client.detached[application.id] = name.token
  }

  /// The client's session no longer exists. Only a new connection makes that clear to it.
  mutating func giveUp(_ client: Client) {
    client.pendingAdoption = nil
    client.queue = []
    context.emit(.disconnect(client.id))
    if client.hasLeft { leave(client) }
  }
}

/// The record of a client for the next broker, besides its sessions in the archive.
struct ClientSnapshot: StoredFacts, Equatable {
  struct SessionName: WireObject, Equatable {
    var application = ApplicationName.blank
    var token = ""
    /// No other client knows this detached session: it ends with the connection.
    var isOwn = false

    init() {}

    init(application: ApplicationName, token: String, isOwn: Bool = false) {
      (self.application, self.token, self.isOwn) = (application, token, isOwn)
    }

    mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("application", &application, "")
      try members.required("token", &token, "")
      try members.stored("own", &isOwn)
    }
  }

  var session: SessionName?
  var polls = false
  /// Detached sessions, one for each application.
  var detached: [SessionName] = []
  var subscriptions: [Subscriptions.Entry] = []
  var lastSubscription: Int64 = 0
  var canBeCalled = true
  var confinement: String?
  /// Whether the former broker was killed. Not part of the text.
  var isAfterKill = false

  init() {}

  init(of client: Client, in core: BrokerCore) {
    if let (application, bound) = core.boundSession(client) {
      session = SessionName(application: application.name, token: bound.token)
      polls = bound.isPolling
    }
    for (id, token) in client.detached.sorted(by: { $0.key < $1.key }) {
      guard let application = core.applications[id], let own = application.sessions[token: token] else { continue }
      let isOwn = own.client == client.id && !own.usedElsewhere
      detached.append(SessionName(application: application.name, token: token, isOwn: isOwn))
    }
    subscriptions = core.context.subscriptions.entries(of: client.id)
    lastSubscription = client.lastSubscription
    canBeCalled = client.canBeCalled
    confinement = client.confinement
  }

  /// Returns `nil` if the text leaves in doubt what the client is confined to. Other invalid members keep their
  /// defaults.
  init?(record text: [UInt8]) {
    guard !text.isEmpty else { return }
    guard let slice = Self.scan(text), let record = Self(slice),
      (slice["confinement"] == nil) == (record.confinement == nil)
    else { return nil }
    self = record
  }

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("confinement", &confinement)
    try members.stored("canBeCalled", &canBeCalled)
    try members.stored("session", &session)
    try members.stored("polls", &polls, unless: false)
    try members.stored("detached", &detached, unless: [])
    try members.stored("lastSubscription", someCount: &lastSubscription)
    try members.stored("subscriptions", &subscriptions, unless: [])
  }
}
