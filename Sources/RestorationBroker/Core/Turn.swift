// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// One application's turn in the event being handled: what it changes, answers and asks for.
///
/// It is passed `inout` to whatever decides, and exists once: queries cannot write, and a part cannot call back into
/// the application while it writes.
///
/// Invariants:
/// 1. All that is written during one event is one list, and so is all that is asked for, across applications. The
///    changes of an event share a transaction and precede what it asks for.
/// 2. `sequence` is the number of the last change written; the archive gives the same numbers.
/// 3. An answer that promises durability leaves when its change is durable (R15).
package struct Turn: ~Copyable {
  package let application: ApplicationID
  package let name: ApplicationName
  package var phase = Application.Phase.opening
  /// All clients that waited for the archive to open have left.
  private(set) var isGivenUp = false
  /// For what it was opened.
  var purpose = ArchivePurpose.reading
  package private(set) var sequence: SequenceNumber = 0
  /// The newest change of a node or state.
  package private(set) var contentSequence: SequenceNumber = 0
  /// The archive's id; empty if it was never open.
  package private(set) var archive = "" { didSet { handleBase = Self.handleBase(of: archive) } }
  private var handleBase = Self.handleBase(of: "")
  /// A random number below 2^52 that names this opening of the archive.
  private(set) var opening: Int64 = 0
  private var callCounter: Int64 = 0
  private var trouble: Trouble?
  private let context: CoreContext
  /// What has come true and was not handed on to the end, in order.
  private var facts: [Fact] = []
  /// What takes more than one event, while it is under way.
  var long: LongTurn?

  /// The last transaction has failed, and nothing was stored since.
  private struct Trouble {
    let error: ErrorObject
    /// Nothing is tried before, in monotonic milliseconds; `.max` if nothing is tried any more.
    let until: Int64
    /// Changes of clients after this one are being tried.
    var sequence: SequenceNumber
  }

  package init(of application: ApplicationID, named name: ApplicationName, _ context: CoreContext) {
    (self.application, self.name, self.context) = (application, name, context)
  }

  var now: Moment { context.now }
  var limits: Limits { context.limits }
  var settings: CoreSettings { context.settings }
  var roundsEnd: Int64? { context.roundsEnd }
  var isEnding: Bool { context.isEnding }
  var hasSubscribers: Bool { context.hasSubscribers }

  // MARK: Writing

  /// Numbers go on from those of the archive, which has been opened.
  mutating func begin(_ archive: String? = nil, after sequence: SequenceNumber, content: SequenceNumber) {
    self.archive = archive ?? self.archive
    self.sequence = sequence
    contentSequence = content
    opening = Int64(context.settings.random().0 >> 12)
  }

  /// Adds a change to the next transaction, if the archive is open.
  @discardableResult
  package mutating func write(_ change: ArchiveChange) -> SequenceNumber {
    // Changes while the archive cannot be written are dropped: it is loaded again before it can be.
    guard case .open = phase else { return sequence }
    sequence += 1
    if change.isContent { contentSequence = sequence }
    context.write(change, of: application)
    return sequence
  }

  /// Throws if nothing can be written now.
  func requireWritable() throws(ErrorObject) {
    if case .unreadable(let why) = phase { throw .unreadable(why) }
  }

  /// Throws if nothing can be written now, or if content was refused so lately that it is not tried again yet. What
  /// removes or ends something is tried all the same: it may make room.
  func requireStorable() throws(ErrorObject) {
    try requireWritable()
    if let trouble, now.monotonic < trouble.until { throw trouble.error }
  }

  /// If the archive is still being opened, nobody needs it any longer.
  mutating func giveUp() {
    guard case .opening = phase else { return }
    isGivenUp = true
    ask(.giveUp(application))
  }

  // MARK: Failed transactions

  /// The last transaction has failed; nothing is written for the pause, in milliseconds, or ever again without one.
  mutating func fail(_ error: ErrorObject, pause: Int64?) {
    (phase, isGivenUp) = (.opening, false)
    trouble = Trouble(error: error, until: pause.map { now.monotonic + $0 } ?? .max, sequence: sequence)
  }

  /// Throws if the archive is not opened again after a failed transaction: nobody may wait for that.
  func requireReopening() throws(ErrorObject) { if let trouble, trouble.until == .max { throw trouble.error } }

  /// Calls wait until it is known what becomes of what is being tried: what they read of it may never be durable.
  var isOnTrial: Bool { if let trouble { sequence > trouble.sequence } else { false } }

  /// What was written so far is no client's: nobody waits for it.
  mutating func beginTrials() { trouble?.sequence = sequence }

  /// A transaction was stored; returns whether there was trouble before.
  mutating func endTrouble() -> Bool { trouble.take() != nil }

  /// Throws if the archive may not grow by so many bytes beside all others.
  func requireRoom(besideOthersFor bytes: Int) throws(ErrorObject) {
    if let refusal = context.refusal(name, bytes) { throw refusal }
  }

  /// Throws if so many calls of a client wait that no other may, or too much that its process has sent does.
  func requireRoom(toWaitBeside count: Int, of client: ClientID) throws(ErrorObject) {
    guard !isEnding else { throw .shuttingDown() }
    guard context.mayPark(client) else {
      let max = limits.waitingBytesPerProcessMax
      throw .limitExceeded("waitingBytesPerProcessMax", max: max, value: max + 1)
    }
    let max = limits.parkedMax
    guard count < max else { throw .limitExceeded("parkedMax", max: max, value: count + 1) }
  }

  // MARK: Facts

  /// - Returns: whether no other fact is being handed on.
  mutating func note(_ fact: Fact) -> Bool {
    facts.append(fact)
    return facts.count == 1
  }

  /// The fact to be handed on now; nil if none is left.
  var fact: Fact? { facts.first }

  mutating func endFact() { facts.removeFirst() }

  // MARK: Long turns

  /// Something is under way that takes more than this event. (A pattern, because `!= nil` copies.)
  var isLong: Bool { if case nil = long { false } else { true } }

  /// Exchanges what was written and asked for with what was held back.
  func swapOutcome(with other: inout Outcome) { context.swapOutcome(with: &other) }

  /// What was held back happens.
  func append(_ outcome: Outcome) { context.append(outcome) }

  // MARK: Asking

  mutating func ask(_ effect: consuming Effect) { context.emit(effect) }

  /// Notifies subscribers. The event is made only if there are any; making it may read the turn, so this does not count
  /// as a change of it.
  func announce<Event: RestorationEvent>(_ condition: Announcement.Condition = .stored, _ event: () -> Event) {
    guard hasSubscribers else { return }
    // A change that cannot be written is dropped, with its consequences.
    if case .stored = condition, case .opening = phase { return }
    context.announce(application, name, condition, event)
  }

  // MARK: Answering

  /// Answers when everything written so far is durable.
  mutating func answer(_ caller: Caller, _ result: any JSONWritable & Sendable) {
    answer(caller, after: sequence, result)
  }

  /// Answers when the change of this sequence is durable. A notification has no answer to keep.
  mutating func answer(_ caller: Caller, after sequence: SequenceNumber, _ result: any JSONWritable & Sendable) {
    guard caller.call != nil else { return }
    ask(.respondAfter(application, sequence, caller, .result(result)))
  }

  mutating func refuse(_ caller: Caller, _ error: ErrorObject) { ask(.respond(caller, .error(error))) }

  /// Refuses a call that was parked and will not be done.
  mutating func refuse(parked caller: Caller, _ error: ErrorObject) {
    ask(.unpark(caller))
    refuse(caller, error)
  }

  // MARK: Numbering

  /// For the object that the next change registers. A handle is the number of that change, so that the archive never
  /// gives it again, below a number of the archive, so that others hardly ever do: one may take the place of another.
  var nextHandle: ObjectHandle { lastHandle + 1 }

  /// No handle that the archive has given so far is above it; those of earlier brokers are all lower.
  var lastHandle: ObjectHandle { handleBase + sequence }

  /// Below it a sequence has room, so that a handle is below 2^53.
  private static func handleBase(of archive: String) -> ObjectHandle {
    let hash = archive.utf8.reduce(UInt32(0)) { $0 &* 31 &+ UInt32($1) }
    return Int64(1 << 20 + hash % (1 << 20 - 1 << 12)) << 32
  }

  /// A call number never used before, so that no answer can be mistaken for another call's.
  mutating func nextCallNumber() -> CallNumber {
    callCounter += 1
    return opening + callCounter
  }
}
