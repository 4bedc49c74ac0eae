// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Histories
internal import JSONRPC
internal import SeededRandom
internal import TestSupport

/// A random history of an archive that two hosts use in turn, with a fault in the middle of it, or two. Meanwhile they
/// are at work with another archive as well.
final class FleetHistory {
  /// What goes wrong with a host is that of the one that has the archive, mostly.
  enum Fault: String, CaseIterable, Sendable {
    // Of the servers.
    case quorumFailover, asynchronousPromotion, restartedServer, killedCommit
    // Of a host's network.
    case partition, deafServer, deafHost
    // Of a host, which goes on.
    case slowLink, frozenBroker, frozenGateway
    // Of its programs.
    case killedBroker, killedGateway, killedHost
    // Of the servers again.
    case putBack

    static let ofServers: [Fault] = [
      .quorumFailover, .asynchronousPromotion, .restartedServer, .killedCommit, .putBack,
    ]
    static let ofCables: [Fault] = [.partition, .deafServer, .deafHost]
    static let ofHosts: [Fault] = [.slowLink, .frozenBroker, .frozenGateway]
    static let ofPrograms: [Fault] = [.killedBroker, .killedGateway, .killedHost]
  }

  /// A client, and what it was told.
  private final class User {
    let host: FleetHost
    let client: WireClient
    let session: HostsChecker.Session
    var objects: [Path: JSONValue] = [:]
    var waiting: [Int64: HostsChecker.Write] = [:]
    /// It has lost the archive, or its connection.
    var isOver = false

    init(_ host: FleetHost, _ client: WireClient, _ session: HostsChecker.Session) {
      (self.host, self.client, self.session) = (host, client, session)
    }
  }

  private static let paths = [Path("editor"), Path("list")]
  private let fault: Fault
  private let fleet: Fleet
  private let hosts: [FleetHost]
  private let waitsForReplica: Bool
  private let application: String
  private let trace = Trace(.lines)
  private let checker: HostsChecker
  private var random: SeededGenerator
  private var users: [User] = []
  private var isTroubled = false
  /// Of another application: both hosts are at work at once, and appends of both archives share transactions. No host
  /// opens its archive while the fault lasts. `nil` if a server forgets: this history decides which host comes first.
  private let neighbour: FleetHistory?

  init(
    _ seed: UInt64,
    _ fault: Fault,
    on fleet: Fleet,
    _ hosts: [FleetHost],
    waitsForReplica: Bool,
    isNeighbour: Bool = false
  ) {
    (self.fault, self.fleet, self.hosts, self.waitsForReplica) = (fault, fleet, hosts, waitsForReplica)
    application = "org.example.\(fault)\(seed)\(isNeighbour ? ".Neighbour" : "")"
    let kind = Fault.allCases.count * (isNeighbour ? 1 : 0) + (Fault.allCases.firstIndex(of: fault) ?? 0)
    random = SeededGenerator(seed: seed &* 100 &+ UInt64(kind))
    checker = HostsChecker(application, waitsForReplica: waitsForReplica, trace)
    neighbour =
      isNeighbour || [.asynchronousPromotion, .putBack].contains(fault)
      ? nil : FleetHistory(seed, fault, on: fleet, hosts, waitsForReplica: waitsForReplica, isNeighbour: true)
  }

  /// How many states were acknowledged.
  var writes: Int { checker.writes + (neighbour?.writes ?? 0) }
  /// What was wrong.
  var faults: [String] { trace.faults + (neighbour?.faults ?? []) }
  /// What happened.
  var trail: String { trace.lines.joined(separator: "\n") + (neighbour.map { "\nNeighbour:\n\($0.trail)" } ?? "") }

  /// Returns what was wrong.
  @discardableResult
  func play() throws -> [String] {
    for history in [self, neighbour].compactMap(\.self) { try history.begin() }
    trace.add("FAULT begins: \(fault)")
    for history in [self, neighbour].compactMap(\.self) { history.isTroubled = true }
    // The commit that is killed is to be this history's.
    if fault != .killedCommit { neighbour?.sendAway() }
    try befall()
    neighbour?.sendAway()
    trace.add("the fault is over")
    for history in [self, neighbour].compactMap(\.self) { try history.end() }
    return faults
  }

  private func begin() throws {
    // On a server that has taken over in an earlier history a new archive would wait for whoever may have it.
    try takeOver(hosts[random.below(2)], byForce: true)
    for _ in 0..<(1 + random.below(3)) { try write() }
    if random.below(3) == 0 { for _ in 0..<2 { try hop() } }
    try write()
  }

  private func end() throws {
    try settle()
    // Each host opens it, so that what it had alone is set aside.
    for _ in 0..<2 { try hop() }
    if random.below(2) == 0 { try hop() }
    try compare()
  }

  /// Answers come when the fault is over.
  private func sendAway() {
    if let user = users.last { send(1 + random.below(4), by: user) }
  }

  // MARK: Steps

  /// The one that has opened the archive last.
  private var holder: FleetHost { users.last?.host ?? hosts[0] }
  private var other: FleetHost { hosts[0] === holder ? hosts[1] : hosts[0] }

  /// Opens the archive on a host, and reads what it has. False if that is refused; tries again until `deadline`.
  @discardableResult
  private func takeOver(_ host: FleetHost, byForce: Bool, _ deadline: Deadline = Deadline(.seconds(60))) throws -> Bool
  {
    for user in users where user.host === host { try awaitEnd(of: user) }
    var client = try host.broker.connect()
    let parameters: JSONValue = [
      "application": .string(application), "takeOver": .bool(byForce), "serves": ["archiveLost"],
    ]
    var isOpen = false
    try Wait.until("\(host.name) has the archive", Deadline(.seconds(120))) {
      do {
        _ = try client.call("initialize", parameters, Deadline(.seconds(40)))
        isOpen = true
        return true
      } catch let error as CallError where HostsChecker.refusals.contains(error.kind ?? "") {
        trace.add("\(host.name) is refused: \(error.kind ?? "")")
        client = try host.broker.connect()
        return deadline.isOver
      }
    }
    guard isOpen else { return false }
    let user = User(host, client, checker.opened(on: host.name, byForce: byForce, inTrouble: isTroubled))
    users.removeAll { $0.host === host }
    users.append(user)
    for path in Self.paths {
      let parameters: JSONValue = ["restorationIdentifier": .string(path.description), "takeOver": true]
      user.objects[path] = try call("registerObjectForStateRestoration", parameters, by: user)?["object"]
      try read(path, by: user)
    }
    return true
  }

  /// `nil` if the user has not got the archive any more.
  private func call(_ method: String, _ parameters: JSONValue, by user: User) throws -> JSONValue? {
    guard !user.isOver else { return nil }
    do { return try user.client.call(method, parameters) } catch let error as CallError
      where HostsChecker.refusals.contains(error.kind ?? "")
    {
      trace.add("\(user.host.name) refuses \(method): \(error.kind ?? "")")
      user.isOver = true
      return nil
    }
  }

  /// Returns when this host knows that it has not got the archive any more: before that an opening would be one of the
  /// same.
  private func awaitEnd(of user: User) throws {
    try collect(user)
    guard user !== users.last, !user.isOver else { return }
    try Wait.until("\(user.host.name) hears that it has lost the archive", Deadline(.seconds(60))) {
      send(1, by: user)
      try collect(user)
      return user.isOver
    }
  }

  /// The user goes to the other host.
  private func hop() throws {
    guard try takeOver(other, byForce: false) else { throw TestFailure("\(other.name) does not get \(application)") }
    try write()
  }

  @discardableResult
  private func read(_ path: Path, by user: User) throws -> JSONValue? {
    try collect(user)
    guard !user.isOver, let object = user.objects[path] else { return nil }
    let expectation = checker.expectation()
    guard let answer = try call("decodeRestorableState", ["object": object], by: user) else { return nil }
    let found = answer["state"].flatMap { $0.isNull ? Optional.none : $0 }
    checker.read(path, found, expectation, by: user.session)
    return found
  }

  /// Sends a few states, without waiting for the answers.
  private func send(_ count: Int, by user: User) {
    for _ in 0..<count {
      let path = Self.paths[random.below(Self.paths.count)]
      guard !user.isOver, let object = user.objects[path] else { return }
      // A few large ones make batches of which the next pause makes a snapshot. A frozen broker does not read them, and
      // over a slow link they would not arrive in time.
      let isLarge = random.below(2) == 0 && !(isTroubled && [.frozenBroker, .slowLink].contains(fault))
      let write = checker.send(path, by: user.session, padding: isLarge ? 240 << 10 : 0)
      do {
        let state = try write.push.json.unwrapped("a state")
        user.waiting[try user.client.request("encodeRestorableState", ["object": object, "state": state])] = write
      } catch { user.isOver = true }
    }
  }

  /// Sends a few by whoever has the archive, and waits for the answers.
  private func write() throws {
    guard let user = users.last else { return }
    send(1 + random.below(4), by: user)
    try collect(user)
  }

  /// Takes what has come, and what will come if `waits`.
  private func collect(_ user: User, waits: Bool = true) throws {
    while !user.waiting.isEmpty, !user.isOver, waits || user.client.hasInput(within: .zero) {
      let message: JSONValue
      do { message = try user.client.receiveMessage(Deadline(.seconds(30))) } catch {
        trace.add("\(user.host.name) answers no more: \(error)")
        guard "\(error)".contains("closed") || "\(error)".contains("reset") else { throw error }
        return user.isOver = true
      }
      take(message, by: user)
    }
  }

  private func take(_ message: JSONValue, by user: User) {
    if message["method"] == "archiveLost" {
      trace.add("\(user.host.name) has lost the archive: \(message["params"]?.text ?? "")")
    }
    guard let id = message["id"]?.integer, let write = user.waiting.removeValue(forKey: id) else { return }
    if let result = message["result"] { return checker.acknowledged(write, result["sequence"]?.integer) }
    let error = CallError(message["error"] ?? .null)
    let kind = error.kind ?? ""
    trace.add("\(user.host.name) refuses \(write.push.value): \(kind)")
    if kind == "fenced" { user.isOver = true }
    if !["fenced", "storeFailed"].contains(kind) { trace.fault("\(user.host.name) answers \(error)") }
  }

  /// The fault is over: somebody writes again.
  private func settle() throws {
    if let user = users.last, random.below(2) == 0 {
      let before = checker.writes
      try Wait.until("\(user.host.name) writes or has lost the archive", Deadline(.seconds(60))) {
        send(1, by: user)
        try collect(user)
        return user.isOver || checker.writes > before
      }
      if !user.isOver { return }
    }
    let host = random.below(2) == 0 ? holder : other
    guard try takeOver(host, byForce: random.below(4) == 0) else {
      throw TestFailure("\(host.name) does not get \(application)")
    }
    try write()
  }

  private func compare() throws {
    var states = try states()
    if !waitsForReplica, !checker.isComplete(states) {
      // On a busy machine a lease may have ended since.
      for _ in 0..<2 { try hop() }
      states = try self.states()
    }
    checker.ended(states, try hosts.flatMap(copies))
  }

  private func states() throws -> [Path: JSONValue] {
    guard let user = users.last else { return [:] }
    var states: [Path: JSONValue] = [:]
    for path in Self.paths { states[path] = try read(path, by: user) }
    guard !user.isOver else { throw TestFailure("\(user.host.name) cannot read \(application)") }
    return states
  }

  private func copies(of host: FleetHost) throws -> [HostsChecker.Copy] {
    let names = Files.list(host.broker.archives).filter { $0.hasPrefix("\(application)+conflict-") }
    let log = names.isEmpty ? "" : host.broker.log
    return try names.map { name in
      HostsChecker.Copy(
        name: "\(host.name)/\(name)",
        isNamed: log.contains("its copy is kept as \(name)"),
        bytes: try Files.read("\(host.broker.archives)/\(name)")
      )
    }
  }
}

// MARK: Faults

extension FleetHistory {
  private func befall() throws {
    switch fault {
    case .quorumFailover, .asynchronousPromotion, .restartedServer, .killedCommit, .putBack: try befallServers()
    case .partition: try befallNetwork { $0.blocked = [.there, .back] }
    case .deafServer: try befallNetwork { $0.blocked = [.there] }
    case .deafHost: try befallNetwork { $0.blocked = [.back] }
    case .slowLink: try befallNetwork { ($0.delayMilliseconds, $0.bytesPerSecond) = (200, 64 << 10) }
    case .frozenBroker: try freezeBroker()
    case .frozenGateway:
      let host = holder
      try host.send(signal: SIGSTOP, to: .gateway)
      try goOn()
      try host.send(signal: SIGCONT, to: .gateway)
    case .killedBroker: try killed(.broker)
    case .killedGateway: try killed(.gateway)
    case .killedHost: try killed(.host)
    }
  }

  /// What is done meanwhile.
  private func goOn() throws {
    guard let user = users.last else { return }
    for _ in 0..<(1 + random.below(3)) {
      send(1 + random.below(4), by: user)
      neighbour?.sendAway()
    }
    if random.below(2) == 0 { try collect(user) }
    if random.below(2) == 0 {
      // By force, or as soon as the lease is over.
      if try takeOver(other, byForce: random.below(3) > 0, Deadline(.seconds(8))) { try write() }
      for user in users.dropLast() { send(1, by: user) }
    }
    for user in users { try collect(user, waits: false) }
  }

  private func befallServers() throws {
    guard let user = users.last else { return }
    switch fault {
    case .quorumFailover:
      send(1 + random.below(8), by: user)
      try fleet.failOver()
    case .asynchronousPromotion:
      let left = try fleet.standbys.last.unwrapped("a standby")
      try fleet.primary.cover(by: Array(fleet.standbys.dropLast()))
      try left.follow(nil)
      if random.below(3) == 0 { try hop() }
      for _ in 0..<(1 + random.below(3)) { try write() }
      if let user = users.last { send(random.below(4), by: user) }
      try fleet.failOver(to: left)
      // Whoever has what the server lacks comes first.
      try resume()
    case .putBack:
      try fleet.putBack {
        if random.below(3) == 0 { try hop() }
        for _ in 0..<(1 + random.below(3)) { try write() }
        if let user = users.last { send(random.below(4), by: user) }
      }
      // The holder sends again what the server lacks, unless another host comes first: then that is set aside.
      if waitsForReplica || random.below(2) == 0 {
        try resume()
      } else if let user = users.last {
        checker.deposed(user.host.name)
      }
    case .restartedServer:
      for _ in 0..<(1 + random.below(2)) {
        send(1 + random.below(8), by: user)
        try fleet.primary.stop()
        send(random.below(4), by: user)
        try fleet.primary.launch()
      }
    default:
      for standby in fleet.standbys { try standby.hold(true) }
      send(1 + random.below(4), by: user)
      try fleet.primary.waitForCommit()
      try fleet.primary.endCommits(andSessions: random.below(2) == 0)
      send(random.below(3), by: user)
      for standby in fleet.standbys { try standby.hold(false) }
    }
  }

  /// The last user writes again, and the replica has it.
  private func resume() throws {
    guard let user = users.last else { return }
    let before = checker.writes
    try Wait.until("\(user.host.name) writes again") {
      send(1, by: user)
      try collect(user)
      return user.isOver || checker.writes > before
    }
    if !user.isOver { try fleet.waitUntil(hasChange: checker.lastSequence, of: application) }
  }

  private func befallNetwork(_ change: (inout FaultyRoute.Weather) -> Void) throws {
    let host = random.below(4) == 0 ? other : holder
    try host.network.change(change)
    try goOn()
    // A second fault, before the first one is over.
    if random.below(3) == 0 { try killed(random.below(2) == 0 ? .broker : .gateway) }
    try host.network.change { $0 = FaultyRoute.Weather() }
  }

  /// For longer than its lease: what it gets then it must refuse.
  private func freezeBroker() throws {
    guard let user = users.last else { return }
    try collect(user)
    try user.host.send(signal: SIGSTOP, to: .broker)
    let early = random.below(2)
    send(early, by: user)
    guard try takeOver(other, byForce: false) else { throw TestFailure("\(other.name) does not get \(application)") }
    if random.below(2) == 0 { try write() }
    user.waiting = user.waiting.mapValues(checker.arriving)
    send(2 - early, by: user)
    try user.host.send(signal: SIGCONT, to: .broker)
    try collect(user)
  }

  private func killed(_ part: FleetHost.Part) throws {
    guard let user = users.last else { return }
    send(1 + random.below(4), by: user)
    if random.below(2) == 0 { try collect(user) }
    try user.host.kill(part)
    do {
      if part == .gateway { send(1 + random.below(4), by: user) } else { try collect(user) }
      let (isTakenOver, isForced) = (random.below(2) == 0, random.below(3) > 0)
      // A host that is cut off cannot hear that it has lost the archive, and does not open it before.
      let hears = !users.dropLast().contains { $0.host === other && !$0.isOver }
      if isTakenOver, hears, try takeOver(other, byForce: isForced, Deadline(.seconds(8))) { try write() }
    } catch {
      try user.host.restart(part)
      throw error
    }
    try user.host.restart(part)
  }
}

extension Optional {
  fileprivate func unwrapped(_ what: String) throws -> Wrapped {
    guard let self else { throw TestFailure("there is no \(what)") }
    return self
  }
}
