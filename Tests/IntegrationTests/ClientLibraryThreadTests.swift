// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// Threads and the library in Python: the scenarios of `Tests/Clients/libraries/threads.py`.
@Suite(.broker, .timeLimit(.minutes(10))) struct ClientLibraryThreadTests {
  private static let scenarios = [
    ("closes", "close() ends the calls of other threads at once"),
    ("closes_while_reconnecting", "close() ends calls and serving of other threads also while they connect again"),
    ("ends_serving", "close() ends serving in another thread without an error, also without patience"),
    ("opens_no_more", "a session that is closed while open() waits for another thread stays closed"),
    ("registers_classes", "a class can be registered while another thread connects again"),
    ("forks", "a child that is forked while another thread's call waits is refused the session, and opens its own"),
    ("stays_in_its_loop", "from another event loop an AsyncSession refuses calls at once"),
  ]

  @Test(arguments: scenarios) func itHoldsThat(_ scenario: String, _ promise: String) throws {
    let result = try ChildProcess.run(
      ["python3", "\(Products.repository)/Tests/Clients/libraries/threads.py", scenario, broker.socket],
      environment: ["PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1"],
      Deadline(.seconds(60))
    )
    #expect(result.end == .exit(0), "\(promise): \(result.output)\(result.errors)")
  }
}
