// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// Processes of sessions: watching them end, finding out how, and starting them again by their units.
extension BrokerService {
  /// The service manager has so long to say how a process ended; then what the kernel says must do.
  private static let endingMilliseconds: Int64 = 300

  // MARK: Ends

  func watch(_ handle: ProcessHandle?, _ key: SessionKey) {
    processes.removeValue(forKey: key)?.token.cancel()
    guard let handle else {
      core.processExited(key.application, key.session, at: clock.now)
      return
    }
    do throws(TransportError) {
      let token = try watcher.watch(handle, on: eventLoop) { [weak self] in
        self?.assumeIsolated { $0.processEnded(key) }
      }
      let unit = manager?.unit(ofProcess: handle.pid)
      processes[key] = WatchedProcess(handle: handle, token: token, unit: unit)
    } catch {
      logger.error("a client's end will go unnoticed: \(error)", metadata: ["pid": "\(handle.pid)"])
    }
  }

  private func processEnded(_ key: SessionKey) {
    guard let process = processes[key] else { return }
    guard let manager else {
      let end = ProcessEnd(process.ending)
      return handle { $0.processExited(key.application, key.session, end, at: $1) }
    }
    Task {
      let end = await end(of: process, manager)
      // The session may have gone on in another process meanwhile.
      guard processes[key]?.handle === process.handle else { return }
      handle { $0.processExited(key.application, key.session, end, at: $1) }
    }
  }

  func probe(_ sessions: [SessionID], of application: ApplicationID, _ call: ProbedCall) {
    var ended: [SessionID: WatchedProcess] = [:]
    for session in sessions {
      guard let process = processes[SessionKey(application: application, session: session)],
        process.handle.hasExited
      else { continue }
      ended[session] = process
    }
    guard let manager, !ended.isEmpty else {
      let ends = ended.mapValues { ProcessEnd($0.ending) }
      core.probed(application, sessions, ended: ends, call, at: clock.now)
      return
    }
    Task {
      let asked = ended.mapValues { process in Task { await end(of: process, manager) } }
      var ends: [SessionID: ProcessEnd] = [:]
      for (session, end) in asked { ends[session] = await end.value }
      handle { [ends] in $0.probed(application, sessions, ended: ends, call, at: $1) }
    }
  }

  /// How a process ended: what the kernel says, and within its time what the manager knows of its unit.
  private func end(of process: WatchedProcess, _ manager: any ServiceManager) async -> ProcessEnd {
    let (ending, unit, pid) = (process.ending, process.unit, process.handle.pid)
    endCounter += 1
    let number = endCounter
    let limit = eventLoop.scheduleTask(in: .milliseconds(Self.endingMilliseconds)) {
      self.assumeIsolated { $0.tell(ProcessEnd(ending, unit: unit), to: number) }
    }
    Task {
      self.tell(await self.end(ending, of: pid, unit, manager), to: number)
      limit.cancel()
    }
    return await withCheckedContinuation { whenEndKnown[number] = $0 }
  }

  /// The first who says how a process ended is believed.
  private func tell(_ end: ProcessEnd, to number: Int) {
    whenEndKnown.removeValue(forKey: number)?.resume(returning: end)
  }

  /// Nobody waits any longer to hear how processes ended.
  func forgetEnds() { for number in whenEndKnown.keys { tell(ProcessEnd(), to: number) } }

  private func end(
    _ ending: ProcessEnding,
    of pid: Int32,
    _ unit: String?,
    _ manager: any ServiceManager
  ) async -> ProcessEnd {
    var end = ProcessEnd(ending, isLogout: await manager.isStopping(), unit: unit)
    if !end.isLogout, let unit, let result = try? await manager.result(ofUnit: unit) {
      end.ending = ending.refined(by: result, process: pid)
    }
    return end
  }

  // MARK: Units

  /// The unit of a process that has just connected.
  func unit(of process: ProcessHandle?) -> String? {
    guard let manager, let process, let unit = manager.unit(ofProcess: process.pid) else { return nil }
    // As long as the process lives, its number is its own.
    return process.hasExited ? nil : unit
  }

  func checkUnit(_ unit: UnitName, _ key: SessionKey) {
    guard let manager else { return }
    Task {
      do throws(ServiceManagerError) {
        let files = try await manager.unitFiles(of: unit.description)
        handle { $0.unitChecked(key.application, key.session, unit, files, at: $1) }
      } catch {
        // What was known of it before holds on.
        logger.debug("unit \(unit) was not read: \(error)")
      }
    }
  }

  func startUnit(_ unit: UnitName, for application: ApplicationID) {
    guard let manager else {
      let message = "the broker runs without a service manager; start it by hand: systemctl --user start \(unit)"
      return core.unitFailed(application, unit, message, at: clock.now)
    }
    unitStarts += 1
    Task {
      defer { unitStarts -= 1 }
      do throws(ServiceManagerError) {
        let files = try await manager.unitFiles(of: unit.description)
        if let refusal = core.refusal(to: unit, for: application, files) {
          handle { $0.unitFailed(application, unit, refusal, at: $1) }
        } else {
          try await manager.startUnit(unit.description)
        }
      } catch {
        handle { $0.unitFailed(application, unit, error.description, at: $1) }
      }
    }
  }
}

extension BrokerService.WatchedProcess {
  fileprivate var ending: ProcessEnding {
    switch handle.ending {
    case .exited(let code): .exited(code: code)
    case .signalled(let signal): .signalled(signal: signal)
    case nil: .unknown
    }
  }
}
