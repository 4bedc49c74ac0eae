// SPDX-License-Identifier: Apache-2.0

package import Logging
package import NIOCore
package import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

package enum ProcessEvent: Sendable {
  case exited(ProcessGateway.SessionKey, ProcessEnd)
  /// The ends of these sessions' processes; the others live.
  case probed(ApplicationID, [SessionID], ended: [SessionID: ProcessEnd], ProbedCall)
  case unitChecked(ProcessGateway.SessionKey, UnitName, [String]?)
  case unitFailed(ApplicationID, UnitName, String)
}

/// Watches the processes of sessions, finds out how they ended, and starts their units again.
/// Used by its delegate only; all of it runs on the delegate's executor.
package final class ProcessGateway {
  package protocol Delegate: Actor {
    var processes: ProcessGateway { get }
    /// The gateway calls `carryOut` afterwards, unless it reports within the call that caused the event.
    func report(_ event: ProcessEvent)
    func carryOut()
    /// Why the unit must not be started for the application; `nil` if it may.
    func refusal(to unit: UnitName, for application: ApplicationID, _ files: [String]?) -> String?
  }

  package struct SessionKey: Hashable, Sendable {
    let application: ApplicationID
    let session: SessionID
  }

  private struct WatchedProcess {
    let process: any HostProcess
    let unit: String?
    let endWatch: @Sendable () -> Void
  }

  /// The ends known so far, of several that were asked for together.
  private final class ProcessEnds { var bySession: [SessionID: ProcessEnd] = [:] }

  /// How long the service manager has to say how a process ended; then the kernel's answer must do.
  private static let endingLimit = TimeAmount.milliseconds(300)
  /// How long it has to say whether the user's session ends; then the session is taken to continue.
  private static let sessionLimit = TimeAmount.seconds(2)

  private let eventLoop: any EventLoop
  private let executor: EventLoopTaskExecutor
  package let host: any ProcessHost
  /// `nil` if the broker runs without one.
  private let manager: (any ServiceManager)?
  private let logger: Logger
  private var watched: [SessionKey: WatchedProcess] = [:]
  /// Questions how a process ended, by number.
  private var questions: [Int: CheckedContinuation<ProcessEnd, Never>] = [:]
  private var questionCounter = 0
  private var unitStarts = 0

  package init(on eventLoop: any EventLoop, host: any ProcessHost, manager: (any ServiceManager)?, logger: Logger) {
    (self.eventLoop, self.host, self.manager, self.logger) = (eventLoop, host, manager, logger)
    executor = EventLoopTaskExecutor(eventLoop)
  }

  package var isStartingUnits: Bool { unitStarts > 0 }
  /// Whether the end of a process is being asked for.
  package var isAsking: Bool { !questions.isEmpty }

  var holdings: Holdings {
    ["watched processes": watched.count, "questions about ends": questions.count, "starts of units": unitStarts]
  }

  /// Stops watching processes and answers pending questions.
  package func stop() {
    for process in watched.values { process.endWatch() }
    watched = [:]
    for number in questions.keys { answer(ProcessEnd(), to: number) }
  }

  // MARK: Ends

  package func watch(_ process: (any HostProcess)?, _ key: SessionKey, for delegate: isolated some Delegate) {
    unwatch(key)
    guard let process else { return delegate.report(.exited(key, ProcessEnd())) }
    do throws(TransportError) {
      let endWatch = try process.watch(on: eventLoop) { [weak delegate] in
        delegate?.assumeIsolated { $0.processes.ended(key, for: $0) }
      }
      watched[key] = WatchedProcess(process: process, unit: manager?.unit(ofProcess: process.pid), endWatch: endWatch)
    } catch {
      logger.error("a client's end will go unnoticed: \(error)", metadata: ["pid": "\(process.pid)"])
    }
  }

  package func unwatch(_ key: SessionKey) { watched.removeValue(forKey: key)?.endWatch() }

  private func ended(_ key: SessionKey, for delegate: isolated some Delegate) {
    guard let watch = watched[key] else { return }
    guard let manager else {
      delegate.report(.exited(key, ProcessEnd(watch.process.ending)))
      return delegate.carryOut()
    }
    Task {
      let end = await end(of: watch, manager, for: delegate)
      // Meanwhile another process may have resumed the session.
      guard watched[key]?.process === watch.process else { return }
      delegate.report(.exited(key, end))
      delegate.carryOut()
    }
  }

  package func probe(
    _ sessions: [SessionID],
    of application: ApplicationID,
    _ call: ProbedCall,
    for delegate: isolated some Delegate
  ) {
    var ended: [SessionID: WatchedProcess] = [:]
    for session in sessions {
      let watch = watched[SessionKey(application: application, session: session)]
      if let watch, watch.process.hasExited { ended[session] = watch }
    }
    guard let manager, !ended.isEmpty else {
      let ends = ended.mapValues { ProcessEnd($0.process.ending) }
      return delegate.report(.probed(application, sessions, ended: ends, call))
    }
    let ends = ProcessEnds()
    for (session, watch) in ended {
      Task {
        ends.bySession[session] = await end(of: watch, manager, for: delegate)
        guard ends.bySession.count == ended.count else { return }
        delegate.report(.probed(application, sessions, ended: ends.bySession, call))
        delegate.carryOut()
      }
    }
  }

  /// Whether the user's session ends with the broker, if the manager answers in time.
  package func isUserSessionEnding(for delegate: isolated some Delegate) async -> Bool {
    guard let manager else { return false }
    return await end(of: nil, manager, within: Self.sessionLimit, for: delegate).isLogout
  }

  /// How a process ended: the kernel's answer, and the manager's about its unit if that comes in time.
  private func end(
    of watch: WatchedProcess?,
    _ manager: any ServiceManager,
    within limit: TimeAmount = endingLimit,
    for delegate: isolated some Delegate
  ) async -> ProcessEnd {
    let (ending, unit) = (watch?.process.ending ?? .unknown, watch?.unit)
    questionCounter += 1
    let number = questionCounter
    let timeout = eventLoop.scheduleTask(in: limit) {
      delegate.assumeIsolated { $0.processes.answer(ProcessEnd(ending, unit: unit), to: number) }
    }
    return await withTaskExecutorPreference(executor) {
      await withCheckedContinuation { waiting in
        questions[number] = waiting
        Task {
          var end = ProcessEnd(ending, isLogout: await manager.isStopping(), unit: unit)
          if !end.isLogout, let watch, let unit, let result = try? await manager.result(ofUnit: unit) {
            end.ending = ending.refined(by: result, process: watch.process.pid)
          }
          delegate.processes.answer(end, to: number)
          timeout.cancel()
        }
      }
    }
  }

  /// The first answer counts.
  private func answer(_ end: ProcessEnd, to number: Int) {
    questions.removeValue(forKey: number)?.resume(returning: end)
  }

  /// Sessions that the archive lists as live though their processes have ended.
  func endedSessions(of records: [SessionRecord]) -> Set<SessionID> {
    var ended: Set<SessionID> = []
    for record in records where record.ending == nil {
      let facts = SessionFacts(stored: record.facts)
      guard !facts.isDetached else { continue }
      if facts.process.map({ host.process($0.identity) == nil }) ?? true { ended.insert(record.session) }
    }
    return ended
  }

  // MARK: Units

  /// The unit of a process that has just connected.
  package func unit(of process: (any HostProcess)?) -> String? {
    guard let manager, let process, let unit = manager.unit(ofProcess: process.pid) else { return nil }
    // The number of a live process is not reused.
    return process.hasExited ? nil : unit
  }

  package func checkUnit(_ unit: UnitName, _ key: SessionKey, for delegate: isolated some Delegate) {
    guard let manager else { return }
    Task {
      do throws(ServiceManagerError) {
        let files = try await manager.unitFiles(of: unit.description)
        delegate.report(.unitChecked(key, unit, files))
        delegate.carryOut()
      } catch {
        // The earlier result still holds.
        logger.debug("unit \(unit) was not read: \(error)")
      }
    }
  }

  package func startUnit(_ unit: UnitName, for application: ApplicationID, _ delegate: isolated some Delegate) {
    guard let manager else {
      let message = "the broker runs without a service manager; start it by hand: systemctl --user start \(unit)"
      return delegate.report(.unitFailed(application, unit, message))
    }
    unitStarts += 1
    Task {
      defer { unitStarts -= 1 }
      do throws(ServiceManagerError) {
        let files = try await manager.unitFiles(of: unit.description)
        guard let refusal = delegate.refusal(to: unit, for: application, files) else {
          return try await manager.startUnit(unit.description)
        }
        delegate.report(.unitFailed(application, unit, refusal))
      } catch {
        delegate.report(.unitFailed(application, unit, error.description))
      }
      delegate.carryOut()
    }
  }
}

extension ClientProcess {
  /// The process of a connection; `nil` if it is indistinguishable from a later one with its number.
  init?(_ process: (any HostProcess)?, _ peer: PeerCredentials) {
    guard let identity = process?.identity else { return nil }
    self.init()
    (pid, uid) = (Int64(peer.pid), Int64(peer.uid))
    (startTicks, bootID) = (Int64(clamping: identity.startTicks), identity.bootID)
  }

  var identity: ProcessIdentity {
    ProcessIdentity(pid: Int32(clamping: pid), startTicks: UInt64(clamping: startTicks), bootID: bootID)
  }
}
