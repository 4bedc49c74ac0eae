// SPDX-License-Identifier: Apache-2.0

/// The user's service manager, as far as the broker needs it. Asynchronous functions run on the caller's executor up to
/// their first wait, so the broker needs no more threads.
package protocol ServiceManager: Sendable {
  /// The unit's file and its drop-ins, in the order in which they apply; `nil` if the unit does not exist.
  nonisolated(nonsending) func unitFiles(of unit: String) async throws(ServiceManagerError) -> [String]?
  /// Starts the unit; returns when its start job has ended.
  nonisolated(nonsending) func startUnit(_ unit: String) async throws(ServiceManagerError)
  /// The unit of a process, from its control group; `nil` if it has none. Does not block.
  func unit(ofProcess pid: Int32) -> String?
  /// The manager's properties of the unit and its main process.
  nonisolated(nonsending) func result(ofUnit unit: String) async throws(ServiceManagerError) -> UnitResult
  /// Whether the user's session is ending.
  nonisolated(nonsending) func isStopping() async -> Bool
}

/// A failed or unanswered call of the service manager; why, for people.
package struct ServiceManagerError: Error, Hashable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Properties of a unit, in systemd's terms.
package struct UnitResult: Hashable, Sendable {
  /// `success`, `exit-code`, `signal`, `core-dump`, `watchdog`, `timeout`, `oom-kill` or another word.
  package var result = "success"
  /// `active`, `deactivating`, `inactive`, `failed` or another word.
  package var activeState = "active"
  /// The main process that runs or ended last.
  package var mainProcess: Int32 = 0
  /// How it ended: 1 exited, 2 killed, 3 killed and dumped, 0 not yet; and the code or signal.
  package var mainCode: Int32 = 0
  package var mainStatus: Int32 = 0
  /// The unit was being stopped before the process ended.
  package var wasStopped = false
  /// The unit was unloaded after its processes ran, as units are that ended with success.
  package var wasCollected = false

  package init() {}
}

extension ProcessEnding {
  private static let (sigkill, sigterm): (Int32, Int32) = (9, 15)

  /// The process's end, after the manager has described its unit.
  ///
  /// An end by SIGTERM counts as stopped: that is how the manager stops a unit, and by now the unit may be unloaded or
  /// running again. So does a successful end if the unit has ended with success and was unloaded.
  package func refined(by unit: UnitResult, process: Int32) -> ProcessEnding {
    let isMain = unit.mainProcess == process
    var ending = self
    if ending == .unknown, isMain {
      switch unit.mainCode {
      case 1: ending = .exited(code: unit.mainStatus)
      case 2, 3: ending = .signalled(signal: unit.mainStatus)
      default: break
      }
    }
    switch ending {
    case .signalled(Self.sigkill) where unit.result == "oom-kill": return .outOfMemory
    case .signalled(Self.sigkill) where isMain && unit.result == "timeout": return .stopped
    case .signalled(Self.sigterm): return .stopped
    case .exited(code: 0) where unit.wasCollected: return .stopped
    case _ where isMain && unit.wasStopped: return .stopped
    case _ where unit.activeState == "deactivating" && unit.result == "success": return .stopped
    case .exited, .signalled, .outOfMemory, .stopped, .unknown: return ending
    }
  }
}
