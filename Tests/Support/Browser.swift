// SPDX-License-Identifier: Apache-2.0

/// A browser without a window.
package enum Browser {
  private static let program = "/usr/bin/chromium"

  /// Whether tests with it can run; in CI they must.
  package static var isUsable: Bool { Files.exists(program) || Environment.isCI }

  /// The document as it is after it was loaded.
  ///
  /// - Parameter arguments: more of its options.
  package static func dump(
    _ address: String,
    in directory: ScratchDirectory,
    _ arguments: [String] = []
  ) throws -> String {
    let command = [
      program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--user-data-dir=\(directory.file("browser"))", "--dump-dom",
    ]
    let environment: [String: String?] = ["HOME": directory.path]
    let result = try ChildProcess.run(
      command + arguments + [address],
      environment: environment,
      Deadline(.seconds(120))
    )
    guard result.end == .exit(0) else { throw TestFailure("chromium: \(result.end)\n\(result.errors)") }
    return result.output
  }
}
