// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// Threads and the library in Python: the scenarios of `Tests/Clients/libraries/threads.py`.
@Suite(.timeLimit(.minutes(10))) struct ClientLibraryThreadTests {
  private func run(_ scenario: String) async throws {
    let program = "\(Products.repository)/Tests/Clients/libraries/threads.py"
    try await withBroker { broker in
      let result = try ChildProcess.run(
        ["python3", program, scenario, broker.socket],
        environment: ["PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1"],
        Deadline(.seconds(60))
      )
      #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    }
  }

  @Test("From another event loop an AsyncSession refuses calls at once")
  func staysInItsLoop() async throws {
    try await run("stays_in_its_loop")
  }
}
