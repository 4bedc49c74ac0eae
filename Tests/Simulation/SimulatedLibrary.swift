// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import JSONRPC
internal import NIOCore
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire

/// A process that uses the client library: a real `RestorationSession`, over simulated connections.
///
/// Used from one thread.
final class SimulatedLibrary: @unchecked Sendable {
  let number: Int
  let application: String
  private let world: World
  private let checker: HistoryChecker
  private var route: SimulatedRoute
  private var session: RestorationSession?
  /// Whether a session is being opened.
  private var isStarting = false
  private var answersCalls = false
  private var isPatient = true
  /// Counts processes: what an earlier one hears means nothing.
  private var life = 0
  /// Of the present session: its calls take effect in their order.
  private var link = 0
  private var objects: [Path: RestorableObject] = [:]
  private var restorers: [Path: Restorer] = [:]
  /// The library does not keep them alive; what it does with those that are gone uses other threads.
  private var kept: [Restorer] = []
  private var calls: [Int: (name: String, task: Task<Void, Never>?)] = [:]
  private var lastCall = 0
  private var hasCancelled = false

  init(_ number: Int, of application: String, in world: World, checker: HistoryChecker) {
    (self.number, self.application, self.world, self.checker) = (number, application, world, checker)
    route = SimulatedRoute(of: world.newProcess(), in: world)
  }

  var unanswered: [String] { calls.keys.sorted().compactMap { calls[$0]?.name } }
  var ownPaths: [Path] { objects.keys.sorted() }
  var pid: Int64 { route.pid }
  /// Where its session believes it has objects.
  var believedPaths: [Path] {
    guard case .connected = session?.state else { return [] }
    return objects.values.filter(\.isRegistered).compactMap(\.place).sorted()
  }

  // MARK: Its life

  /// - Parameter isPatient: whether calls wait for a broker as long as it takes.
  func start(answersCalls: Bool, isPatient: Bool) {
    if case .ended = session?.state { leave() }
    guard session == nil, !isStarting else { return }
    isStarting = true
    let options = SessionOptions(application: application, process: "role\(number)", answersCalls: answersCalls)
    let (route, life) = (route, life)
    begin("start") { [self] in
      defer { if life == self.life { isStarting = false } }
      let timeout = isPatient ? nil : Duration.milliseconds(200)
      let session = try await RestorationSession.start(options, by: route, brokerTimeout: timeout)
      guard life == self.life else { return }
      (self.session, self.answersCalls, link) = (session, answersCalls, world.nextLink())
      self.isPatient = isPatient
    }
  }

  func end(_ reason: GoodbyeReason) {
    guard let session else { return }
    leave()
    let removes = reason == .closed || reason == .userQuit
    remove("end \(reason)", { _ in removes }, isQuit: reason == .userQuit) { await session.end(reason) }
  }

  /// It has no session; what it knew of one is gone.
  private func leave() {
    for path in objects.keys { checker.ended(path, of: application, ownedBy: number) }
    (session, objects, restorers) = (nil, [:], [:])
  }

  func kill(isCrash: Bool) {
    life += 1
    isStarting = false
    route.end(isCrash: isCrash)
    // What a killed process still waited for: it hears nothing more, and reaches nobody.
    if let session { begin("kill") { await session.end(.restart, timeout: .zero) } }
    leave()
    route = SimulatedRoute(of: world.newProcess(), in: world)
  }

  /// The connection breaks, and there is no other for a while.
  func cut(forMilliseconds milliseconds: Int64 = 0) { route.cut(forMilliseconds: milliseconds) }

  // MARK: Calls

  /// Makes a call of the library, which must end.
  private func begin(_ name: String, _ body: @escaping @Sendable () async throws -> Void) {
    lastCall += 1
    let call = lastCall
    world.trace.add("\(number) > \(call) \(name)")
    // That of its session: by the time it fails, another one may have begun.
    let isPatient = isPatient
    let task = Task(executorPreference: world.processes) { [self] in
      do {
        try await body()
        world.trace.add("\(number) < \(call) done")
      } catch {
        failed(name, error, isPatient: isPatient)
        world.trace.add("\(number) < \(call) \(error)")
      }
      calls[call] = nil
    }
    calls[call] = (name, task)
  }

  /// The caller of the newest call has no use for its answer.
  func cancelNewest() {
    guard let newest = calls.keys.max() else { return }
    hasCancelled = true
    calls[newest]?.task?.cancel()
  }

  private func failed(_ name: String, _ error: any Error, isPatient: Bool) {
    switch error {
    case let error as RestorationSessionError where error.code != .timedOut || !isPatient || name == "start": break
    case is CancellationError where hasCancelled: break
    case let error as RestorationError where !Self.neverMet.contains(error.code): break
    case is BrokerConnectionError where name == "start": break
    default: world.trace.fault("the library fails \(name) with \(error)")
    }
  }

  /// Refusals that no call of this process deserves.
  private static let neverMet: [ErrorCode] = [
    .internalError, .invalidParams, .invalidRequest, .methodNotFound, .parseError,
  ]

  func register(_ path: Path, takesOver: Bool) {
    guard let session else { return }
    let (life, claims) = (life, checker.claiming(path, of: application, takesOver: takesOver))
    let registration = ObjectRegistration(
      path.components.last,
      restorationParent: path.parent.map { .path(IdentifierPath($0.components)) },
      awaitParent: .seconds(1),
      takeOver: takesOver
    )
    let restorer = answersCalls ? restorers[path] ?? Restorer(path, of: self, on: world.processes) : nil
    if let restorer { kept.append(restorer) }
    begin("register \(path)") { [self] in
      let object = try await session.register(registration, restoring: restorer)
      guard life == self.life, session === self.session, object.isRegistered else { return }
      checker.claimed(path, of: application, by: number, takesOver: takesOver, after: claims)
      (objects[path], restorers[path]) = (object, restorer)
    }
  }

  func unregister(_ path: Path, keepsState: Bool) {
    guard let session, let object = objects.removeValue(forKey: path) else { return }
    restorers[path] = nil
    checker.ended(path, of: application, ownedBy: number)
    remove("unregister \(path)", { $0.isAtOrBelow(path) || $0.isAtOrBelow(object.place ?? path) }) {
      try await session.unregister(object, keepState: keepsState)
    }
  }

  /// Makes a call that removes states: some time before it is over, if it says so, or before its process's connections
  /// are.
  private func remove(
    _ name: String,
    _ isRemoved: @escaping (Path) -> Bool,
    isQuit: Bool = false,
    _ body: @escaping @Sendable () async throws -> Void
  ) {
    let route = route
    let removal = Removal()
    checker.removing(application, where: isRemoved, isQuit: isQuit) {
      removal.isOver || removal.hasFailed && route.isDone
    }
    begin(name) {
      removal.hasFailed = true
      try await body()
      removal.isOver = true
    }
  }

  private final class Removal: @unchecked Sendable {
    var hasFailed = false
    var isOver = false
  }

  func encode(_ path: Path, padding: Int) {
    guard let session, let object = objects[path] else { return }
    guard let path = object.place else { return }
    let push = checker.push(path, of: application, over: link, padding: padding)
    let expectation = checker.expectation(application)
    begin("encode \(push.value) for \(path)") { [self] in
      do {
        let outcome = try await session.encode(RestorableState(jsonText: push.state), for: object)
        // If it moves meanwhile, or did so before the session resumed, the state is stored elsewhere.
        guard object.place == path, !checker.mayHaveMoved(path, of: application) else { return }
        switch outcome {
        case .stored(let sequence, _):
          checker.acknowledge(push, at: path, of: application, sequence, since: expectation)
        case .superseded: checker.acknowledge(push, at: path, of: application, nil, since: expectation)
        case .unsaved, .discarded: break
        }
      } catch let error as RestorationError where error.code == .unknownObject && object.isRegistered {
        world.trace.fault("the broker does not know \(path), which the library believes it has registered: \(error)")
      }
    }
  }

  func decode(_ path: Path) {
    guard let session else { return }
    let reference = objects[path]?.reference ?? .path(IdentifierPath(path.components))
    begin("decode \(path)") { [self] in
      if let state = try await session.decode(reference).state { handed(path, state) }
    }
  }

  func save() {
    guard let session else { return }
    let expectation = checker.expectation(application)
    begin("save") { [self] in
      let result = try await session.saveApplicationState(deadline: .seconds(2))
      guard result.saved, let generation = result.generation else { return }
      checker.saved(generation, of: application, expectation)
    }
  }

  func restore() {
    guard let session else { return }
    begin("restore") {
      _ = try await session.restoreApplicationState(deadline: .seconds(2))
      try await session.completeStateRestoration()
    }
  }

  // MARK: Asked by the broker

  fileprivate func stateToSave(at path: Path) -> String {
    // Its place among the pushes is decided by the library when it has the answer.
    checker.push(path, of: application, over: world.nextLink()).state
  }

  fileprivate func handed(_ path: Path, _ state: RestorableState) {
    guard let value = try? JSONCodec.parse(Array(state.jsonText.utf8)) else { return }
    // It may have moved, and have been written since.
    let place = objects[path]?.place ?? path
    checker.giving(place, of: application, until: world.whileGiving())
    checker.handed(place, of: application, value)
  }
}

extension RestorableObject {
  /// Where its session knows it to be.
  fileprivate var place: Path? { path.map { Path($0.components) } }
}

/// An object that writes its state down when it is asked.
private actor Restorer: StateRestoring {
  private let path: Path
  private nonisolated unowned let library: SimulatedLibrary
  private nonisolated let loop: TestEventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(_ path: Path, of library: SimulatedLibrary, on loop: TestEventLoop) {
    (self.path, self.library, self.loop) = (path, library, loop)
  }

  func encodeRestorableState() throws -> ObjectState {
    ObjectState(try RestorableState(jsonText: library.stateToSave(at: path)))
  }

  func decodeRestorableState(_ saved: ObjectState) { library.handed(path, saved.state) }

  /// Here, because the default has no actor and would run on another thread.
  func applicationFinishedRestoringState() {}
}
