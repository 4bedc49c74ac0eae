// SPDX-License-Identifier: Apache-2.0

/// How a program ended, as the manager tells what runs after it.
struct RunEnding {
  /// The manager's own statuses for a directory that cannot be entered and a program that cannot be executed, and that
  /// of sysexits for an invalid file. The unit is not started again after them, until the next login.
  enum Status {
    static let invalid: Int32 = 78
    static let directory: Int32 = 200
    static let program: Int32 = 203
  }

  /// `nil` if a signal ended it.
  let exitStatus: Int32?
  /// `SIGSEGV`; `nil` if it exited.
  let signal: String?
  /// Whether the manager takes it for a failure.
  let hasFailed: Bool

  /// `nil` if no program was started.
  init?(_ variable: (String) -> String?) {
    guard let code = variable("EXIT_CODE"), let status = variable("EXIT_STATUS") else { return nil }
    exitStatus = code == "exited" ? Int32(status) : nil
    signal = code == "exited" ? nil : "SIG\(status)"
    hasFailed = variable("SERVICE_RESULT") != "success"
  }

  /// Whether the program has nothing more to do, if nobody stopped it.
  var isDone: Bool { exitStatus == 0 && !hasFailed }

  /// What becomes of a program that has failed, and what to do.
  func message(of id: RunID, unit: String) -> String {
    let isInvalid = [Status.invalid, Status.directory, Status.program].contains(exitStatus)
    let how = exitStatus.map { "with status \($0)" } ?? "by \(signal ?? "a signal")"
    // Which failure is the last one the manager decides only afterwards, and tells nobody.
    let next = isInvalid ? "at the next login" : "after the fifth time in a minute only at the next login"
    return """
      \(id) ended \(how) and is started again, \(next)
        See why: journalctl --user -u \(unit)
        Start it before: systemctl --user reset-failed \(unit); systemctl --user start \(unit)
        Or end it: restorationctl run --forget \(id)
      """
  }
}
