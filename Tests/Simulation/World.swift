// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationReplica
internal import RestorationTransport
internal import RestorationWire
internal import SeededRandom

/// A broker and all that it lives in: disk, clock, processes, connections. One seed decides everything.
///
/// The broker's service and its store are the real ones; each broker process has its own.
final class World {
  /// Makes the store of a broker whose archives follow their user: around its files, on its loop, with a thread for what
  /// goes to the replica. The last argument says whether the broker still runs.
  typealias Replicating = (
    SQLiteArchiveStore, TestEventLoop, SimulatedExecutor, _ isAlive: @escaping @Sendable () -> Bool
  ) -> ReplicatedStore

  /// Of the host, if there are several.
  let name: String
  let loop = TestEventLoop()
  /// The event loop of processes that use the client library: it outlives brokers.
  let processes = TestEventLoop()
  let host: MemoryHost
  let disk: SimulatedDisk
  let limits: Limits
  let trace: Trace
  private(set) var service: BrokerService
  /// What connections of this broker share.
  private(set) var books: ConnectionBooks
  private var store: SimulatedExecutor
  /// The thread of what goes to the replica.
  private var courier: SimulatedExecutor
  private var replicated: ReplicatedStore?
  private let replicating: Replicating?
  /// The process that the disk knows as this broker.
  private var process = 0
  private(set) var epoch: Int64 = 1
  private let seed: UInt64
  private let chance: NIOLoopBoundBox<SeededGenerator>
  private var lastLink = 0
  private var lastPID: Int64 = 100
  private let clockMilliseconds: NIOLoopBoundBox<Int64>
  private let messages: NIOLoopBoundBox<[String]>
  private var connections: [SimulatedConnection] = []
  var slownessMilliseconds: Int64 = 2 { didSet { setSlowness() } }
  /// Its processes get no time: input waits, and so do timers.
  private(set) var isFrozen = false
  /// Moves the time of all hosts, if there are others.
  var passTime: ((_ milliseconds: Int64) -> Void)?

  init(seed: UInt64, limits: Limits, trace: Trace, name: String = "", replicating: Replicating? = nil) {
    (self.seed, self.limits, self.trace, self.name, self.replicating) = (seed, limits, trace, name, replicating)
    host = MemoryHost(on: loop)
    disk = SimulatedDisk(seed: seed &+ 1)
    chance = NIOLoopBoundBox(SeededGenerator(seed: seed &+ 2), eventLoop: loop)
    clockMilliseconds = NIOLoopBoundBox(0, eventLoop: loop)
    messages = NIOLoopBoundBox([], eventLoop: loop)
    store = SimulatedExecutor(on: loop, seed: seed &+ 3)
    courier = SimulatedExecutor(on: loop, seed: seed &+ 4)
    let files = Self.makeFiles(disk, store, limits)
    replicated = replicating?(files, loop, courier) { [disk] in disk.isAlive(0) }
    let archives: any ArchiveStore = replicated ?? files
    service = Self.makeService(seed, loop, host, archives, limits, chance, clockMilliseconds, messages)
    books = Self.makeBooks(loop, limits)
  }

  private static func makeBooks(_ loop: TestEventLoop, _ limits: Limits) -> ConnectionBooks {
    ConnectionBooks(on: loop.channels, limits: TransportLimits(limits), isShared: false)
  }

  private static func makeFiles(
    _ disk: SimulatedDisk,
    _ executor: SimulatedExecutor,
    _ limits: Limits
  ) -> SQLiteArchiveStore {
    do throws(ArchiveError) {
      return try SQLiteArchiveStore(
        directory: SimulatedDisk.directory,
        of: disk,
        on: executor,
        quota: ArchiveQuota(openArchivesMax: limits.openArchivesMax),
        upkeep: ArchiveUpkeep(deadBytesMax: 40_000, logBytesMax: 200_000, freeBytesMax: 20_000, ballastBytes: 40_960)
      )
    } catch {
      preconditionFailure("no store: \(error)")
    }
  }

  private static func makeService(
    _ seed: UInt64,
    _ loop: TestEventLoop,
    _ host: MemoryHost,
    _ store: any ArchiveStore,
    _ limits: Limits,
    _ chance: NIOLoopBoundBox<SeededGenerator>,
    _ clock: NIOLoopBoundBox<Int64>,
    _ messages: NIOLoopBoundBox<[String]>
  ) -> BrokerService {
    var settings = CoreSettings(
      version: "1.0",
      systemVersion: "Simulation 1",
      random: { (chance.value.next(), chance.value.next()) }
    )
    // In histories of several hosts nothing checks which state has crashed a client (R31).
    settings.isDeveloperMode = store is ReplicatedStore
    // In a third of the histories what is long is done in pieces, though there are few objects.
    if seed.isMultiple(of: 3) { settings.pieceObjects = 2 }
    return BrokerService(
      on: loop,
      limits: limits,
      settings: settings,
      store: store,
      processes: host,
      manager: host,
      wallMilliseconds: {
        1_700_000_000_000 + Int64(loop.now.uptimeNanoseconds / 1_000_000) + clock.value
      },
      logger: Logger(label: "simulation") { _ in Journal(messages: messages) },
      whenFatal: { messages.value.append("fatal: \($0)") }
    )
  }

  // MARK: Running

  /// Runs until nothing is left to do at this moment.
  func run() {
    repeat {
      loop.run()
      processes.run()
    } while takeOutput()
    for message in messages.value { note("broker: \(message)") }
    if messages.value.contains(where: { $0.hasPrefix("fatal") }) { disk.kill() }
    complaints += messages.value.filter { $0.hasPrefix("warning") || $0.hasPrefix("error") || $0.hasPrefix("critical") }
    messages.value = []
    if isDead { startAgain() }
  }

  /// What brokers have said on the level of warnings and above.
  private(set) var complaints: [String] = []

  private func takeOutput() -> Bool {
    // A process that was killed in the middle of a call sends nothing more.
    guard !isDead else { return false }
    return connections.reduce(false) { $1.move() || $0 }
  }

  private func note(_ text: @autoclosure () -> String) { trace.add("\(name.isEmpty ? "" : "\(name): ")\(text())") }

  func advance(milliseconds: Int64) {
    if let passTime { return passTime(milliseconds) }
    advance(to: loop.now + .milliseconds(milliseconds))
  }

  /// When something is to happen next.
  var nextDeadline: NIODeadline? { [loop.nextDeadline, processes.nextDeadline].compactMap { $0 }.min() }

  func advance(to end: NIODeadline) {
    repeat {
      let next = min(end, nextDeadline ?? end)
      loop.advance(to: next)
      processes.advance(to: next)
      run()
    } while loop.now < end
  }

  func moveClock(milliseconds: Int64) { clockMilliseconds.value += milliseconds }

  var nowMilliseconds: Int64 { Int64(loop.now.uptimeNanoseconds / 1_000_000) }

  /// Until what a client has been given is stored as what counts, whatever else the disk has to do.
  func whileGiving() -> () -> Bool {
    let end = nowMilliseconds + 5_000
    return { [unowned self] in nowMilliseconds >= end }
  }

  // MARK: The broker

  var isDead: Bool { !disk.isAlive(process) }

  func kill() {
    note("kill")
    disk.kill()
    startAgain()
  }

  func cutPower() {
    note("power cut")
    endProcess()
    disk.cutPower()
    start()
  }

  /// As when the service is told to end: saves, makes durable, closes.
  ///
  /// - Parameter handsOver: whether connections go on with the next broker.
  func stop(handsOver: Bool) {
    note("stop")
    guard finish({ await $0.prepareToStop() }) else { return }
    if handsOver {
      for connection in connections { connection.drain() }
      run()
    }
    replicated?.drain()
    guard finish({ await $0.stop() }) else { return }
    if let replicated, !finish({ _ in _ = await replicated.drained() }) { return }
    var left: [(SimulatedConnection, ConnectionSnapshot)] = []
    if handsOver {
      for connection in connections { if let snapshot = connection.leave() { left.append((connection, snapshot)) } }
      connections.removeAll { connection in left.contains { $0.0 === connection } }
      note("\(left.count) connections go on, \(connections.count) end")
    }
    startAgain()
    connections += left.map(\.0)
    for (connection, snapshot) in left { connection.goOn(from: snapshot) }
  }

  /// Has the service do something to its end; returns false if it was killed on the way.
  private func finish(_ body: @escaping @Sendable (isolated BrokerService) async -> Void) -> Bool {
    let (isDone, loop) = (NIOLoopBoundBox(false, eventLoop: loop), loop)
    service.assumeIsolated { service in
      _ = Task {
        await withTaskExecutorPreference(loop) { await body(service) }
        isDone.value = true
      }
    }
    let epoch = epoch
    run()
    for _ in 0..<600 where !isDone.value && epoch == self.epoch { advance(milliseconds: 100) }
    guard epoch == self.epoch else { return false }
    if !isDone.value { trace.fault("the broker \(name) did not stop within a minute") }
    return true
  }

  func freeze() {
    note("frozen")
    isFrozen = true
    for connection in connections { connection.hold() }
  }

  /// - Parameter takesInput: what came meanwhile is read before timers fire that are overdue.
  func thaw(at now: NIODeadline, takesInput: Bool) {
    note("goes on")
    isFrozen = false
    if !takesInput { advance(to: now) }
    for connection in connections { connection.letGo() }
    advance(to: now)
  }

  private func startAgain() {
    endProcess()
    start()
  }

  /// Nothing of the broker's process is left.
  private func endProcess() {
    disk.kill()
    for connection in connections { connection.cut() }
    host.letGo()
    for _ in 0..<3 {
      store.drain()
      courier.drain()
      loop.run()
      loop.cancelTimers()
    }
    host.forgetWatches()
    messages.value = []
  }

  private func start() {
    epoch += 1
    process = disk.process
    note("start \(epoch)")
    store = SimulatedExecutor(on: loop, seed: seed &+ UInt64(epoch) &* 7)
    courier = SimulatedExecutor(on: loop, seed: seed &+ UInt64(epoch) &* 7 &+ 1)
    setSlowness()
    let faults = disk.suspendFaults()
    let files = Self.makeFiles(disk, store, limits)
    replicated = replicating?(files, loop, courier) { [disk, process] in disk.isAlive(process) }
    let archives: any ArchiveStore = replicated ?? files
    service = Self.makeService(seed, loop, host, archives, limits, chance, clockMilliseconds, messages)
    books = Self.makeBooks(loop, limits)
    replicated?.sendLeft()
    disk.resumeFaults(faults)
  }

  private func setSlowness() {
    for thread in [store, courier] { thread.setSlowness(milliseconds: slownessMilliseconds) }
  }

  // MARK: Clients

  func newProcess(unit: String? = nil) -> MemoryProcess {
    lastPID += 1
    return host.process(lastPID, unit: unit)
  }

  /// A number for a connection, higher than those before.
  func nextLink() -> Int {
    lastLink += 1
    return lastLink
  }

  func connect(_ process: MemoryProcess, confinedTo confinement: String? = nil) -> SimulatedConnection {
    let connection = SimulatedConnection(of: process, confinedTo: confinement, to: self)
    connections.append(connection)
    return connection
  }

  /// Whether nothing that was sent over the connection, which is closed, can still take effect.
  func isDone(with connection: SimulatedConnection) -> Bool {
    service.assumeIsolated { [id = connection.id] in $0.core.isDone(with: id.value) }
  }

  /// What is held for clients, and by what is under way.
  var holdings: Holdings {
    .sum(service.assumeIsolated { $0.holdings }, books.holdings, ["timers of the loop": loop.timerCount])
  }

  // MARK: Files

  /// Their names in the directory of archives.
  var files: [String] { disk.allNames.map { String($0.dropFirst(SimulatedDisk.directory.count + 1)) } }

  func file(_ name: String) -> [UInt8] { disk.content("\(SimulatedDisk.directory)/\(name)")?.bytes ?? [] }

  func forget(_ connection: SimulatedConnection) { connections.removeAll { $0 === connection } }
}

/// Keeps what the broker says of itself.
private struct Journal: LogHandler {
  let messages: NIOLoopBoundBox<[String]>
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.info

  func log(event: LogEvent) {
    let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }
    messages.value.append("\(event.level): \(event.message)\(fields.joined())")
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
}
