// SPDX-License-Identifier: Apache-2.0

/// How a program ended, from the variables that the manager sets for the command after it.
struct RunEnding {
  /// The manager's own statuses for a directory that cannot be entered and a program that cannot be executed, and
  /// sysexits' status for an invalid file. After them the unit is not started again until the next login.
  enum Status {
    static let invalid: Int32 = 78
    static let directory: Int32 = 200
    static let program: Int32 = 203
  }

  /// `nil` if a signal ended it.
  let exitStatus: Int32?
  /// `SIGSEGV`; `nil` if it exited.
  let signal: String?
  /// Whether the manager counts it as a failure.
  let hasFailed: Bool

  /// `nil` if no program was started.
  init?(_ variable: (String) -> String?) {
    guard let code = variable("EXIT_CODE"), let status = variable("EXIT_STATUS") else { return nil }
    exitStatus = code == "exited" ? Int32(status) : nil
    signal = code == "exited" ? nil : "SIG\(status)"
    hasFailed = variable("SERVICE_RESULT") != "success"
  }

  /// Whether the program has finished its work, unless it was stopped.
  var isDone: Bool { exitStatus == 0 && !hasFailed }

  /// Describes the failure and the next step.
  func message(of id: RunID, unit: String) -> String {
    let isInvalid = [Status.invalid, Status.directory, Status.program].contains(exitStatus)
    let how = exitStatus.map { "with status \($0)" } ?? "by \(signal ?? "a signal")"
    // The manager decides only afterwards whether this failure was the last one, and reports it to no one.
    let next = isInvalid ? "at the next login" : "after the fifth time in a minute only at the next login"
    return """
      \(id) ended \(how) and is started again, \(next)
        See why: journalctl --user -u \(unit)
        Start it before: systemctl --user reset-failed \(unit); systemctl --user start \(unit)
        Or end it: restorationctl run --forget \(id)
      """
  }
}
