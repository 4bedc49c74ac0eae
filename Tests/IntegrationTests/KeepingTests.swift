// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// Connections outlive their broker, as a service manager sees it that keeps its descriptors.
///
/// The scenarios are in `Tests/Clients/keeping`, which plays the manager; a real one is asked in other suites.
@Suite(.scratch) struct KeepingTests {
  private static let scenarios = [
    "idle_connections_survive_a_kill",
    "idle_connections_survive_a_kill_after_an_orderly_end",
    "busy_connections_end_with_a_kill",
    "all_connections_survive_an_orderly_end",
    "a_reader_that_does_not_read_gets_all_its_answers",
    "requests_in_flight_are_answered_exactly_once",
    "parked_calls_end_early",
    "subscriptions_survive",
    "http_connections_survive",
    "detached_sessions_stay_with_their_connection",
    "what_was_not_stored_is_asked_for_by_the_next_broker",
    "notifications_are_on_disk_before_a_connection_is_idle",
    "requests_may_be_cut_anywhere_by_an_orderly_end",
    "a_body_that_comes_while_others_are_waited_for_is_whole",
    "a_peer_that_has_ended_its_input_gets_all_its_answers",
    "a_notification_that_waits_holds_its_connection",
    "what_events_were_lost_is_told_before_the_end",
    "a_connection_that_closes_is_let_go",
    "connections_that_come_and_go_leave_nothing",
    "a_ledger_that_makes_no_sense_ends_connections",
    "the_library_in_python_waits_on_at_the_next_broker",
    "the_library_for_asyncio_waits_on_at_the_next_broker",
  ]

  private static func run(_ scenario: String...) throws -> (end: ChildProcess.End, output: String, errors: String) {
    try ChildProcess.run(
      ["python3", "-B", "\(Products.repository)/Tests/Clients/keeping/keeping.py"] + scenario,
      environment: ["TMPDIR": directory.path],
      Deadline(.seconds(60))
    )
  }

  @Test(arguments: scenarios) func itHoldsThat(scenario: String) throws {
    let result = try Self.run(Products.broker, scenario)
    #expect(result.end == .exit(0), "\(result.errors)")
  }

  @Test func everyScenarioIsPlayed() throws {
    #expect(try Self.run().output.split(separator: "\n").map(String.init) == Self.scenarios)
  }
}
