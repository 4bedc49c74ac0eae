// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// One line on standard error that shows the progress of long work, if that is a terminal.
enum ProgressLine {
  private static var isShown: Bool { Terminal.hasReader && !Terminal.isDumb }

  private static let blank = "\r\u{1B}[K"

  /// Runs `body` and shows its progress on a terminal; the line disappears afterwards.
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
