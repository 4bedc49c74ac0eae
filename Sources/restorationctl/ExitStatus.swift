// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// How the tool ends, by the rules of LSB and sysexits; `Protocol/restorationctl.md` lists them.
enum ExitStatus {
  /// The broker answered with an error, the person asked said no, or not all was done.
  static let refused = ExitCode(1)
  /// No broker is running.
  static let notRunning = ExitCode(3)
  /// There is no such application, object or generation.
  static let notThere = ExitCode(4)
  /// The command line is wrong.
  static let usage = ExitCode(64)
  /// A broker is there and cannot be spoken with.
  static let unavailable = ExitCode(69)
  /// The output could not be written.
  static let outputFailed = ExitCode(74)
  /// Nothing was done; the same again may succeed later.
  static let tryAgain = ExitCode(75)
}
