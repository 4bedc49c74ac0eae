// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The messages between the broker and a service manager (`Protocol/service.md`): a script plays the manager, and fails
/// with a traceback.
@Suite(.scratch) struct ServiceMessageTests {
  private static let script = "\(Products.repository)/Tests/Clients/service/service.py"

  private static func play(_ scenario: String, wrapper: [String] = []) throws {
    let variables: [String: String?] = [
      "TMPDIR": directory.path, "SWIFT_BACKTRACE": "enable=no", "NOTIFY_SOCKET": nil, "WATCHDOG_USEC": nil,
      "JOURNAL_STREAM": nil, "RESTORATIOND_ARCHIVES": nil, "RESTORATIOND_LOG_LEVEL": nil,
    ]
    let command = wrapper + ["python3", "-B", script, Products.broker, scenario]
    let result = try ChildProcess.run(command, environment: variables, Deadline(.seconds(120)))
    #expect(result.end == .exit(0), "\(scenario): \(result.errors.suffix(2_000))")
  }

  @Test(arguments: [
    "activation", "changes_are_told_once_a_second", "reload", "failure_is_told",
    "wrong_configuration_is_told", "slow_manager", "watchdog_is_for_this_process", "long_work_is_no_hang",
  ])
  func theManagerIsTold(_ scenario: String) throws { try Self.play(scenario) }

  /// Only one thread stands still, all others run: of the archives, of the event loop.
  @Test(arguments: ["archive-writer", "NIO-ELT"])
  func theWatchdogHearsNothingWhenASingleThreadHangs(_ thread: String) throws { try Self.play("watchdog:\(thread)") }

  @Test func anIdleBrokerEndsWithoutRefusingAnybody() throws { try Self.play("idle_exit") }

  /// In a mount namespace of its own, because the journal has one place only.
  @Test func logEntriesHaveFieldsInTheJournal() throws {
    let namespace = [
      "unshare", "--mount", "--map-root-user", "bash", "-c", "mount -t tmpfs tmpfs /run && exec \"$@\"", "bash",
    ]
    try Self.play("journal", wrapper: namespace)
  }
}
