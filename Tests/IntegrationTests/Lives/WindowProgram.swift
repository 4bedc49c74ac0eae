// SPDX-License-Identifier: Apache-2.0

internal import TestSupport

/// A program with a window that a person starts: `Tests/Clients/lives/window.py`.
final class WindowProgram {
  private let process: ChildProcess
  private let errors: String

  /// - Parameter words: its role, and its options.
  init(_ words: String..., at socket: String = broker.socket) throws {
    errors = "\(socket).programs"
    process = try ChildProcess(
      ["python3", "\(Products.repository)/Tests/Clients/lives/window.py"] + words,
      environment: [
        "RESTORATIOND_SOCKET": socket, "PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
      ],
      errors: errors
    )
  }

  /// Waits until it has printed a line, and passes over others.
  func awaits(_ line: String) throws {
    var seen: [String] = []
    func failure(_ end: String) -> TestFailure {
      TestFailure("\(line) is missing: it printed \(seen) and \(end): \((try? Files.text(errors)) ?? "")")
    }
    while true {
      let next: String?
      do { next = try process.output?.next() } catch { throw failure("then, \(error)") }
      guard let next else { throw failure("ended") }
      if next == line { return }
      seen.append(next)
    }
  }

  /// Types a line, and waits until it is saved.
  func type(_ line: String) throws {
    try process.write(line + "\n")
    try awaits("saved \(line)")
  }

  /// Its user closes it.
  func close() throws {
    process.closeInput()
    let end = try process.waitForEnd()
    guard end == .exit(0) else { throw TestFailure("it ended with \(end): \((try? Files.text(errors)) ?? "")") }
  }

  func kill() throws { try process.kill() }
}
