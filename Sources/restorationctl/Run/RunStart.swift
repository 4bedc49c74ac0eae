// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Decides whether a started program lives, from the manager's properties of its unit.
struct RunStart {
  enum Verdict: Equatable {
    /// It has lived for a second, or was running before.
    case lives
    /// It is too early to decide.
    case undecided
    /// It has failed; how, if known.
    case failed(String?)
    /// It does not run and has not failed: it has finished or was stopped.
    case isOver
  }

  static let lifeMicroseconds: Int64 = 1_000_000

  /// The properties to request from `systemctl show`.
  static let properties =
    "ActiveState,SubState,Job,NRestarts,MainPID,ExecMainStartTimestampMonotonic,ExecMainCode,ExecMainStatus"

  private let values: [Substring: Substring]

  /// `nil` if the manager does not know the unit.
  init?(_ text: String) {
    let lines = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1) }
    values = Dictionary(lines.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { $1 }
    guard values["ActiveState"] != nil else { return nil }
  }

  /// 0 if the unit has no process.
  var process: Int64 { number("MainPID") }

  /// Whether the process executes the program. At first it executes this tool, on a busy machine for longer.
  var isProgram: Bool {
    guard process > 0, let text = try? OutputFile.read("/proc/\(process)/cmdline"), !text.isEmpty else { return false }
    return !text.split(separator: "\0").dropFirst().starts(with: ["run", "--become"])
  }

  /// - Parameters:
  ///   - begin: when the start was requested, in microseconds of the monotonic clock.
  ///   - life: when the process began to execute the program.
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

  /// In the terms of waitid(2).
  private var ending: String? {
    let status = Int32(clamping: number("ExecMainStatus"))
    return switch number("ExecMainCode") {
    case 1: "with status \(status)"
    case 2, 3: "by signal \(status) (\(String(cString: strsignal(status))))"
    default: nil
    }
  }

  /// Microseconds of the monotonic clock, which the manager uses as well.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }
}
