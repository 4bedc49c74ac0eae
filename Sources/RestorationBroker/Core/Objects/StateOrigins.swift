// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The origins of an application's states by number (R10, R25). The archive calls these numbers contexts.
///
/// Invariants:
/// 1. New states of equal origins get one number, and a number is never reused for another origin.
/// 2. An origin is written before the first change that names its number.
/// 3. An origin that is not in the archive is in use, or is the last one that was numbered.
package struct StateOrigins {
  private struct Use {
    let bytes: Int
    var states = 0
    /// The last change that may have named it for the first time.
    var named: SequenceNumber = 0

    // `begin` and `end` return the bytes by which the total changes, so that a change of a state needs one look-up.

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
  /// Made once for each origin, because every decode returns one.
  private var coders: [ContextID: CoderTemplate] = [:]
  /// The numbers for new states.
  private var numbers: [StateOrigin: ContextID] = [:]
  /// The origin of writes without a session, once it exists.
  private var sessionless: ContextID?
  private var last: ContextID
  /// Origins that are not in the archive.
  private var unwritten: Set<ContextID> = []
  package private(set) var usedBytes = 0

  /// New states do not get `buried` origins. `last` is the highest number ever used.
  package init(stored texts: [ContextID: String] = [:], buried: Set<ContextID> = [], last: ContextID = 0) {
    self.last = last
    for (number, text) in texts {
      let origin = StateOrigin(stored: text)
      enter(origin, as: number, bytes: text.utf8.count)
      if !buried.contains(number) { numbers[origin] = number }
    }
  }

  package subscript(number: ContextID) -> StateOrigin? { origins[number] }

  /// The number of an origin. A new origin is written to the archive.
  mutating func number(of origin: StateOrigin, in turn: inout Turn) -> ContextID {
    let number = number(of: origin)
    write(number, in: &turn)
    return number
  }

  /// The number of an origin, without writing it to the archive.
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

  package mutating func write(_ number: ContextID, in turn: inout Turn) {
    guard !unwritten.isEmpty, unwritten.remove(number) != nil, let origin = origins[number] else { return }
    uses[number]?.named = turn.write(.context(number, text: origin.stored))
  }

  /// The number for an unknown writer; it is always the same.
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

  /// Growth of the used bytes if a state has `new` instead of `old`.
  ///
  /// Inline, because a call would copy the origins, whose fields are reference-counted.
  @inline(__always)
  func growth(from old: ContextID?, to new: ContextID) -> Int {
    guard old != new else { return 0 }
    let freed = old.flatMap { uses[$0] }.map { $0.states == 1 ? $0.bytes : 0 } ?? 0
    return growth(by: [new]) - freed
  }

  /// Growth of the used bytes with these origins.
  func growth(by numbers: Set<ContextID>) -> Int {
    numbers.reduce(0) { sum, number in sum + (uses[number].map { $0.states == 0 ? $0.bytes : 0 } ?? 0) }
  }

  /// States have changed their origins, the last one with the change of this number.
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

  /// A state that does not count uses the origin, by a change up to this one.
  mutating func name(_ number: ContextID, at sequence: SequenceNumber) { uses[number]?.named = sequence }

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

  /// Removes origins that no row of the archive names up to a change, unless they are in use or were named since.
  package mutating func forget(_ unnamed: [ContextID], upTo sequence: SequenceNumber, in turn: inout Turn) {
    let gone = unnamed.filter { number in
      !unwritten.contains(number) && uses[number].map { $0.states == 0 && $0.named <= sequence } ?? false
    }
    guard !gone.isEmpty else { return }
    turn.write(.forgetContexts(gone))
    for number in gone { drop(number) }
  }
}
