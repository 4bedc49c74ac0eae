// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Drives a `BrokerCore` as the service does, but step by step: archives in memory, a clock that the test moves,
/// processes that die on command.
///
/// Every event ends when nothing is left to do at this moment; commits, openings and listings can be held back.
final class CoreDriver {
  let limits: Limits
  private(set) var core: BrokerCore
  private(set) var now = Moment(monotonic: 1_000, wall: 1_700_000_000_000)
  private(set) var archives: [String: NaiveArchive] = [:]
  /// Answers to `open` instead of the archive, by application.
  var openingFailures: [String: ArchiveError] = [:]
  /// The archives whose changes are not made durable until `commit()`.
  var holdsCommits = false
  /// Archives are not opened until `openHeld()`.
  var holdsOpenings = false
  var holdsListings = false
  /// Ends of processes are not noticed until `probeHeld()`.
  var holdsProbes = false
  /// Whether receipts say how many bytes are reachable; costs a replay of all generations.
  var measuresArchives = true
  private(set) var peers: [ClientID: Peer] = [:]
  private(set) var logged: [String] = []
  private(set) var backups = 0
  private(set) var openCount = 0
  private(set) var startedUnits: [String] = []
  /// Texts of units' files by name, and units that do not start.
  var unitFiles: [String: [String]] = [:]
  var brokenUnits: Set<String> = []
  /// Pieces of work done so far, and what a test does before each of them.
  private(set) var jobCount = 0
  var betweenPieces: (() -> Void)?
  /// Why copies to these files fail.
  var copyFailures: [String: ArchiveCopyError] = [:]
  private(set) var closed: [String] = []
  /// What the core has written, committed or not, since the last `forgetWritten`.
  private(set) var written: [ArchiveChange] = []
  /// Effects of notifications that only make an answer, which nobody gets.
  private(set) var answersForNobody = 0
  private var epoch: Int64 = 7
  private var files: [ApplicationID: OpenFile] = [:]
  /// Calls to clients that have not ended, and clients that were just called.
  private var calls: [ClientID: [Int: BrokerCall]] = [:]
  private var called: [Peer] = []
  private var timers: [TimerName: Int64] = [:]
  private var watched: [Watch: ClientProcess] = [:]
  private var dead: Set<ClientProcess> = []
  private var ends: [ClientProcess: ProcessEnd] = [:]
  private var heldOpenings: [(id: ApplicationID, name: ApplicationName, creating: Bool)] = []
  private var heldListings: [ListingPurpose] = []
  private var heldProbes: [(application: ApplicationID, sessions: [SessionID], call: ProbedCall)] = []
  private var clientCounter: ClientID = 0
  /// Notifications of the event being carried out.
  private var notices: [(ApplicationID, WriteQueue.Notice)] = []

  struct Watch: Hashable {
    let application: ApplicationID
    let session: SessionID
  }

  private struct BrokerCall: Hashable {
    let application: ApplicationID
    let number: CallNumber
  }

  /// An archive that the core has open.
  struct OpenFile {
    let name: String
    var durable: SequenceNumber
    var pending: [ArchiveChange] = []
    var answers: [(after: SequenceNumber, caller: Caller, answer: Answer)] = []
    var reads: [(request: StateRequest, after: SequenceNumber)] = []
    var scans: [ScanRequest] = []
    var jobs: [(job: StoreJob, after: SequenceNumber)] = []
    var notices: [(after: SequenceNumber, notice: WriteQueue.Notice)] = []
  }

  private let isDeveloperMode: Bool

  init(limits: Limits = Limits(), isDeveloperMode: Bool = false) {
    self.limits = limits
    self.isDeveloperMode = isDeveloperMode
    core = CoreDriver.makeCore(limits, epoch: epoch, isDeveloperMode)
  }

  private static func makeCore(_ limits: Limits, epoch: Int64, _ isDeveloperMode: Bool) -> BrokerCore {
    let settings = CoreSettings(
      epoch: epoch,
      version: "1.0",
      systemVersion: "Test 1",
      isDeveloperMode: isDeveloperMode,
      random: { (UInt64.random(in: 0...UInt64.max), UInt64.random(in: 0...UInt64.max)) }
    )
    return BrokerCore(limits: limits, settings: settings)
  }

  // MARK: Clients

  /// A new connection of the process with this number; the same number is the same process.
  ///
  /// - Parameter canBeCalled: false for one that can be sent nothing but answers, as over HTTP.
  func connect(pid: Int64 = 100, uid: Int64 = 1_000, canBeCalled: Bool = true, unit: String? = nil) -> Peer {
    clientCounter += 1
    let process = ClientProcess().with {
      ($0.pid, $0.uid, $0.startTicks, $0.bootID) = (pid, uid, pid * 10, "boot")
    }
    let peer = Peer(id: clientCounter, process: process, canBeCalled: canBeCalled, driver: self)
    peers[peer.id] = peer
    core.connected(peer.id, process: process, unit: unit, at: now)
    settle()
    return peer
  }

  func disconnect(_ peer: Peer) {
    guard peers.removeValue(forKey: peer.id) != nil else { return }
    peer.isConnected = false
    calls[peer.id] = nil
    core.disconnected(peer.id, at: now)
    settle()
  }

  /// The process ends; its connections stay open until `disconnect`.
  func kill(_ peer: Peer, _ end: ProcessEnd = ProcessEnd()) {
    dead.insert(peer.process)
    ends[peer.process] = end
    for (watch, process) in watched where process == peer.process {
      watched[watch] = nil
      core.processExited(watch.application, watch.session, end, at: now)
    }
    settle()
  }

  /// The process ends and nobody has told the core yet.
  func killUnnoticed(_ peer: Peer, _ end: ProcessEnd = ProcessEnd()) {
    dead.insert(peer.process)
    ends[peer.process] = end
  }

  /// The process ends and its connection with it.
  func crash(_ peer: Peer, _ end: ProcessEnd = ProcessEnd()) {
    disconnect(peer)
    kill(peer, end)
  }

  func deliver(_ message: IncomingMessage) {
    core.received(message, at: now)
    settle()
  }

  func cancel(_ caller: Caller) {
    core.cancelled(caller, at: now)
    settle()
  }

  /// The broker ends because the session of its user does.
  func sessionOfUserEnds() {
    core.sessionOfUserEnds(at: now)
    settle()
  }

  /// The broker is told to end, and saves what its clients have.
  func saveBeforeEnd() {
    core.saveBeforeEnd(at: now)
    settle()
  }

  func refuse(_ message: IncomingMessage, _ fault: ErrorObject) {
    core.refused(message, fault, at: now)
    settle()
  }

  // MARK: Time

  /// Moves both clocks, letting timers fire on the way in the order they are due.
  func advance(milliseconds: Int64) {
    let end = now.monotonic + milliseconds
    while let (name, due) = timers.min(by: { $0.value < $1.value }), due <= end {
      now.wall += due - now.monotonic
      now.monotonic = due
      timers[name] = nil
      core.timerFired(name, at: now)
      settle()
    }
    now.wall += end - now.monotonic
    now.monotonic = end
  }

  /// The calendar alone moves: days in which the broker had nothing to do.
  func advance(days: Int64) {
    now.wall += days * 24 * 3_600 * 1_000
  }

  var timerCount: Int { timers.count }

  /// States written since the last `forgetWritten`.
  var writtenStates: Int {
    written.count { change in
      if case .state = change { true } else { false }
    }
  }

  // MARK: The broker

  /// The broker dies and starts again: what was not committed is lost, connections are cut, processes live on.
  ///
  /// - Parameter start: the number of this start, if the count of them was lost.
  func restart(start: Int64? = nil) {
    for peer in peers.values { peer.isConnected = false }
    peers = [:]
    files = [:]
    timers = [:]
    watched = [:]
    heldOpenings = []
    heldListings = []
    heldProbes = []
    epoch = start ?? epoch + 1
    core = CoreDriver.makeCore(limits, epoch: epoch, isDeveloperMode)
  }

  /// Makes durable what was held back.
  func commit() {
    commitAll()
    settle()
  }

  /// The transaction of an application fails, and nothing of it was stored.
  func failCommit(_ name: String) {
    guard let (id, file) = files.first(where: { $0.value.name == name }) else { return }
    let callers =
      file.answers.map(\.caller) + file.reads.map(\.request.caller) + file.scans.map(\.caller)
      + file.jobs.map(\.job.caller)
    files[id] = nil
    for caller in callers {
      send(.error(ErrorObject.restoration(.storeFailed, "the disk is full", hint: "Make room.")), to: caller)
    }
    for (_, notice) in file.notices {
      if case .announcement(let announcement) = notice, announcement.condition != .stored { tell(announcement) }
    }
    core.commitFailed(id, at: now)
    settle()
  }

  /// The configuration was read anew.
  func configure(_ policies: LoginPolicies) {
    core.configure(policies)
  }

  func openHeld() {
    holdsOpenings = false
    let held = heldOpenings
    heldOpenings = []
    for opening in held { open(opening.id, opening.name, creating: opening.creating) }
    settle()
  }

  func listHeld() {
    holdsListings = false
    let held = heldListings
    heldListings = []
    for purpose in held { list(purpose) }
    settle()
  }

  func probeHeld() {
    holdsProbes = false
    let held = heldProbes
    heldProbes = []
    for (application, sessions, call) in held { probe(sessions, of: application, call) }
    settle()
  }

  func forgetWritten() {
    written = []
  }

  /// Changes an archive behind the core's back; it is noticed when the archive is opened again.
  func tamper(_ name: String, _ change: (inout NaiveArchive) -> Void) {
    if var archive = archives[name] {
      change(&archive)
      archives[name] = archive
    }
  }

  func application(_ name: String) -> Application? {
    core.applications.values.first { $0.name.description == name }
  }

  // MARK: Carrying out

  /// Carries out effects, and makes durable what was written, until nothing is left.
  private func settle() {
    repeat {
      var outcome = Outcome()
      core.swapOutcome(with: &outcome)
      while !outcome.isEmpty {
        answersForNobody += outcome.effects.count(where: \.onlyAnswersNobody)
        for (id, change) in outcome.changes { write(change, to: id) }
        for effect in outcome.effects { perform(effect) }
        outcome.removeAll()
        core.swapOutcome(with: &outcome)
      }
      placeNotices()
      answerCalls()
    } while !core.context.outcome.isEmpty || !holdsCommits && commitAll()
  }

  /// Clients that were called answer, as far as they do so by themselves.
  private func answerCalls() {
    while !called.isEmpty {
      called.removeFirst().answerCalls()
    }
  }

  /// Notifications leave when everything is durable that had been written when they were made.
  private func placeNotices() {
    let placed = notices
    notices = []
    for (id, notice) in placed {
      if let file = files[id], !file.pending.isEmpty {
        files[id]?.notices.append((file.durable + SequenceNumber(file.pending.count), notice))
      } else {
        send(notice, of: id)
      }
    }
  }

  private func send(_ notice: WriteQueue.Notice, of id: ApplicationID) {
    switch notice {
    case .notification(.client(let client), let method, let parameters): peers[client]?.notify(method, parameters)
    case .notification(.poller(let session), let method, let parameters):
      core.notified(id, session, method: method, parameters: parameters, at: now)
    case .announcement(let announcement): if notice.followsSuccess { tell(announcement) }
    }
  }

  private func tell(_ announcement: Announcement) {
    for recipient in announcement.recipients where core.isSubscribed(recipient) {
      let notification = EventNotification(
        subscription: recipient.number,
        application: announcement.application,
        event: announcement.event
      )
      // What is too long is counted as lost by the service.
      if core.reads(notification.parameters, recipient.client) {
        peers[recipient.client]?.notify(EventNotification.method, notification.parameters)
      }
    }
  }

  @discardableResult
  private func commitAll() -> Bool {
    var hasCommitted = false
    for (id, file) in files.sorted(by: { $0.key < $1.key }) where !file.pending.isEmpty {
      commit(id, file)
      hasCommitted = true
    }
    return hasCommitted
  }

  private func commit(_ id: ApplicationID, _ file: OpenFile) {
    archives[file.name]?.append(file.pending)
    let durable = file.durable + SequenceNumber(file.pending.count)
    #expect(archives[file.name]?.sequence == durable)
    let ready = file.answers.filter { $0.after <= durable }
    let reads = file.reads.filter { $0.after <= durable }
    let scans = file.scans.filter { $0.page.sequence <= durable }
    files[id]?.durable = durable
    files[id]?.pending = []
    files[id]?.answers.removeAll { $0.after <= durable }
    files[id]?.reads.removeAll { $0.after <= durable }
    files[id]?.scans.removeAll { $0.page.sequence <= durable }
    let jobs = file.jobs.filter { $0.after <= durable }
    files[id]?.jobs.removeAll { $0.after <= durable }
    files[id]?.notices.removeAll { $0.after <= durable }
    for waiting in ready { send(waiting.answer, to: waiting.caller) }
    for notice in file.notices where notice.after <= durable { send(notice.notice, of: id) }
    for read in reads { self.read(id, read.request) }
    for scan in scans { self.scan(id, scan) }
    for job in jobs { carryOut(id, job.job) }
    let bytes = measuresArchives ? archives[file.name]?.reachableBytes ?? 0 : 0
    core.committed(id, ArchiveReceipt(sequence: durable, reachableBytes: bytes), at: now)
  }

  private func perform(_ effect: Effect) {
    switch effect {
    case .respond(let caller, let answer): send(answer, to: caller)
    case .respondAfter(let id, let sequence, let caller, let answer):
      respond(answer, to: caller, after: sequence, in: id)
    case .read(let id, let request, let after):
      if isDurable(after, id) { read(id, request) } else { files[id]?.reads.append((request, after)) }
    case .readState(let id, let row, let caller): readState(id, row, caller)
    case .scan(let id, let request):
      if isDurable(request.page.sequence, id) { scan(id, request) } else { files[id]?.scans.append(request) }
    case .carryOut(let id, let job, let after):
      if isDurable(after, id) { carryOut(id, job) } else { files[id]?.jobs.append((job, after)) }
    case .open(let id, let name, let creating):
      if holdsOpenings { heldOpenings.append((id, name, creating)) } else { open(id, name, creating: creating) }
    case .close(let id): close(id)
    case .list(let purpose):
      if holdsListings { heldListings.append(purpose) } else { list(purpose) }
    case .backUp: backups += 1
    case .log(_, let text, _): logged.append(text)
    case .tell(let client, let method, let parameters): peers[client]?.notify(method, parameters)
    case .notify(let id, let recipient, let method, let parameters):
      notices.append((id, .notification(recipient, method: method, parameters: parameters)))
    case .announce(let id, let announcement): notices.append((id, .announcement(announcement)))
    case .park(let caller): peers[caller.client]?.park(caller)
    case .unpark(let caller): peers[caller.client]?.unpark(caller)
    case .watch(let client, let application, let session):
      watched[Watch(application: application, session: session)] = peers[client]?.process
    case .watchProcess(let process, let application, let session):
      watch(process, Watch(application: application, session: session))
    case .unwatch(let application, let session): watched[Watch(application: application, session: session)] = nil
    case .probe(let id, let sessions, let call):
      if holdsProbes { heldProbes.append((id, sessions, call)) } else { probe(sessions, of: id, call) }
    case .setTimer(let name, let milliseconds): timers[name] = now.monotonic + max(1, milliseconds)
    case .cancelTimer(let name): timers[name] = nil
    case .disconnect(let client): close(client)
    case .call(let id, let number, let client, let method, let parameters):
      call(client, BrokerCall(application: id, number: number), method, parameters)
    case .endCall(let client, let number, let id): endCall(BrokerCall(application: id, number: number), client)
    case .startUnit(let id, let unit): start(unit, for: id)
    case .checkUnit(let id, let session, let unit):
      core.unitChecked(id, session, unit, unitFiles[unit.description], at: now)
    case .tellLoss, .hold, .release, .clientChanged, .reportStatistics, .setWaiting, .endSubscription: break
    }
  }

  private func write(_ change: ArchiveChange, to id: ApplicationID) {
    written.append(change)
    if files[id] == nil { Issue.record("a change of an archive that is not open: \(change)") }
    files[id]?.pending.append(change)
  }

  private func isDurable(_ sequence: SequenceNumber, _ id: ApplicationID) -> Bool {
    files[id].map { $0.durable >= sequence } ?? true
  }

  private func watch(_ process: ClientProcess, _ watch: Watch) {
    if dead.contains(process) {
      core.processExited(watch.application, watch.session, at: now)
    } else {
      watched[watch] = process
    }
  }

  private func close(_ client: ClientID) {
    guard let peer = peers.removeValue(forKey: client) else { return }
    peer.isConnected = false
    calls[client] = nil
    core.disconnected(client, at: now)
  }

  private func endCall(_ call: BrokerCall, _ client: ClientID) {
    guard let callID = calls[client]?.first(where: { $0.value == call })?.key else { return }
    calls[client]?[callID] = nil
    peers[client]?.forget(callID)
  }

  private func start(_ unit: UnitName, for id: ApplicationID) {
    startedUnits.append(unit.description)
    if let refusal = core.refusal(to: unit, for: id, unitFiles[unit.description]) {
      core.unitFailed(id, unit, refusal, at: now)
    } else if brokenUnits.contains(unit.description) {
      core.unitFailed(id, unit, "its start job failed", at: now)
    }
  }

  private func probe(_ sessions: [SessionID], of application: ApplicationID, _ call: ProbedCall) {
    var ended: [SessionID: ProcessEnd] = [:]
    for session in sessions {
      let process = watched[Watch(application: application, session: session)]
      if let process, dead.contains(process) { ended[session] = ends[process] ?? ProcessEnd() }
    }
    core.probed(application, sessions, ended: ended, call, at: now)
  }

  // MARK: Calls to clients

  private func call(_ client: ClientID, _ call: BrokerCall, _ method: String, _ parameters: JSONText) {
    guard let peer = peers[client] else {
      core.callEnded(call.application, call.number, .lost, at: now)
      return
    }
    calls[client, default: [:]][peer.receiveCall(method, parameters)] = call
    called.append(peer)
  }

  /// A client has answered.
  func answered(_ callID: Int, _ answer: CallAnswer, by client: ClientID) {
    guard let call = calls[client]?.removeValue(forKey: callID) else { return }
    core.callEnded(call.application, call.number, answer, at: now)
    settle()
  }

  // MARK: Archives

  private func open(_ id: ApplicationID, _ name: ApplicationName, creating: Bool) {
    openCount += 1
    if !creating, archives[name.description] == nil {
      core.opened(id, .failure(ArchiveError(.absent, "there is no archive")), ended: [], at: now)
      return
    }
    if let failure = openingFailures[name.description] {
      core.opened(id, .failure(failure), ended: [], at: now)
      return
    }
    let number = archives.count + 1
    let opening = archives[name.description, default: NaiveArchive(uuid: "archive-\(number)")].open(name.description)
    files[id] = OpenFile(name: name.description, durable: opening.sequence)
    let ended = opening.sessions.filter { record in
      let facts = SessionFacts(stored: record.facts)
      return record.ending == nil && !facts.isDetached && facts.process.map { dead.contains($0) } ?? false
    }
    core.opened(id, .success(opening), ended: Set(ended.map(\.session)), at: now)
  }

  private func close(_ id: ApplicationID) {
    guard let file = files[id] else { return }
    if !file.pending.isEmpty { commit(id, file) }
    files[id] = nil
    closed.append(file.name)
  }

  private func list(_ purpose: ListingPurpose) {
    let summaries = archives.sorted { $0.key < $1.key }.map { $0.value.summary($0.key) }
    core.listingFinished(purpose, .success(summaries), at: now)
  }

  private func read(_ id: ApplicationID, _ request: StateRequest) {
    guard let archive = files[id].flatMap({ archives[$0.name] }) else { return }
    core.readingFinished(id, request, .success(request.rows.map { archive.state($0.sequence) }), at: now)
  }

  /// A row at hand is answered at once, as the service does from its cache; one that is not durable waits.
  private func readState(_ id: ApplicationID, _ row: StateRequest.Row, _ caller: Caller) {
    let request = StateRequest(caller: caller, purpose: .decode(node: row.node), rows: [row])
    guard let file = files[id], file.durable < row.sequence else {
      if case .state(let record, _) = files[id].flatMap({ archives[$0.name] })?.state(row.sequence),
        let reply = core.decoded(id, record)
      {
        send(.result(reply), to: caller)
      } else {
        read(id, request)
      }
      return
    }
    files[id]?.reads.append((request, row.sequence))
  }

  /// A check is of one node at a time, so that there are always several pieces.
  private func carryOut(_ id: ApplicationID, _ job: StoreJob) {
    guard let archive = files[id].flatMap({ archives[$0.name] }) else { return }
    jobCount += 1
    betweenPieces?()
    switch job.step {
    case .nodes(let after, let sequence):
      let readings = archive.contents(at: sequence).readings.filter { $0.node.node > after }.prefix(StoreJob.nodesMax)
      core.jobFinished(id, job, .success(.nodes(Array(readings))), at: now)
    case .states(let nodes, let sequence):
      let states = archive.contents(at: sequence).states
      let readings = nodes.map { states[$0]?.last.flatMap { archive.state($0.sequence) } }
      core.jobFinished(id, job, .success(.states(readings)), at: now)
    case .check(let position): core.jobFinished(id, job, .success(.checked(archive.check(position))), at: now)
    case .backUp(let path?):
      let failure = copyFailures[path].map { Result<StoreJob.Outcome, ArchiveCopyError>.failure($0) }
      core.jobFinished(id, job, failure ?? .success(.copied(bytes: 4_096)), at: now)
    case .backUp(nil):
      backups += 1
      core.jobFinished(id, job, .success(.copied(bytes: 4_096)), at: now)
    }
  }

  private func scan(_ id: ApplicationID, _ request: ScanRequest) {
    guard let archive = files[id].flatMap({ archives[$0.name] }) else { return }
    core.scanFinished(id, request, .success(archive.contents(at: request.page.sequence).readings), at: now)
  }

  // MARK: Answers

  private func respond(_ answer: Answer, to caller: Caller, after sequence: SequenceNumber, in id: ApplicationID) {
    guard let file = files[id], file.durable < sequence else {
      send(answer, to: caller)
      return
    }
    let last = file.durable + SequenceNumber(file.pending.count)
    if sequence > last { Issue.record("an answer waits for change \(sequence), the last written is \(last)") }
    files[id]?.answers.append((sequence, caller, answer))
  }

  private func send(_ answer: Answer, to caller: Caller) {
    if caller.call == nil, case .error(let error) = answer { logged.append(error.message) }
    peers[caller.client]?.take(answer, for: caller)
  }
}

extension Effect {
  fileprivate var onlyAnswersNobody: Bool {
    switch self {
    case .respondAfter(_, _, let caller, _), .readState(_, _, let caller), .list(.listApplications(let caller)):
      caller.call == nil
    case .read(_, let request, _): request.caller.call == nil
    case .scan(_, let request): request.caller.call == nil
    case .carryOut(_, let job, _): job.caller.call == nil
    default: false
    }
  }
}
