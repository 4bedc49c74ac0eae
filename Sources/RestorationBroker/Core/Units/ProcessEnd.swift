// SPDX-License-Identifier: Apache-2.0

/// How a process ended, as the host knows it.
package enum ProcessEnding: Hashable, Sendable {
  case exited(code: Int32)
  case signalled(signal: Int32)
  /// The kernel, or a daemon for it, killed it because memory ran out.
  case outOfMemory
  /// The service manager stopped its unit.
  case stopped
  case unknown
}

extension ProcessEnding {
  /// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV and SIGSYS: what a process does to itself.
  private static let faults: Set<Int32> = [4, 5, 6, 7, 8, 11, 31]

  /// Whether the process has failed, for which a state may be to blame (R31). Everything else was done to it, or done
  /// on purpose. Nil if nobody can tell.
  package var isFailure: Bool? {
    switch self {
    // Shells, and programs that look after signals, so say which signal it was.
    case .exited(let code) where (129...192).contains(code): Self.faults.contains(code - 128)
    case .exited(let code): code != 0
    case .signalled(let signal): Self.faults.contains(signal)
    case .outOfMemory, .stopped: false
    case .unknown: nil
    }
  }
}

/// The end of a session's process.
package struct ProcessEnd: Hashable, Sendable {
  package var ending: ProcessEnding
  /// The service manager was ending: the user's session was over.
  package var isLogout: Bool
  /// The unit the process belonged to.
  package var unit: String?

  package init(_ ending: ProcessEnding = .unknown, isLogout: Bool = false, unit: String? = nil) {
    (self.ending, self.isLogout, self.unit) = (ending, isLogout, unit)
  }
}

extension SessionEnding {
  /// How a session ended whose process ended without a goodbye (R30).
  init(_ end: ProcessEnd) { self = end.isLogout ? .logout : end.ending == .stopped ? .stopped : .crashed }
}
