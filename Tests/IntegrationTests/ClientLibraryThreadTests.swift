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

  @Test("close() ends the calls of other threads at once")
  func closes() async throws { try await run("closes") }

  @Test("close() ends calls and serving of other threads also while they connect again")
  func closesWhileReconnecting() async throws { try await run("closes_while_reconnecting") }

  @Test("close() ends serving in another thread without an error, also without patience")
  func endsServing() async throws { try await run("ends_serving") }

  @Test("A session that is closed while open() waits for another thread stays closed")
  func opensNoMore() async throws { try await run("opens_no_more") }

  @Test("A class can be registered while another thread connects again")
  func registersClasses() async throws { try await run("registers_classes") }

  @Test("A child that is forked while another thread's call waits is refused the session, and opens its own")
  func forks() async throws { try await run("forks") }

  @Test("From another event loop an AsyncSession refuses calls at once")
  func staysInItsLoop() async throws { try await run("stays_in_its_loop") }
}
