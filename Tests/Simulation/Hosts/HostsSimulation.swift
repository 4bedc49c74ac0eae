// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import JSONRPC
internal import RestorationArchive

/// Plays a history of several hosts, and afterwards, when all faults have passed, looks whether everything is as it
/// should be.
///
/// The user waits for one host before trying another, so that who has the archive since when can be told from outside.
final class HostsSimulation {
  /// What the user has open on a host, and what it was told.
  private final class User {
    let host: World
    let client: SimulatedClient
    let session: HostsChecker.Session
    /// Where it has an object, and has read what was there.
    var places: [Path] = []
    /// By the value that is written.
    var waiting: [Int: HostsChecker.Write] = [:]
    /// Sent while the host was frozen.
    var unread: Set<Int> = []
    /// It has lost the archive, or its connection.
    var isOver = false

    init(_ host: World, _ client: SimulatedClient, _ session: HostsChecker.Session) {
      (self.host, self.client, self.session) = (host, client, session)
    }
  }

  private let history: HostsHistory
  let trace: Trace
  private let fleet: SimulatedFleet
  private let checker: HostsChecker
  /// Their numbers are their places.
  private var clients: [SimulatedClient] = []
  /// The last one of each host, in the order in which they came.
  private var users: [User] = []
  /// Waits for a host.
  private var coming: SimulatedClient?
  private var forcedClaims = 0
  private var isTroubled = false
  /// Starts of brokers by host; copies that one had set aside when it ended, so that it could not say so.
  private var epochs: [String: Int64] = [:]
  /// In which of these the user has asked for the archive last.
  private var openings: [String: Int64] = [:]
  private var untold: Set<String> = []

  init(_ history: HostsHistory, keeping: Trace.Keeping = .nothing) {
    self.history = history
    trace = Trace(keeping)
    let promise: ReplicaPromise = history.waitsForReplica ? .replica : .disk
    fleet = SimulatedFleet(seed: history.seed, hosts: history.hostCount, promise, trace)
    checker = HostsChecker(HostsHistory.application, waitsForReplica: history.waitsForReplica, trace)
  }

  var reads: Int { checker.reads }
  var acknowledged: Int { checker.writes }

  func run() {
    for step in history.steps {
      trace.add("# \(step)")
      perform(step)
      fleet.run()
      settle()
      guard trace.faults.isEmpty else { return }
    }
    finish()
  }

  private func settle() {
    for client in clients { client.noteEnds() }
    for host in fleet.hosts where host.epoch != epochs[host.name, default: 1] {
      epochs[host.name] = host.epoch
      untold.formUnion(copies(on: host).map { "\(host.name)/\($0)" })
    }
  }

  private func advance(milliseconds: Int64) {
    var left = milliseconds
    repeat {
      fleet.advance(milliseconds: min(left, 1_000))
      settle()
      left -= 1_000
    } while left > 0
  }

  // MARK: Steps

  private func perform(_ step: HostsHistory.Step) {
    switch step {
    case .go(let host, let byForce): go(to: fleet.hosts[host], byForce: byForce)
    case .quit(let host, let isCrash): quit(fleet.hosts[host], isCrash: isCrash)
    case .write(let host, let path, let count, let padding):
      guard let user = user(on: fleet.hosts[host]) else { return }
      for number in path..<path + count { write(number, padding, by: user) }
    case .read(let host, let path):
      if let user = user(on: fleet.hosts[host]) { read(HostsHistory.paths[path], by: user) }
    case .save(let host):
      user(on: fleet.hosts[host])?.client.call("saveApplicationState", #"{"deadlineMilliseconds":2000}"#)
    case .advance(let milliseconds): advance(milliseconds: milliseconds)
    case .slowDisk(let host, let milliseconds):
      fleet.hosts[host].slownessMilliseconds = milliseconds
      if milliseconds > 20 { isTroubled = true }
    case .slowNetwork(let milliseconds): fleet.network.slownessMilliseconds = milliseconds
    default:
      isTroubled = true
      befall(step)
    }
  }

  private func befall(_ step: HostsHistory.Step) {
    let (hosts, network) = (fleet.hosts, fleet.network)
    switch step {
    case .killBrokerAfter(let host, let calls): hosts[host].disk.callsToKill = calls
    case .killBroker(let host): restart(hosts[host], by: hosts[host].kill)
    case .cutPower(let host): restart(hosts[host], by: hosts[host].cutPower)
    case .stopBroker(let host): if !hosts[host].isFrozen { hosts[host].stop(handsOver: false) }
    case .freeze(let host): if !hosts[host].isFrozen { hosts[host].freeze() }
    case .thaw(let host, let takesInput): thaw(hosts[host], takesInput: takesInput)
    case .cutOff(let host): network.replica.cut(hosts[host].name)
    case .lose(let host, let calls, let answers):
      network.change(hosts[host].name) { ($0.losesCalls, $0.losesAnswers) = (calls, answers) }
    case .mend(let host): mend(hosts[host])
    case .loseAnswer(let host): network.replica.loseAnswer(to: hosts[host].name)
    case .delay(let host, let milliseconds): network.change(hosts[host].name) { $0.delay = milliseconds }
    case .follow(let isFollowed): network.setFollowed(isFollowed)
    case .endWaiting: network.endWaiting()
    case .promote(let transactions):
      network.promote(losing: transactions)
      for host in network.deposed { checker.deposed(host) }
    default: break
    }
  }

  private func restart(_ host: World, by body: () -> Void) {
    body()
    thaw(host, takesInput: false)
  }

  private func thaw(_ host: World, takesInput: Bool) {
    for user in users where user.host === host {
      for value in user.unread { user.waiting[value] = user.waiting[value].map(checker.arriving) }
      user.unread = []
    }
    fleet.thaw(host, takesInput: takesInput)
  }

  private func mend(_ host: World) {
    fleet.network.replica.mend(host.name)
    fleet.network.change(host.name) { $0 = SimulatedNetwork.Weather() }
  }

  // MARK: The user

  private func user(on host: World) -> User? { users.last { $0.host === host && !$0.isOver } }

  /// Opens the archive. If the host still has it open and another one has taken it, it has to hear of that first: it is
  /// made to write.
  ///
  /// - Parameter isCalm: Every host knows by now what it has.
  private func go(to host: World, byForce: Bool, isCalm: Bool = false) {
    guard coming == nil, !host.isFrozen else { return }
    if !isCalm, let user = user(on: host), user !== users.last { return write(0, 0, by: user) }
    let client = SimulatedClient(clients.count, of: HostsHistory.application, in: host, checker: HistoryChecker(trace))
    clients.append(client)
    client.openWithoutSession()
    coming = client
    // Unless the archive may be open since an earlier question, the host first asks whether a lease is still its own.
    let (hasOpened, wasDeposed) = (openings[host.name] == host.epoch, fleet.network.deposed.contains(host.name))
    openings[host.name] = host.epoch
    let parameters = #"{"application":"\#(client.application)","takeOver":\#(byForce),"serves":["archiveLost"]}"#
    client.call("initialize", parameters) { [self] answer in
      coming = nil
      switch answer {
      case .result:
        let isDeposed = fleet.network.deposed.contains(host.name)
        let isExcused = hasOpened || !wasDeposed || fleet.network.unanswered.contains(host.name)
        came(client, to: host, byForce: byForce, isDeposed: isDeposed && isExcused)
      case .error(let kind):
        trace.add("\(host.name) refuses: \(kind)")
        if !HostsChecker.refusals.contains(kind) { trace.fault("\(host.name) does not open the archive: \(kind)") }
      case .lost: break
      }
    }
  }

  private func came(_ client: SimulatedClient, to host: World, byForce: Bool, isDeposed: Bool) {
    // One that was asked for before may have been granted since.
    let isForced = byForce || forcedClaims != fleet.network.forcedClaims
    forcedClaims = fleet.network.forcedClaims
    if isForced { isTroubled = true }
    let session = checker.opened(on: host.name, byForce: isForced, inTrouble: isTroubled, isDeposed: isDeposed)
    let user = User(host, client, session)
    users.removeAll { $0.host === host }
    users.append(user)
    for path in HostsHistory.paths {
      let name = path.components[0]
      let parameters = #"{"restorationIdentifier":"\#(name)","takeOver":true}"#
      client.call("registerObjectForStateRestoration", parameters) { [self] answer in
        guard note(answer, by: user) != nil else { return }
        read(path, by: user) { _ in user.places.append(path) }
      }
    }
  }

  /// Returns the result, if it is one.
  @discardableResult
  private func note(_ answer: Answer, by user: User) -> JSONValue? {
    switch answer {
    case .result(let result): return result
    case .error(let kind):
      trace.add("\(user.host.name) refuses: \(kind)")
      if kind == "fenced" || kind == "ownedElsewhere" { user.isOver = true }
      // If its user ends the session, a call that still waits has no session.
      let isExpected = HostsChecker.refusals.contains(kind) || user.isOver && kind == "notInitialized"
      if !isExpected { trace.fault("\(user.host.name) answers \(kind)") }
    case .lost: user.isOver = true
    }
    return nil
  }

  private func read(_ path: Path, by user: User, _ complete: @escaping (JSONValue?) -> Void = { _ in }) {
    let expectation = checker.expectation()
    user.client.call("decodeRestorableState", #"{"object":\#(path.json)}"#) { [self] answer in
      guard let result = note(answer, by: user) else { return }
      let state = result["state"].flatMap { $0.isNull ? Optional.none : $0 }
      checker.read(path, state, expectation, by: user.session)
      complete(state)
    }
  }

  private func write(_ number: Int, _ padding: Int, by user: User) {
    guard !user.isOver, !user.places.isEmpty else { return }
    let path = user.places[number % user.places.count]
    let write = checker.send(path, by: user.session, padding: padding)
    let value = write.push.value
    user.waiting[value] = write
    if user.host.isFrozen { user.unread.insert(value) }
    let parameters = #"{"object":\#(path.json),"state":\#(write.push.state)}"#
    user.client.call("encodeRestorableState", parameters) { [self] answer in
      guard let write = user.waiting.removeValue(forKey: value) else { return }
      guard let result = note(answer, by: user), result["durability"] != nil else { return }
      checker.acknowledged(write, result["sequence"]?.integer)
    }
  }

  private func quit(_ host: World, isCrash: Bool) {
    guard !host.isFrozen, let user = user(on: host) else { return }
    user.isOver = true
    if !isCrash {
      user.client.call("goodbye", #"{"reason":"logout"}"#)
      fleet.run()
    }
    user.client.kill(isCrash: isCrash)
  }

  // MARK: The end

  /// The faults pass. Each host opens the archive, so that what it had alone is set aside, and writes.
  private func finish() {
    trace.add("# the end")
    for host in fleet.hosts {
      host.disk.callsToKill = nil
      host.slownessMilliseconds = 2
      mend(host)
      thaw(host, takesInput: true)
    }
    fleet.network.setFollowed(true)
    fleet.network.slownessMilliseconds = 5
    // What was late has arrived then, and leases were renewed.
    advance(milliseconds: 60_000)
    for host in fleet.hosts + fleet.hosts { visit(host) }
    guard trace.faults.isEmpty else { return }
    var states = readAll()
    if !history.waitsForReplica, !checker.isComplete(states) {
      for host in fleet.hosts { visit(host) }
      states = readAll()
    }
    let all = fleet.hosts.flatMap { host in
      copies(on: host).map { name in
        let isNamed = host.complaints.contains { $0.contains(name) } || untold.contains("\(host.name)/\(name)")
        return HostsChecker.Copy(name: "\(host.name)/\(name)", isNamed: isNamed, bytes: host.file(name))
      }
    }
    checker.ended(states, all)
    leave()
  }

  private func visit(_ host: World) {
    for _ in 0..<40 where trace.faults.isEmpty {
      let former = users.last
      go(to: host, byForce: false, isCalm: true)
      for _ in 0..<60 where coming != nil { advance(milliseconds: 1_000) }
      guard coming == nil else { return trace.fault("\(host.name) neither opens the archive nor refuses it") }
      advance(milliseconds: 2_000)
      guard let user = users.last, user !== former, user.host === host, !user.isOver else { continue }
      write(0, 0, by: user)
      write(1, 0, by: user)
      return advance(milliseconds: 2_000)
    }
    trace.fault("\(host.name) does not get the archive")
  }

  private func readAll() -> [Path: JSONValue] {
    var states: [Path: JSONValue] = [:]
    guard let user = users.last else { return [:] }
    for path in HostsHistory.paths { read(path, by: user) { states[path] = $0 } }
    advance(milliseconds: 2_000)
    if user.isOver { trace.fault("\(user.host.name) cannot read the archive") }
    return states
  }

  private func copies(on host: World) -> [String] { host.files.filter { $0.contains("+conflict-") } }

  /// Everything that was asked is answered. When everybody has left and all brokers have ended, nothing is held.
  private func leave() {
    for client in clients where client.isConnected && !client.unanswered.isEmpty {
      trace.fault("client \(client.number) waits for ever for \(client.unanswered)")
    }
    for client in clients { client.kill(isCrash: false) }
    for host in fleet.hosts { host.stop(handsOver: false) }
    advance(milliseconds: 40_000)
    for host in fleet.hosts {
      let holdings = host.holdings
      if !holdings.isEmpty { trace.fault("\(host.name) still holds when everybody has left: \(holdings)") }
      host.disk.erase()
    }
    let holders = fleet.network.holders
    if !holders.isEmpty { trace.fault("\(holders) still hold archives when all brokers have ended") }
  }
}
