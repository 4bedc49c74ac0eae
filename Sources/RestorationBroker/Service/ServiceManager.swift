// SPDX-License-Identifier: Apache-2.0

/// The user's service manager, as far as the broker needs it. Asynchronous functions run where they are called from, up
/// to where they wait for something else: the broker needs no other threads for them.
package protocol ServiceManager: Sendable {
  /// Texts of the unit's file and of its drop-ins, in the order in which they apply; nil where there is no such unit.
  nonisolated(nonsending) func unitFiles(of unit: String) async throws(ServiceManagerError) -> [String]?
  /// Starts the unit; returns when its start job is done.
  nonisolated(nonsending) func startUnit(_ unit: String) async throws(ServiceManagerError)
  /// The unit the process belongs to, from its cgroup; nil where it belongs to none. Does not block.
  func unit(ofProcess pid: Int32) -> String?
  /// What the manager knows of the unit and its main process.
  nonisolated(nonsending) func result(ofUnit unit: String) async throws(ServiceManagerError) -> UnitResult
  /// The user's session ends.
  nonisolated(nonsending) func isStopping() async -> Bool
}

/// The service manager did not do it, or did not answer; why, for people.
package struct ServiceManagerError: Error, Hashable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Properties of a unit, in the words of systemd.
package struct UnitResult: Hashable, Sendable {
  /// `success`, `exit-code`, `signal`, `core-dump`, `watchdog`, `timeout`, `oom-kill` or another word.
  package var result = "success"
  /// `active`, `deactivating`, `inactive`, `failed` or another word.
  package var activeState = "active"
  /// The main process that ended last, or runs.
  package var mainProcess: Int32 = 0
  /// How that ended: 1 exited, 2 killed, 3 killed and dumped, 0 not yet; and the code or signal.
  package var mainCode: Int32 = 0
  package var mainStatus: Int32 = 0
  /// The unit was being stopped before that process ended.
  package var wasStopped = false
  /// The unit was forgotten since its processes ran, as happens to those that ended well.
  package var wasCollected = false

  package init() {}
}

extension ProcessEnding {
  private static let (sigkill, sigterm): (Int32, Int32) = (9, 15)

  /// What is known of the process when the manager has told of its unit.
  ///
  /// Being ended by SIGTERM is being stopped: that is how the manager ends a unit, and when it is asked the unit may be
  /// gone already, or run again. So is ending well when the unit has ended well with it, and was forgotten.
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
