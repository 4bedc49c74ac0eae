// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationClient

/// One line on a terminal's standard error that says how far long work has come; nothing anywhere else.
enum ProgressLine {
  /// Whether a person is likely to look.
  private static var isShown: Bool {
    isatty(STDERR_FILENO) == 1 && getenv("TERM").map { String(cString: $0) != "dumb" } ?? false
  }

  /// Tells how far the work called `name` has come; nil where nobody looks.
  static func handler(_ name: String) -> ArchiveProgress.Handler? {
    guard isShown else { return nil }
    return { progress in
      let isOver = progress.total.map { progress.done >= $0 } ?? false
      let share = progress.total.map { $0 == 0 ? " 100 %" : " \(progress.done * 100 / $0) %" } ?? " \(progress.done)"
      Output.write(isOver ? "\r\u{1B}[K" : "\r\u{1B}[K\(name)\(share)", to: .messages)
    }
  }
}
