// SPDX-License-Identifier: Apache-2.0

package import Logging
internal import NIOCore
package import RestorationArchive
package import RestorationBroker
package import RestorationTransport
package import RestorationWire
internal import SeededRandom

/// The broker's service with all that is outside of it in memory: clients, archives, processes, time and chance.
///
/// Each call of a client, and each change of what it lives in, runs everything that follows from it until nothing is
/// left to do at this moment. The same seed gives the same run.
@dynamicMemberLookup
package final class MemoryBroker {
  package let loop = TestEventLoop()
  package let disk: MemoryDisk
  package let host: MemoryHost
  package let limits: Limits
  package private(set) var service: BrokerService
  private let makeService: () -> BrokerService
  private let messages: NIOLoopBoundBox<[String]>
  private let daysPassed: NIOLoopBoundBox<Int64>
  /// The last `saveBeforeEnd` is done.
  private let isPrepared: NIOLoopBoundBox<Bool>
  /// The last `stop` is done.
  private let hasStopped: NIOLoopBoundBox<Bool>
  private var connections: [MemoryConnection] = []
  /// What connections of this broker share.
  package private(set) var books: ConnectionBooks
  /// Does whatever the broker itself does, and nothing that its clients in memory do, for who measures it.
  package var meter: ((() -> Void) -> Void)?
  private let record: (String) -> Void

  /// - Parameters:
  ///   - makeStore: for archives elsewhere than on `disk`; the store is to run on the loop.
  ///   - record: told what the broker must never do, whatever the test is about.
  package init(
    limits: Limits = Limits(),
    isDeveloperMode: Bool = false,
    hasManager: Bool = true,
    logLevel: Logger.Level = .info,
    pieceObjects: Int? = nil,
    archivesRoam: Bool = false,
    seed: UInt64 = 1,
    makeStore: ((TestEventLoop) -> any ArchiveStore)? = nil,
    record: @escaping (String) -> Void
  ) {
    let (loop, host) = (loop, MemoryHost(on: loop))
    let chance = NIOLoopBoundBox(SeededGenerator(seed: seed), eventLoop: loop)
    let (messages, days) = (NIOLoopBoundBox<[String]>([], eventLoop: loop), NIOLoopBoundBox<Int64>(0, eventLoop: loop))
    let disk: MemoryDisk
    do {
      disk = try MemoryDisk(on: loop) { chance.value.nextUUID() }
    } catch {
      preconditionFailure("no store: \(error)")
    }
    (self.limits, self.disk, self.host, self.messages, daysPassed) = (limits, disk, host, messages, days)
    self.record = record
    isPrepared = NIOLoopBoundBox(false, eventLoop: loop)
    hasStopped = NIOLoopBoundBox(false, eventLoop: loop)
    makeService = {
      var settings = CoreSettings(
        version: "1.0",
        systemVersion: "Test 1",
        isDeveloperMode: isDeveloperMode,
        random: { (chance.value.next(), chance.value.next()) }
      )
      settings.pieceObjects = pieceObjects ?? settings.pieceObjects
      settings.archivesRoam = archivesRoam
      return BrokerService(
        on: loop,
        limits: limits,
        settings: settings,
        store: makeStore?(loop) ?? disk.connect(),
        processes: host,
        manager: hasManager ? host : nil,
        wallMilliseconds: { Self.wallMilliseconds(loop, days.value) },
        logger: Logger(label: "test") { _ in Journal(messages: messages, logLevel: logLevel) },
        whenFatal: { messages.value.append("fatal: \($0)") }
      )
    }
    service = makeService()
    books = Self.makeBooks(loop, limits)
  }

  private static func makeBooks(_ loop: TestEventLoop, _ limits: Limits) -> ConnectionBooks {
    ConnectionBooks(on: loop.channels, limits: TransportLimits(limits), isShared: false)
  }

  private static func wallMilliseconds(_ loop: TestEventLoop, _ days: Int64) -> Int64 {
    1_700_000_000_000 + Int64(loop.now.uptimeNanoseconds / 1_000_000) + days * 24 * 3_600 * 1_000
  }

  deinit {
    expectNothingIsHeld()
    end()
  }

  package subscript<Value>(dynamicMember path: ReferenceWritableKeyPath<MemoryDisk, Value>) -> Value {
    get { disk[keyPath: path] }
    set { disk[keyPath: path] = newValue }
  }

  package subscript<Value>(dynamicMember path: KeyPath<MemoryDisk, Value>) -> Value { disk[keyPath: path] }

  package subscript<Value>(dynamicMember path: WritableKeyPath<MemoryHost.State, Value>) -> Value {
    get { host.state.value[keyPath: path] }
    set { host.state.value[keyPath: path] = newValue }
  }

  // MARK: Running

  /// Runs until nothing is left to do at this moment.
  package func run() {
    repeat { work { loop.run() } } while connections.reduce(disk.letGo()) { $1.takeOutput() || $0 }
  }

  func work(_ body: () -> Void) { if let meter { meter(body) } else { body() } }

  /// Moves all clocks, letting timers fire on the way when they are due.
  package func advance(milliseconds: Int64) {
    let end = loop.now + .milliseconds(milliseconds)
    var isMore = true
    while isMore {
      work { isMore = loop.advance(to: end) }
      run()
    }
  }

  /// The calendar moves, and time by a second.
  package func advance(days: Int64) {
    daysPassed.value += days
    advance(milliseconds: 1_000)
  }

  // MARK: Clients

  /// A new connection of the process with this number; the same number is the same process.
  package func open(pid: Int64 = 100, uid: Int64 = 1_000, unit: String? = nil, confinement: String? = nil)
    -> MemoryConnection
  {
    let process = host.process(pid, unit: unit)
    let connection = MemoryConnection(of: process, uid: uid, confinement: confinement, to: self)
    connections.append(connection)
    return connection
  }

  /// A client over a new connection.
  ///
  /// - Parameters:
  ///   - canBeCalled: false for one that speaks HTTP and can be sent nothing but answers.
  ///   - confinement: the application of the socket that it comes through.
  package func connect(
    pid: Int64 = 100,
    uid: Int64 = 1_000,
    canBeCalled: Bool = true,
    unit: String? = nil,
    confinement: String? = nil
  ) -> Peer {
    let connection = open(pid: pid, uid: uid, unit: unit, confinement: confinement)
    let peer = Peer(connection, canBeCalled: canBeCalled, record: record)
    run()
    return peer
  }

  package func disconnect(_ peer: Peer) {
    peer.connection.close()
    run()
  }

  func forget(_ connection: MemoryConnection) { connections.removeAll { $0 === connection } }

  /// The process ends; its connections stay open until `disconnect`.
  package func kill(_ peer: Peer, _ end: ProcessEnd = ProcessEnd()) {
    self.end(peer, end, isNoticed: true)
    run()
    host.state.value.isStoppingSession = false
  }

  /// The process ends, and nobody has told the broker yet.
  package func killUnnoticed(_ peer: Peer, _ end: ProcessEnd = ProcessEnd()) { self.end(peer, end, isNoticed: false) }

  private func end(_ peer: Peer, _ end: ProcessEnd, isNoticed: Bool) {
    host.state.value.isStoppingSession = end.isLogout
    peer.connection.process.end(end.ending, isNoticed: isNoticed)
  }

  /// The process ends and its connection with it: by a fault of its own, if nothing else is said.
  package func crash(_ peer: Peer, _ end: ProcessEnd = ProcessEnd(.signalled(signal: 11))) {
    disconnect(peer)
    kill(peer, end)
  }

  // MARK: The broker

  /// The broker dies and starts again: what was not committed is lost, connections are cut, processes live on.
  package func restart() {
    end()
    (disk.holdsOpenings, disk.holdsListings) = (false, false)
    service = makeService()
    books = Self.makeBooks(loop, limits)
  }

  /// When everybody has left and all that was under way is done, the broker's books are empty: what clients make it
  /// hold, it gives back.
  private func expectNothingIsHeld() {
    // A broker that has ended, or has to, does nothing more.
    guard !isStopped, !isPreparedToStop, !logged.contains(where: { $0.hasPrefix("fatal") }) else { return }
    disk.holdNothing()
    host.letGo()
    for connection in connections { connection.cut() }
    connections = []
    host.endAll()
    run()
    // Sessions that are detached last longest.
    advance(milliseconds: 700_000)
    let holdings = Holdings.sum(
      self.holdings,
      books.holdings,
      ["timers of the loop": loop.timerCount]
    )
    if !holdings.isEmpty { record("still held when everybody has left: \(holdings)") }
  }

  /// Nothing of the broker's process is left.
  private func end() {
    disk.disconnect()
    for connection in connections { connection.cut() }
    connections = []
    host.letGo()
    loop.run()
    loop.cancelTimers()
    loop.run()
  }

  /// The broker is told to end, and saves what its clients have.
  package func saveBeforeEnd() {
    let (isPrepared, loop) = (isPrepared, loop)
    isPrepared.value = false
    service.assumeIsolated { service in
      _ = Task {
        await withTaskExecutorPreference(loop) { await service.prepareToStop() }
        isPrepared.value = true
      }
    }
    run()
  }

  /// What the broker does after `saveBeforeEnd`.
  package func stop() {
    let (hasStopped, loop) = (hasStopped, loop)
    hasStopped.value = false
    service.assumeIsolated { service in
      _ = Task {
        await withTaskExecutorPreference(loop) { await service.stop() }
        hasStopped.value = true
      }
    }
    run()
  }

  /// The broker ends because the session of its user does.
  package func sessionOfUserEnds() {
    host.state.value.isStoppingSession = true
    saveBeforeEnd()
    host.state.value.isStoppingSession = false
  }

  /// The configuration was read anew.
  package func configure(_ policies: LoginPolicies) {
    let limits = limits
    service.assumeIsolated { $0.configure(limits, policies) }
  }

  package func commit() {
    disk.commit()
    run()
  }

  /// - Parameter milliseconds: how long to wait afterwards; by default until it is tried again.
  package func failCommit(_ name: String, thenWait milliseconds: Int64 = 80) {
    disk.failCommit(name)
    run()
    advance(milliseconds: milliseconds)
  }

  package func openHeld() {
    disk.holdsOpenings = false
    run()
  }

  package func closeHeld() {
    disk.holdsClosings = false
    run()
  }

  package func listHeld() {
    disk.holdsListings = false
    run()
  }

  package func probeHeld() {
    host.letGo()
    run()
  }

  package func forgetWritten() { disk.forgetWritten() }

  // MARK: What there is

  /// The core as it is now.
  package var core: BrokerCore { service.assumeIsolated { [loop] in NIOLoopBound($0.core, eventLoop: loop) }.value }

  package func application(_ name: String) -> Application? {
    core.applications.values.first { $0.name.description == name }
  }

  package var holdings: Holdings { service.assumeIsolated { $0.holdings } }

  /// Besides those of daily copies, of which each archive that changes has one for five minutes.
  package var timerCount: Int {
    service.assumeIsolated { $0.timers.names.count { if case .backup = $0 { false } else { true } } }
  }

  package var now: Moment {
    Moment(
      monotonic: Int64(loop.now.uptimeNanoseconds / 1_000_000),
      wall: Self.wallMilliseconds(loop, daysPassed.value)
    )
  }

  /// Each with its fields in the order of their names.
  package var logged: [String] { messages.value }
  package var isPreparedToStop: Bool { isPrepared.value }
  package var isStopped: Bool { hasStopped.value }

  /// States committed since the last `forgetWritten`.
  package var writtenStates: Int { disk.written.count { if case .state = $0 { true } else { false } } }
}

/// Keeps what the broker says of itself.
private struct Journal: LogHandler {
  let messages: NIOLoopBoundBox<[String]>
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level

  func log(event: LogEvent) {
    let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }
    messages.value.append("\(event.message)\(fields.joined())")
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
}

extension SeededGenerator {
  fileprivate mutating func nextUUID() -> String {
    let digits = String(UInt128(next()) << 64 | UInt128(next()), radix: 16)
    let padded = String(repeating: "0", count: 32 - digits.count) + digits
    let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { padded.dropFirst($0.lowerBound).prefix($0.count) }
    return parts.joined(separator: "-")
  }
}
