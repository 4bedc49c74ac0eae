// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// What only programs written for it can show of the library in Python: scenarios of `Tests/Clients/libraries`.
@Suite(.broker, .timeLimit(.minutes(10))) struct ClientLibraryScenarioTests {
  private static let threads = [
    ("closes", "close() ends the calls of other threads at once"),
    ("closes_while_reconnecting", "close() ends calls and serving of other threads also while they connect again"),
    ("closes_while_reconnecting_in_asyncio", "so it does in asyncio, and cancels no task of the program"),
    ("ends_serving", "close() ends serving in another thread without an error, also without patience"),
    ("opens_no_more", "a session that is closed while open() waits for another thread stays closed"),
    ("registers_classes", "a class can be registered while another thread connects again"),
    ("forks", "a child that is forked while another thread's call waits is refused the session, and opens its own"),
    ("ends_while_sessions_open", "at the end of the program no session is left out while another thread opens one"),
    ("stays_in_its_loop", "from another event loop an AsyncSession refuses calls at once"),
  ]

  @Test(arguments: threads) func threadsShareASession(_ scenario: String, _ promise: String) throws {
    let result = try run("threads", [scenario, broker.socket])
    #expect(result.end == .exit(0), "\(promise): \(result.output)\(result.errors)")
  }

  private static let callbacks: [(name: String, promise: String)] = [
    ("wait_until_register_has_returned", "whatever comes with the answer is called later, in the next call or turn"),
    ("wait_until_the_session_is_open", "what is asked of a delegate waits until the program has the session"),
    ("wait_for_attributes", "also if the registration has to read what the object's attributes were"),
    ("wait_for_the_end_of_a_batch", "so it is at the end of a batch"),
    ("wait_in_asyncio", "so it is in asyncio, however the registration is awaited"),
    ("do_not_wait_for_a_register_that_fails", "a registration that fails after its answer holds nothing up"),
    ("come_to_a_late_process", "a process that comes late has the object into which its state is decoded"),
    ("are_told_of_when_they_fail", "what a callback of a notification raises is logged, also if it is a coroutine"),
    (
      "cannot_save_what_waits_for_them",
      "a save in a callback is refused at once, one in a task beside it joins the round"
    ),
    ("give_what_is_refused", "what the broker does not store of what a callback has given is logged"),
  ]

  @Test func callbacksAreCalledInTimeAndFailAloud() throws { try hold("callbacks", Self.callbacks) }

  private static let endings: [(name: String, promise: String)] = [
    ("remove_what_the_user_closes", "a block that ends well removes what is saved if it is told to"),
    ("remove_nothing_by_a_signal", "one that a signal ends keeps it, in whatever way that reaches the program"),
    ("are_no_crash_of_a_program_that_ends_by_itself", "so it says goodbye, unless it has closed the session or fails"),
    ("are_said_of_a_session_that_is_dropped", "so does a session that the program has dropped, while it goes on"),
  ]

  @Test func aSignalIsNoWishAndAnEndNoCrash() throws { try hold("endings", Self.endings) }

  private static let batch: [(name: String, promise: String)] = [
    ("is_sent_before_anything_is_answered", "a batch waits once, for all of its answers"),
    ("is_saved", "what it registers and encodes is saved, in its order, also in memory"),
    ("tells_errors_apart", "each of its calls has its own result or error, and a block that fails sends nothing"),
    ("takes_nothing_after_its_block", "a call that comes when the block ends, or later, is refused instead of lost"),
    ("ends_all_of_its_futures", "no future stays open, whatever ends the block, and waiting in the block is refused"),
    ("is_made_again_on_the_next_connection", "calls whose answers are lost are made again, if there is patience"),
    ("gives_up_after_silence", "a broker that says nothing costs a batch as much time as one call"),
  ]

  @Test func callsAreMadeTogether() throws { try hold("batch", Self.batch) }

  private static let arguments: [(name: String, promise: String)] = [
    ("name_the_unit_of_an_object", "an object may have a unit that makes it, as a session may"),
    ("have_names_of_python", "what a session says of itself arrives under the names of the protocol"),
  ]

  @Test func argumentsReachTheBroker() throws { try hold("arguments", Self.arguments) }

  private static let plain: [(name: String, promise: String)] = [
    ("is_a_mapping", "what is decoded is a mapping, which is empty where nothing is saved"),
    ("holds_a_value", "what is no object is saved as Swift saves it, with a broker and without, and comes back"),
    ("holds_an_object_whose_only_field_is_value", "an object that is saved as a plain value is comes back as one"),
    ("holds_what_a_callback_gives", "so is what a callback gives, except for None, and what a script stores"),
  ]

  @Test func aStateNeedsNoType() throws { try hold("plain", Self.plain) }

  private static let typed: [(name: String, promise: String)] = [
    ("comes_back", "values of all types that the page names come back, with references to objects"),
    ("comes_back_in_asyncio", "so they do in asyncio, from callbacks, and as the application's own state"),
    ("is_of_another_version", "unknown keys are ignored, defaults fill in, and an error names path, field and type"),
    ("is_of_the_first_type_that_fits", "text may be a path or a date, and parameters of generic types are replaced"),
    ("older_forms_are_migrated", "a dataclass with a version migrates what an older program has saved"),
    ("cannot_be_written", "what no type would bring back is refused, with its path and field"),
    ("is_nested_too_deep", "a state with more levels than Python can write is refused with its path and the limit"),
    ("fits_its_type_when_it_is_written", "a value that its type could not be read from is refused when it is written"),
  ]

  @Test func aStateIsAValueOfAType() throws { try hold("typed", Self.typed) }

  private static let attributes: [(name: String, promise: String)] = [
    ("come_back", "they have what was saved when their object is registered, instead of what was set before"),
    ("are_pushed_once_a_turn", "a thousand writes are one push, also of what is changed in place"),
    ("are_pushed_once_a_turn_in_asyncio", "so they are in asyncio, and nothing is lost at its end"),
    ("are_not_lost_at_the_end", "what was set last is saved at goodbye, close, save, an exception and at the very end"),
    ("are_what_the_broker_asks_for", "a session that serves answers with them, and says why it cannot"),
    ("outlive_what_they_are_not", "what does not fit is left out and told; copies are not registered"),
    ("are_saved_whoever_holds_them", "what was changed in place without an access is saved at the end"),
    ("are_saved_without_those_that_cannot_be", "a value that cannot be written holds up no others, also not close()"),
    ("fit_their_annotations_when_they_are_saved", "a value that could not be restored leaves the last good one saved"),
    ("are_pushed_again_if_they_change_meanwhile", "what another thread changes while it is read is pushed later"),
    ("are_refused_if_they_could_not_be_restored", "a type that cannot be read, slots and options are refused by name"),
    ("are_marked_only_by_what_may_change_them", "reading what cannot be changed in place pushes nothing"),
    ("are_killed_at_any_time", "what a turn has pushed outlives SIGKILL"),
  ]

  @Test func restorableAttributes() throws { try hold("attributes", Self.attributes) }

  /// All in one process, which starts in a third of a second.
  private func hold(_ program: String, _ scenarios: [(name: String, promise: String)]) throws {
    let result = try run(program, [broker.socket] + scenarios.map(\.name))
    let broken = scenarios.first { result.errors.contains("in \($0.name)\n") }?.promise ?? program
    #expect(result.end == .exit(0), "\(broken): \(result.errors)")
    if !result.output.isEmpty { print(result.output) }
  }

  private func run(_ program: String, _ arguments: [String]) throws -> (
    end: ChildProcess.End, output: String, errors: String
  ) {
    try ChildProcess.run(
      ["python3", "\(Products.repository)/Tests/Clients/libraries/\(program).py"] + arguments,
      environment: [
        "PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1",
      ],
      Deadline(.seconds(60))
    )
  }
}
