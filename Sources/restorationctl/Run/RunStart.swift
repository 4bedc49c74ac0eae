// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Whether a program that was started lives, decided from what the manager says of its unit.
struct RunStart {
  enum Verdict: Equatable {
    /// It has lived for a second, or was running before.
    case lives
    /// It is too early to say.
    case undecided
    /// It has failed; how, if that is known.
    case failed(String?)
    /// It does not run, and has not failed: it is done, or was stopped.
    case isOver
  }

  /// How long a program has to live.
  static let lifeMicroseconds: Int64 = 1_000_000

  /// What `systemctl show` is asked for.
  static let properties =
    "ActiveState,SubState,Job,NRestarts,MainPID,ExecMainStartTimestampMonotonic,ExecMainCode,ExecMainStatus"

  private let values: [Substring: Substring]

  /// `nil` if the manager does not know the unit.
  init?(_ text: String) {
    let lines = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1) }
    values = Dictionary(lines.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { $1 }
    guard values["ActiveState"] != nil else { return nil }
  }

  /// The unit's process; 0 if it has none.
  var process: Int64 { number("MainPID") }

  /// Whether the process has turned into the program: at first it is this tool, for longer on a machine that is busy.
  var isProgram: Bool {
    guard process > 0, let text = try? OutputFile.read("/proc/\(process)/cmdline"), !text.isEmpty else { return false }
    return !text.split(separator: "\0").dropFirst().starts(with: ["run", "--become"])
  }

  /// - Parameters:
  ///   - begin: when the start was asked for, in microseconds of the monotonic clock.
  ///   - life: since when the process is the program.
  ///   - now: by the same clock.
  func verdict(startedAfter begin: Int64, livingSince life: Int64?, now: Int64) -> Verdict {
    let isNew = number("ExecMainStartTimestampMonotonic") >= begin
    if !isNew, number("Job") > 0 { return .undecided }
    // It was started again meanwhile.
    if isNew, number("NRestarts") > 0 { return .failed(nil) }
    switch values["ActiveState"] {
    case "active", "reloading":
      return !isNew || now - (life ?? now) >= Self.lifeMicroseconds ? .lives : .undecided
    case "failed": return .failed(ending)
    case "activating":
      return isNew && values["SubState"]?.hasPrefix("auto-restart") == true ? .failed(ending) : .undecided
    case "deactivating": return .undecided
    default: return .isOver
    }
  }

  private func number(_ name: Substring) -> Int64 { values[name].flatMap { Int64($0) } ?? 0 }

  /// As waitid(2) tells it.
  private var ending: String? {
    let status = Int32(clamping: number("ExecMainStatus"))
    return switch number("ExecMainCode") {
    case 1: "with status \(status)"
    case 2, 3: "by signal \(status) (\(String(cString: strsignal(status))))"
    default: nil
    }
  }

  /// Microseconds of a clock that never goes back, which is the manager's as well.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }
}
