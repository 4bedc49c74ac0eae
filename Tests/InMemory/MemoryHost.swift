// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import RestorationBroker
package import RestorationTransport

/// Processes that end when a test says so, and a service manager that knows their units.
package final class MemoryHost: ProcessHost, ServiceManager {
  package struct State {
    /// Texts of units' files by name, and units that do not start.
    package var unitFiles: [String: [String]] = [:]
    package var brokenUnits: Set<String> = []
    package var startedUnits: [String] = []
    /// What the manager knows of all units, and why it does not say what they are.
    package var unitResult = UnitResult()
    package var managerFailure: ServiceManagerError?
    /// The user's session ends.
    package var isStoppingSession = false
    /// The manager does not say how processes ended until `letGo`.
    package var holdsProbes = false
    fileprivate var held: [HeldCall<Void>] = []
    fileprivate var processes: [Int32: MemoryProcess] = [:]
    /// Those whose numbers were used again as well.
    fileprivate var all: [MemoryProcess] = []
    fileprivate var starts: UInt64 = 0
  }

  private let loop: TestEventLoop
  package let state: NIOLoopBoundBox<State>

  package init(on loop: TestEventLoop) { (self.loop, state) = (loop, NIOLoopBoundBox(State(), eventLoop: loop)) }

  /// The process with this number; the same number is the same process until it ends.
  package func process(_ pid: Int64, unit: String?) -> MemoryProcess {
    let pid = Int32(clamping: pid)
    if let process = state.value.processes[pid], !process.hasExited { return process }
    state.value.starts += 1
    let identity = ProcessIdentity(pid: pid, startTicks: state.value.starts, bootID: "boot")
    let process = MemoryProcess(identity, unit: unit, on: loop)
    state.value.processes[pid] = process
    state.value.all.append(process)
    return process
  }

  package func process(of peer: PeerCredentials) -> (any HostProcess)? { state.value.processes[peer.pid] }

  package func process(_ identity: ProcessIdentity) -> (any HostProcess)? {
    state.value.processes[identity.pid].flatMap { $0.identity == identity ? $0 : nil }
  }

  /// No process is left, and everybody has noticed the end of each.
  package func endAll() { for process in state.value.all { process.end(process.ending, isNoticed: true) } }

  package func letGo() {
    state.value.holdsProbes = false
    let held = state.value.held
    state.value.held = []
    for call in held { call.letGo() }
  }

  /// Who watches processes has gone itself.
  package func forgetWatches() { for process in state.value.all { process.forgetWatches() } }

  // MARK: The service manager

  package nonisolated(nonsending) func unitFiles(of unit: String) async throws(ServiceManagerError) -> [String]? {
    if let failure = state.value.managerFailure { throw failure }
    return state.value.unitFiles[unit]
  }

  package nonisolated(nonsending) func startUnit(_ unit: String) async throws(ServiceManagerError) {
    state.value.startedUnits.append(unit)
    if state.value.brokenUnits.contains(unit) { throw ServiceManagerError("its start job failed") }
  }

  package func unit(ofProcess pid: Int32) -> String? { state.value.processes[pid]?.unit }

  package nonisolated(nonsending) func result(ofUnit unit: String) async throws(ServiceManagerError) -> UnitResult {
    state.value.unitResult
  }

  package nonisolated(nonsending) func isStopping() async -> Bool {
    if state.value.holdsProbes {
      let call = HeldCall<Void>(on: loop)
      state.value.held.append(call)
      _ = await call.wait()
    }
    return state.value.isStoppingSession
  }
}

package final class MemoryProcess: HostProcess {
  private struct State {
    var ending: ProcessEnding?
    var watches: [Int: @Sendable () -> Void] = [:]
    var lastWatch = 0
  }

  package let pid: Int32
  package let unit: String?
  private let living: ProcessIdentity
  private let state: NIOLoopBoundBox<State>

  package init(_ identity: ProcessIdentity, unit: String?, on loop: TestEventLoop) {
    (pid, living, self.unit) = (identity.pid, identity, unit)
    state = NIOLoopBoundBox(State(), eventLoop: loop)
  }

  package var identity: ProcessIdentity? { hasExited ? nil : living }
  package var hasExited: Bool { state.value.ending != nil }
  package var ending: ProcessEnding { state.value.ending ?? .unknown }

  /// - Parameter isNoticed: whether those who watch it hear of it.
  package func end(_ ending: ProcessEnding, isNoticed: Bool) {
    state.value.ending = ending
    guard isNoticed else { return }
    let watches = state.value.watches.sorted { $0.key < $1.key }
    state.value.watches = [:]
    for watch in watches { watch.value() }
  }

  package func watch(
    on eventLoop: any EventLoop,
    _ callback: @escaping @Sendable () -> Void
  ) throws(TransportError) -> @Sendable () -> Void {
    state.value.lastWatch += 1
    let watch = state.value.lastWatch
    state.value.watches[watch] = callback
    return { self.state.value.watches[watch] = nil }
  }

  fileprivate func forgetWatches() { state.value.watches = [:] }
}
