// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// One application's turn in the event being handled: its changes, answers and effects.
///
/// It is passed `inout` to all code that decides, and exists once. So queries cannot write, and a part cannot call back
/// into the application while it writes.
///
/// Invariants:
/// 1. All changes of an event form one list across applications, and so do its effects. The changes share a transaction
///    and precede the effects.
/// 2. `sequence` is the number of the last change; the archive gives the same numbers.
/// 3. An answer that promises durability is sent when its change is durable (R15).
package struct Turn: ~Copyable {
  package let application: ApplicationID
  package let name: ApplicationName
  package var phase = Application.Phase.opening
  /// All clients that waited for the archive to open have left.
  private(set) var isGivenUp = false
  /// Why the archive was opened.
  var purpose = ArchivePurpose.reading
  /// Whether it was opened by a call that takes it from another host.
  var takesOver = false
  /// Why writes are lost when the broker ends; nil if they are stored.
  var readOnly: String?
  package private(set) var sequence: SequenceNumber = 0
  /// Number of the newest change of a node or state.
  package private(set) var contentSequence: SequenceNumber = 0
  /// The archive's id; empty if it was never open.
  package private(set) var archive = "" { didSet { handleBase = Self.handleBase(of: archive) } }
  private var handleBase = Self.handleBase(of: "")
  /// A random number below 2^52 that names this opening of the archive.
  private(set) var opening: Int64 = 0
  private var callCounter: Int64 = 0
  private var trouble: Trouble?
  private let context: CoreContext
  /// Facts that are not handled yet, and the one that is, in order.
  private var facts: [Fact] = []
  var long: LongTurn?

  /// The last transaction has failed, and none was stored since.
  private struct Trouble {
    let error: ErrorObject
    /// No content is written before this time, in monotonic milliseconds; `.max` means never again.
    let until: Int64
    /// The number of the last change before clients wrote again.
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

  /// Numbers continue from those of the opened archive.
  mutating func begin(_ archive: String? = nil, after sequence: SequenceNumber, content: SequenceNumber) {
    self.archive = archive ?? self.archive
    self.sequence = sequence
    contentSequence = content
    opening = Int64(context.settings.random().0 >> 12)
  }

  /// Adds a change to the next transaction, if the archive is open.
  @discardableResult
  package mutating func write(_ change: ArchiveChange) -> SequenceNumber {
    // Changes are dropped while the archive is not open: it is loaded again before they could be written.
    guard case .open = phase else { return sequence }
    sequence += 1
    if change.isContent { contentSequence = sequence }
    context.write(change, of: application)
    return sequence
  }

  func requireWritable() throws(ErrorObject) {
    if case .unreadable(let why) = phase { throw .unreadable(why) }
  }

  /// Throws if nothing can be written, or nothing of it would be kept. Registrations do not ask: a program is to get
  /// its states back.
  func requireKept() throws(ErrorObject) {
    try requireWritable()
    guard let readOnly else { return }
    let hint = "Make it writable, then restart the broker. Until then, what is saved can be read."
    throw .storeFailed("nothing can be saved: \(readOnly)", indeterminate: false, hint: hint)
  }

  /// Throws if nothing can be written now, or if storing content failed too recently to try again. Removals do not ask:
  /// they may make room.
  func requireStorable() throws(ErrorObject) {
    try requireWritable()
    if let trouble, now.monotonic < trouble.until { throw trouble.error }
  }

  /// Gives up an opening that is under way, because no client waits for it.
  mutating func giveUp() {
    guard case .opening = phase else { return }
    isGivenUp = true
    ask(.giveUp(application))
  }

  // MARK: Failed transactions

  /// The last transaction has failed. No content is written for `pause` milliseconds; never again if it is `nil`.
  mutating func fail(_ error: ErrorObject, pause: Int64?) {
    (phase, isGivenUp) = (.opening, false)
    trouble = Trouble(error: error, until: pause.map { now.monotonic + $0 } ?? .max, sequence: sequence)
  }

  /// Throws if the archive is not opened again after a failed transaction: no call may wait for it.
  func requireReopening() throws(ErrorObject) { if let trouble, trouble.until == .max { throw trouble.error } }

  /// Whether changes of clients follow a failed transaction. Calls wait until they are durable, because what they read
  /// may never become so.
  var isOnTrial: Bool { if let trouble { sequence > trouble.sequence } else { false } }

  /// No client waits for the changes written so far.
  mutating func beginTrials() { trouble?.sequence = sequence }

  /// - Returns: whether this was the first stored transaction after a failure.
  mutating func endTrouble() -> Bool { trouble.take() != nil }

  /// Throws if the archive may not grow by this many bytes beside all others.
  func requireRoom(besideOthersFor bytes: Int) throws(ErrorObject) {
    if let refusal = context.refusal(name, bytes) { throw refusal }
  }

  /// Throws if too many calls of the client wait, or too many bytes that its process has sent.
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

  /// - Returns: whether no other fact is being handled.
  mutating func note(_ fact: Fact) -> Bool {
    facts.append(fact)
    return facts.count == 1
  }

  var fact: Fact? { facts.first }

  mutating func endFact() { facts.removeFirst() }

  // MARK: Long turns

  /// A pattern, because `!= nil` would copy.
  var isLong: Bool { if case nil = long { false } else { true } }

  /// Exchanges the changes and effects of this event with those that were held back.
  func swapOutcome(with other: inout Outcome) { context.swapOutcome(with: &other) }

  func append(_ outcome: Outcome) { context.append(outcome) }

  // MARK: Asking

  mutating func ask(_ effect: consuming Effect) { context.emit(effect) }

  /// Notifies subscribers. `event` is called only if there are any. It may read the turn, so this method does not count
  /// as a change of the turn.
  func announce<Event: RestorationEvent>(_ condition: Announcement.Condition = .stored, _ event: () -> Event) {
    guard hasSubscribers else { return }
    // A change that cannot be written is dropped, and its event with it.
    if case .stored = condition, case .opening = phase { return }
    context.announce(application, name, condition, event)
  }

  // MARK: Answering

  /// Answers once everything written so far is durable.
  mutating func answer(_ caller: Caller, _ result: any JSONWritable & Sendable) {
    answer(caller, after: sequence, result)
  }

  /// Answers once the change with this number is durable. A notification gets no answer.
  mutating func answer(_ caller: Caller, after sequence: SequenceNumber, _ result: any JSONWritable & Sendable) {
    guard caller.call != nil else { return }
    ask(.respondAfter(application, sequence, caller, .result(result)))
  }

  mutating func refuse(_ caller: Caller, _ error: ErrorObject) { ask(.respond(caller, .error(error))) }

  mutating func refuse(parked caller: Caller, _ error: ErrorObject) {
    ask(.unpark(caller))
    refuse(caller, error)
  }

  // MARK: Numbering

  /// The handle for the object that the next change registers. It consists of a number of the archive and the number of
  /// the change. So the archive never reuses it, and other archives hardly ever give the same: one may replace another.
  var nextHandle: ObjectHandle { lastHandle + 1 }

  /// No handle of the archive so far is above it, including those of earlier brokers.
  var lastHandle: ObjectHandle { handleBase + sequence }

  /// Leaves room for a sequence, so that a handle stays below 2^53.
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
