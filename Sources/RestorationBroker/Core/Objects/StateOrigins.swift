// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The origins of an application's states by number, so that a state carries a number only (R10, R25). The archive
/// calls these numbers contexts.
///
/// Invariants:
/// 1. New states of equal origins get one number, and a number is never given to another origin.
/// 2. An origin is written before the first change that names its number.
/// 3. One that the archive does not have is the last that was asked for, or is in use.
package struct StateOrigins {
  private struct Use {
    /// Of its text.
    let bytes: Int
    /// States of the head that have it.
    var states = 0
    /// The last change that may name it although no row had it before.
    var named: SequenceNumber = 0

    // Each gives the bytes whose count it changes, so that the change of a state finds the use once.

    mutating func begin(at sequence: SequenceNumber) -> Int? {
      states += 1
      named = sequence
      return states == 1 ? bytes : nil
    }

    mutating func end() -> Int? {
      states -= 1
      return states == 0 ? bytes : nil
    }
  }

  private var uses: [ContextID: Use] = [:]
  private var origins: [ContextID: StateOrigin] = [:]
  /// Rendered once for each origin, because every decode answers with one.
  private var coders: [ContextID: CoderTemplate] = [:]
  /// What new states get.
  private var numbers: [StateOrigin: ContextID] = [:]
  /// The origin of writes without a session, once it exists.
  private var sessionless: ContextID?
  private var last: ContextID
  /// Those that the archive does not have.
  private var unwritten: Set<ContextID> = []
  /// Bytes of those in use.
  package private(set) var usedBytes = 0

  /// - Parameter buried: those of the stored ones that new states do not get.
  /// - Parameter last: the highest number ever given.
  package init(stored texts: [ContextID: String] = [:], buried: Set<ContextID> = [], last: ContextID = 0) {
    self.last = last
    for (number, text) in texts {
      let origin = StateOrigin(stored: text)
      enter(origin, as: number, bytes: text.utf8.count)
      if !buried.contains(number) { numbers[origin] = number }
    }
  }

  package subscript(number: ContextID) -> StateOrigin? { origins[number] }

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
    numbers[origin] = last
    unwritten.insert(last)
    return last
  }

  /// Writes an origin to the archive, unless that has it.
  package mutating func write(_ number: ContextID, in turn: inout Turn) {
    guard !unwritten.isEmpty, unwritten.remove(number) != nil, let origin = origins[number] else { return }
    uses[number]?.named = turn.write(.context(number, text: origin.stored))
  }

  /// The number of the origin without a session: the writer is unknown, so it is always the same.
  package mutating func numberWithoutSession(in turn: borrowing Turn) -> ContextID {
    if let sessionless, uses[sessionless] != nil { return sessionless }
    var origin = StateOrigin()
    origin.systemVersion = turn.settings.systemVersion
    let number = number(of: origin)
    sessionless = number
    return number
  }

  mutating func coder(of number: ContextID) -> CoderTemplate? {
    if let coder = coders[number] { return coder }
    guard let origin = origins[number] else { return nil }
    let coder = CoderTemplate(origin)
    coders[number] = coder
    return coder
  }

  private mutating func enter(_ origin: StateOrigin, as number: ContextID, bytes: Int) {
    uses[number] = Use(bytes: bytes)
    origins[number] = origin
  }

  // MARK: Uses

  /// By how many bytes those in use grow when a state has `new` instead of `old`.
  ///
  /// Inline: called, it would get a copy of the origins, whose fields are counted references.
  @inline(__always)
  func growth(from old: ContextID?, to new: ContextID) -> Int {
    guard old != new else { return 0 }
    let freed = old.flatMap { uses[$0] }.map { $0.states == 1 ? $0.bytes : 0 } ?? 0
    return growth(by: [new]) - freed
  }

  /// By how many bytes those in use grow with these.
  func growth(by numbers: Set<ContextID>) -> Int {
    numbers.reduce(0) { sum, number in sum + (uses[number].map { $0.states == 0 ? $0.bytes : 0 } ?? 0) }
  }

  /// States have changed, the last one by the change of this sequence.
  package mutating func exchange(_ old: [ContextID], for new: [ContextID], at sequence: SequenceNumber) {
    for number in new {
      usedBytes += uses[number]?.begin(at: sequence) ?? 0
    }
    for number in old {
      guard let bytes = uses[number]?.end() else { continue }
      usedBytes -= bytes
      dropIfUseless(number)
    }
  }

  /// A state has it that is not in use, by a change up to this.
  mutating func name(_ number: ContextID, at sequence: SequenceNumber) { uses[number]?.named = sequence }

  /// These are all states there are.
  mutating func count(_ states: [ContextID], at sequence: SequenceNumber) {
    for number in uses.keys { uses[number]?.states = 0 }
    usedBytes = 0
    exchange([], for: states, at: sequence)
    for number in unwritten { dropIfUseless(number) }
  }

  private mutating func dropIfUseless(_ number: ContextID) {
    guard unwritten.contains(number), uses[number]?.states == 0 else { return }
    unwritten.remove(number)
    drop(number)
  }

  private mutating func drop(_ number: ContextID) {
    uses[number] = nil
    coders[number] = nil
    if let origin = origins.removeValue(forKey: number), numbers[origin] == number { numbers[origin] = nil }
  }

  /// The archive has no row with these, up to a change; those go that none was given since. One that is in use
  /// stays.
  package mutating func forget(_ unnamed: [ContextID], upTo sequence: SequenceNumber, in turn: inout Turn) {
    let gone = unnamed.filter { number in
      !unwritten.contains(number) && uses[number].map { $0.states == 0 && $0.named <= sequence } ?? false
    }
    guard !gone.isEmpty else { return }
    turn.write(.forgetContexts(gone))
    for number in gone { drop(number) }
  }
}
