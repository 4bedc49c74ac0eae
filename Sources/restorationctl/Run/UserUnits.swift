// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The user's service manager, by systemctl.
enum UserUnits {
  /// Runs systemctl and returns its output; its messages go to standard error.
  ///
  /// - Parameter words: parsed by a shell, so they must need no quotes.
  @discardableResult
  static func systemctl(_ words: String) throws -> String {
    let subject = "systemctl --user \(words)"
    guard let stream = popen("exec \(subject)", "re") else { throw failure(subject, String(cString: strerror(errno))) }
    let output = Result { () throws(OutputFile.Fault) in try OutputFile.read(fileno(stream), subject) }
    let status = pclose(stream)
    guard status == 0, let text = try? output.get() else { throw failure(subject, "status \((status >> 8) & 0xff)") }
    return text
  }

  /// Enables a unit at every login and starts it, without waiting for the start.
  ///
  /// - Parameter restarts: whether to stop it first if it is active.
  static func enable(_ id: RunID, isGraphical: Bool, restarts: Bool) throws {
    let unit = id.unit(isGraphical: isGraphical)
    try systemctl("--quiet enable \(unit)")
    // Second, so that the other unit stays as it was if this one cannot be enabled.
    try systemctl("--quiet disable \(id.unit(isGraphical: !isGraphical))")
    reset(id)
    try systemctl("--quiet --no-block \(restarts ? "restart" : "start") \(unit)")
  }

  static func disable(_ id: RunID) throws { try systemctl("--quiet disable \(id.units)") }

  /// Resets failures, so that too many earlier ones do not prevent a start.
  static func reset(_ id: RunID) {
    // Fails for a unit that is not loaded.
    _ = try? systemctl("--quiet reset-failed \(id.units) 2>/dev/null")
  }

  /// Waits until a started program lives or has ended; for ten seconds at most, if the manager is that busy.
  ///
  /// - Parameter begin: when the start was requested, by `RunStart.now`.
  static func awaitStart(of unit: String, after begin: Int64) -> RunStart.Verdict {
    var process: Int64 = 0
    var life: Int64?
    while RunStart.now - begin < 10_000_000 {
      guard let start = (try? systemctl("show --property=\(RunStart.properties) \(unit)")).flatMap(RunStart.init)
      else { break }
      if start.process != process { (process, life) = (start.process, nil) }
      if life == nil, start.isProgram { life = RunStart.now }
      let verdict = start.verdict(startedAfter: begin, livingSince: life, now: RunStart.now)
      guard verdict == .undecided else { return verdict }
      poll(nil, 0, 100)
    }
    return .undecided
  }

  /// Whether one of the units is being started or stopped, or will be; true also if the manager does not answer.
  static func hasJob(_ id: RunID) -> Bool {
    let jobs = try? systemctl("show --value --property=Job \(id.units)")
    return jobs?.contains { $0.isNumber } ?? true
  }

  private static func failure(_ subject: String, _ reason: String) -> Failure {
    let hint = "It needs a systemd user manager, and the installed units: systemctl --user status"
    return Failure(ExitStatus.refused, kind: "unitFailed", "\(subject) failed: \(reason)", hint: hint)
  }
}
