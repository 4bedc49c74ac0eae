// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationClient

/// One line on a terminal's standard error that says how far long work has come; nothing anywhere else.
enum ProgressLine {
  /// Whether a person is likely to look.
  private static var isShown: Bool {
    isatty(STDERR_FILENO) == 1 && getenv("TERM").map { String(cString: $0) != "dumb" } ?? false
  }

  private static let blank = "\r\u{1B}[K"

  /// Does work that tells how far it has come, if somebody looks; the line is gone afterwards.
  static func during<Result>(
    _ name: String,
    _ body: (ArchiveProgress.Handler?) async throws -> Result
  ) async throws -> Result {
    guard isShown else { return try await body(nil) }
    defer { Output.write(blank, to: .messages) }
    return try await body { progress in
      let share = progress.total.map { $0 == 0 ? "100 %" : "\(progress.done * 100 / $0) %" } ?? "\(progress.done)"
      Output.write("\(blank)\(name) \(share)", to: .messages)
    }
  }
}
