// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The origins of an application's states by number, so that a state carries a number only (R25, R26). The archive
/// calls these numbers contexts.
///
/// Invariants:
/// 1. Equal origins have one number, and a number is never given to another origin.
/// 2. An origin is written before the first change that names its number.
/// 3. One that the archive does not have is the last that was asked for, or is in use.
package struct StateOrigins {
  private struct Entry {
    let origin: StateOrigin
    /// Of its text.
    let bytes: Int
    /// Rendered once for each origin, because every decode answers with one.
    var coder: CoderTemplate?
    /// States that have it: those of the head, and those that are kept off the disk.
    var uses = 0
    /// The last change that may name it although no row had it before.
    var named: SequenceNumber = 0
  }

  private var entries: [ContextID: Entry] = [:]
  private var numbers: [StateOrigin: ContextID] = [:]
  /// The origin of writes without a session, once it exists.
  private var sessionless: ContextID?
  private var last: ContextID
  /// Those that the archive does not have.
  private var unwritten: Set<ContextID> = []
  /// Bytes of those in use.
  package private(set) var usedBytes = 0

  /// - Parameter last: the highest number ever given.
  package init(stored texts: [ContextID: String] = [:], last: ContextID = 0) {
    self.last = last
    for (number, text) in texts { enter(StateOrigin(stored: text), as: number, bytes: text.utf8.count) }
  }

  package subscript(number: ContextID) -> StateOrigin? { entries[number]?.origin }

  /// The number of an origin, written to the archive if it is new.
  mutating func number(of origin: StateOrigin, in turn: inout Turn) -> ContextID {
    let number = number(of: origin)
    write(number, in: &turn)
    return number
  }

  /// The number of an origin that the archive need not know yet.
  package mutating func number(of origin: StateOrigin) -> ContextID {
    if let number = numbers[origin] { return number }
    // The one before was not used, or it would be written.
    dropIfUseless(last)
    last += 1
    enter(origin, as: last, bytes: origin.stored.utf8.count)
    unwritten.insert(last)
    return last
  }

  /// Writes an origin to the archive, unless that has it.
  package mutating func write(_ number: ContextID, in turn: inout Turn) {
    guard !unwritten.isEmpty, unwritten.remove(number) != nil, let origin = entries[number]?.origin else { return }
    entries[number]?.named = turn.write(.context(number, text: origin.stored))
  }

  /// The number of the origin without a session: the writer is unknown, so it is always the same.
  package mutating func numberWithoutSession(in turn: borrowing Turn) -> ContextID {
    if let sessionless, entries[sessionless] != nil { return sessionless }
    var origin = StateOrigin()
    origin.systemVersion = turn.settings.systemVersion
    let number = number(of: origin)
    sessionless = number
    return number
  }

  mutating func coder(of number: ContextID) -> CoderTemplate? {
    if let coder = entries[number]?.coder { return coder }
    guard let origin = entries[number]?.origin else { return nil }
    let coder = CoderTemplate(origin)
    entries[number]?.coder = coder
    return coder
  }

  private mutating func enter(_ origin: StateOrigin, as number: ContextID, bytes: Int) {
    entries[number] = Entry(origin: origin, bytes: bytes)
    numbers[origin] = number
  }

  // MARK: Uses

  /// By how many bytes those in use grow when a state has `new` instead of `old`.
  func growth(from old: ContextID?, to new: ContextID) -> Int {
    guard old != new else { return 0 }
    let freed = old.flatMap { entries[$0] }.map { $0.uses == 1 ? $0.bytes : 0 } ?? 0
    return growth(by: [new]) - freed
  }

  /// By how many bytes those in use grow with these.
  func growth(by numbers: Set<ContextID>) -> Int {
    numbers.reduce(0) { sum, number in sum + (entries[number].map { $0.uses == 0 ? $0.bytes : 0 } ?? 0) }
  }

  /// States have changed, the last one by the change of this sequence.
  package mutating func exchange(_ old: [ContextID], for new: [ContextID], at sequence: SequenceNumber) {
    for number in new {
      if entries[number]?.uses == 0 { usedBytes += entries[number]?.bytes ?? 0 }
      entries[number]?.uses += 1
      entries[number]?.named = sequence
    }
    for number in old {
      entries[number]?.uses -= 1
      guard let entry = entries[number], entry.uses == 0 else { continue }
      usedBytes -= entry.bytes
      dropIfUseless(number)
    }
  }

  /// A state has it that is not in use, by a change up to this.
  mutating func name(_ number: ContextID, at sequence: SequenceNumber) { entries[number]?.named = sequence }

  /// These are all states there are.
  mutating func count(_ states: [ContextID], at sequence: SequenceNumber) {
    for number in entries.keys { entries[number]?.uses = 0 }
    usedBytes = 0
    exchange([], for: states, at: sequence)
    for number in unwritten { dropIfUseless(number) }
  }

  private mutating func dropIfUseless(_ number: ContextID) {
    guard unwritten.contains(number), entries[number]?.uses == 0 else { return }
    unwritten.remove(number)
    drop(number)
  }

  private mutating func drop(_ number: ContextID) {
    if let entry = entries.removeValue(forKey: number) { numbers[entry.origin] = nil }
  }

  /// The archive has no row with these, up to a change; those go that none was given since. One that is in use by what
  /// is kept off the disk stays: it may be about to get a row, and is told again if it does not.
  package mutating func forget(_ unnamed: [ContextID], upTo sequence: SequenceNumber, in turn: inout Turn) {
    let gone = unnamed.filter { number in
      !unwritten.contains(number) && entries[number].map { $0.uses == 0 && $0.named <= sequence } ?? false
    }
    guard !gone.isEmpty else { return }
    turn.write(.forgetContexts(gone))
    for number in gone { drop(number) }
  }
}
