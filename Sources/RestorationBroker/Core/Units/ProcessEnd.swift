// SPDX-License-Identifier: Apache-2.0

/// How a process ended, as the host knows it.
package enum ProcessEnding: Hashable, Sendable {
  case exited(code: Int32)
  case signalled(signal: Int32)
  /// The kernel, or a daemon on its behalf, killed it because memory ran out.
  case outOfMemory
  case stopped
  case unknown
}

extension ProcessEnding {
  /// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV and SIGSYS: faults of the process itself.
  private static let faults: Set<Int32> = [4, 5, 6, 7, 8, 11, 31]

  /// Whether the process has failed, possibly because of a state (R31). Otherwise it ended on purpose, or another
  /// process ended it. `nil` if unknown.
  package var isFailure: Bool? {
    switch self {
    // Shells and signal handlers report the signal this way.
    case .exited(let code) where (129...192).contains(code): Self.faults.contains(code - 128)
    case .exited(let code): code != 0
    case .signalled(let signal): Self.faults.contains(signal)
    case .outOfMemory, .stopped: false
    case .unknown: nil
    }
  }
}

package struct ProcessEnd: Hashable, Sendable {
  package var ending: ProcessEnding
  /// The service manager was ending, because the user logged out.
  package var isLogout: Bool
  package var unit: String?

  package init(_ ending: ProcessEnding = .unknown, isLogout: Bool = false, unit: String? = nil) {
    (self.ending, self.isLogout, self.unit) = (ending, isLogout, unit)
  }
}

extension SessionEnding {
  /// The ending of a session whose process ended without a goodbye (R30).
  init(_ end: ProcessEnd) { self = end.isLogout ? .logout : end.ending == .stopped ? .stopped : .crashed }
}
