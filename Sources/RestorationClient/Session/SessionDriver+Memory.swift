// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationTransport
internal import RestorationWire

private let log = Logger(label: "restoration")

/// A session that begins without a broker, and the states in its `SessionMemory`. The first broker gets all
/// registrations, as one that has lost the session. Then each due state is pushed, until it is stored or refused for
/// good.
extension SessionDriver {
  /// The longest wait of a start for a broker that is being restarted.
  private static let gapMilliseconds: Int64 = 1_000
  /// The shortest pause before a state is pushed again.
  private static let pauseMilliseconds: Int64 = 50
  private static let ownState = DecodeRestorableState().with { $0.object = .path([]) }

  /// Opens a session by `open`; waits for a broker that was there. Returns the session, or the error without a broker.
  static func open(
    by route: any BrokerRoute,
    within timeout: Duration?,
    _ open: () async throws -> SessionDriver
  ) async throws -> Result<SessionDriver, BrokerConnectionError> {
    let end = now(on: route.eventLoop) + min(timeout.map(milliseconds) ?? .max, gapMilliseconds)
    var delay = ReconnectDelay()
    while true {
      let reason: BrokerConnectionError
      do {
        return .success(try await open())
      } catch let error as BrokerConnectionError where error.isNotRunning || error.code == .lost {
        reason = error
      } catch let error as RestorationError where error.code == .shuttingDown {
        reason = BrokerConnectionError(.lost, path: route.path)
      }
      let wait = delay.next(hasWork: true)
      guard wasThere(reason), now(on: route.eventLoop) + wait <= end else { return .failure(reason) }
      await pause(wait, on: route.eventLoop)
    }
  }

  /// A killed broker leaves a socket that refuses. A broker that exits leaves only its directory.
  private static func wasThere(_ error: BrokerConnectionError) -> Bool {
    guard error.code == .noBroker, let path = error.socketPath else { return true }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return directory.last == "restorationd" && Host.isDirectory(directory.joined(separator: "/"))
  }

  private static func pause(_ milliseconds: Int64, on eventLoop: any EventLoop) async {
    try? await eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {}.futureResult.get()
  }

  /// Begins to work in memory, and to look for a broker.
  func beginAlone() {
    let reason = memory.reason?.message ?? ""
    log.warning("what \(options.application) saves is only in memory until a broker comes: \(reason)")
    act(machine.connectFailed())
  }

  /// The answer from memory; `nil` if a broker must answer.
  func remembered(_ call: SessionCall, _ parameters: JSONText?) throws -> JSONText? {
    if machine.isAlone {
      if call.needsBroker { throw memory.needsBroker(call.method) }
      return try memory.answer(call, parameters, &objects)
    }
    guard call.method == DecodeRestorableState.method, !call.needsBroker else { return nil }
    return try memory.decode(parameters, objects)
  }

  // MARK: States

  /// Replaces the due state by the program's newer one. Its number would mean nothing in another session (R15).
  func renew(_ call: SessionCall, _ revision: Int64?) {
    if !machine.isAlone, memory.states[call.target]?.isDue == true { keep(call, revision, isDue: true) }
  }

  private func keep(_ call: SessionCall, _ revision: Int64?, isDue: Bool) {
    guard let parameters = try? call.parameters(objects, revision) else { return }
    try? memory.keep(parameters, as: call.target, isDue: isDue, objects)
  }

  /// A broker has answered a state of the program.
  func encoded(_ call: SessionCall, _ revision: Int64?, _ result: JSONSlice) {
    let outcome = EncodeOutcome(result)
    if case .unsaved? = outcome { keep(call, revision, isDue: false) }
    encoded(call.target, revision, outcome)
  }

  private func encoded(_ target: RestorableReference, _ revision: Int64?, _ outcome: EncodeOutcome?) {
    if case .unsaved? = outcome { return memory.refused(target, revision) }
    memory.stored(target, revision)
    guard case .object(let object) = target else { return }
    objects.saved(object.id)
    if case .stored(sequence: _, withheld: true)? = outcome { tellWithheld(object) }
  }

  /// Pushes a state that a broker refused as not included. False if there is none.
  func pushWanted(_ object: RestorableObject) -> Bool {
    guard let state = memory.states[.object(object)] else { return false }
    if !state.isDue {
      memory.want(.object(object))
      push(.object(object))
    }
    return true
  }

  /// The first broker has come: makes calls of all due states. They wait for their objects, and come before all later
  /// calls.
  func pushDue() {
    log.info("a broker has come on \(route.path); what was in memory is saved there")
    if options.isDelegate, memory.states[.path([])] != nil {
      // The delegate's state is early until it is decoded (R19).
      ask(.unawaited, DecodeRestorableState.method, parameters: BrokerConnection.parameters(of: Self.ownState))
    }
    for target in memory.due { push(target) }
  }

  /// Pushes a due state until a broker has stored it, or refused it for good.
  private func push(_ target: RestorableReference, _ delay: ReconnectDelay = ReconnectDelay()) {
    guard let state = memory.states[target], state.isDue, !machine.hasEnded else { return }
    // A push that waits for a connection could become older than the state of a later call.
    guard link != nil else { return pushLater(target, delay) }
    let others = state.objects.filter { owns($0) }.map(\.reference)
    var call = SessionCall(
      EncodeRestorableState.self,
      of: [target] + others,
      bytes: state.bytes
    ) { wire, _ in
      let names = Dictionary(uniqueKeysWithValues: zip(others, wire.dropFirst()))
      return state.encoding(as: wire[0]) { names[$0.reference] }
    }
    call.isOfOneConnection = true
    submit(call, as: machine.makeTicket()) { completion in
      self.pushed(state, of: target, completion)
      if self.memory.states[target]?.isDue == true { self.pushLater(target, delay) }
    }
  }

  private func pushLater(_ target: RestorableReference, _ delay: ReconnectDelay) {
    var delay = delay
    let pause = max(Self.pauseMilliseconds, delay.next(hasWork: false))
    eventLoop.scheduleTask(in: .milliseconds(pause)) { [delay] in self.assumeIsolated { $0.push(target, delay) } }
  }

  private func pushed(
    _ state: SessionMemory.State,
    of target: RestorableReference,
    _ completion: Result<Completion, any Error>
  ) {
    do {
      encoded(target, state.revision, EncodeOutcome(try completion.get().answer.get()))
    } catch is RestorationSessionError {
      // The session has ended, an object is gone, or the connection is lost.
    } catch let error as RestorationError where Self.isPassing(error) || error.code == .invalidReference {
      tellOnce(error)
    } catch {
      guard memory.states[target]?.revision == state.revision else { return }
      log.error("\(target.path?.description ?? "a state") could not be saved from memory: \(error)")
      memory.forget(target)
      if case .object(let object) = target { bound[object.id]?.properties.mark() }
    }
  }

  // MARK: Refusals

  /// Reports once for each reason that a broker has not taken everything.
  func tellOnce(_ error: RestorationError) {
    if memory.isNews("\(error)") { log.error("what \(options.application) saves stays in memory: \(error)") }
  }

  /// Repeats a registration over the same connection, unless it is refused for good.
  func registerLater(_ id: ObjectPlan.ObjectID) {
    let link = link
    eventLoop.scheduleTask(in: .milliseconds(ReconnectDelay.longestIdle)) {
      self.assumeIsolated { if $0.link === link { $0.register(id) } }
    }
  }

  /// An object that no broker has ever had is refused for good.
  func tellLost(_ object: RestorableObject, _ error: RestorationError) {
    log.error("\(object) could not be saved from memory: \(error)")
  }
}
