// SPDX-License-Identifier: Apache-2.0

package import Logging
package import NIOCore
package import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// What the gateway of processes reports.
package enum ProcessEvent: Sendable {
  case exited(ProcessGateway.SessionKey, ProcessEnd)
  /// How these of the sessions' processes have ended; the others live.
  case probed(ApplicationID, [SessionID], ended: [SessionID: ProcessEnd], ProbedCall)
  case unitChecked(ProcessGateway.SessionKey, UnitName, [String]?)
  case unitFailed(ApplicationID, UnitName, String)
}

/// Processes of sessions: watching them end, finding out how, and starting them again by their units.
///
/// Used by its delegate only, on whose executor all of it runs.
package final class ProcessGateway {
  package protocol Delegate: Actor {
    var processes: ProcessGateway { get }
    /// `carryOut` follows if this comes later than in the call that asked for it.
    func report(_ event: ProcessEvent)
    func carryOut()
    /// Why the unit is not to be started for the application; nil if it is.
    func refusal(to unit: UnitName, for application: ApplicationID, _ files: [String]?) -> String?
  }

  /// A session of an application.
  package struct SessionKey: Hashable, Sendable {
    let application: ApplicationID
    let session: SessionID
  }

  private struct WatchedProcess {
    let process: any HostProcess
    /// The unit it belongs to.
    let unit: String?
    let endWatch: @Sendable () -> Void
  }

  /// What is known so far of several ends that are asked for at once.
  private final class ProcessEnds { var bySession: [SessionID: ProcessEnd] = [:] }

  /// The service manager has this long to say how a process ended; then what the kernel says must do.
  private static let endingLimit = TimeAmount.milliseconds(300)
  /// It has this long to say whether the user's session ends; then the session is taken to continue.
  private static let sessionLimit = TimeAmount.seconds(2)

  private let eventLoop: any EventLoop
  /// Resumes what has waited.
  private let executor: EventLoopTaskExecutor
  package let host: any ProcessHost
  /// Nil if the broker runs without one.
  private let manager: (any ServiceManager)?
  private let logger: Logger
  private var watched: [SessionKey: WatchedProcess] = [:]
  /// Questions how a process ended, by number.
  private var questions: [Int: CheckedContinuation<ProcessEnd, Never>] = [:]
  private var questionCounter = 0
  /// Units that the manager is starting.
  private var unitStarts = 0

  package init(on eventLoop: any EventLoop, host: any ProcessHost, manager: (any ServiceManager)?, logger: Logger) {
    (self.eventLoop, self.host, self.manager, self.logger) = (eventLoop, host, manager, logger)
    executor = EventLoopTaskExecutor(eventLoop)
  }

  package var isStartingUnits: Bool { unitStarts > 0 }
  /// How processes have ended is being asked.
  package var isAsking: Bool { !questions.isEmpty }

  var holdings: Holdings {
    ["watched processes": watched.count, "questions about ends": questions.count, "starts of units": unitStarts]
  }

  /// Stops watching processes, and answers what was asked.
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
      // Meanwhile the session may have been resumed by another process.
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

  /// Whether the session of the user ends with the broker, as far as the manager says so in time.
  package func isUserSessionEnding(for delegate: isolated some Delegate) async -> Bool {
    guard let manager else { return false }
    return await end(of: nil, manager, within: Self.sessionLimit, for: delegate).isLogout
  }

  /// How a process ended: what the kernel says, and what the manager knows of its unit if it says so in time.
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

  /// The first answer to a question holds.
  private func answer(_ end: ProcessEnd, to number: Int) {
    questions.removeValue(forKey: number)?.resume(returning: end)
  }

  /// Sessions the archive knows as live whose processes are gone.
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
    // As long as the process lives, its number is its own.
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
        // What was known of it before still holds.
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
  /// The process at the other end of a connection; nil where it cannot be told apart from a later one of its number.
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
