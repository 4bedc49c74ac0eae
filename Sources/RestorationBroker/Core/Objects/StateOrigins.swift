// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationWire

/// The origins of an application's states by number, so that a state carries a number only (R25, R26). The archive
/// calls these numbers contexts.
///
/// Invariants:
/// 1. Equal origins have one number, and a number is never given to another origin.
/// 2. An origin is written before the first change that names its number.
package struct StateOrigins {
  private var origins: [ContextID: StateOrigin] = [:]
  private var numbers: [StateOrigin: ContextID] = [:]
  /// Rendered once for each origin, because every decode answers with one.
  private var coders: [ContextID: CoderTemplate] = [:]
  /// The origin of writes without a session, once it exists.
  private var sessionless: ContextID?
  private var last: ContextID
  /// Numbers of origins that only states off the disk have had so far (R4).
  private var unwritten: Set<ContextID> = []

  /// - Parameter last: the highest number ever given.
  package init(stored texts: [ContextID: String] = [:], last: ContextID = 0) {
    self.last = last
    for (number, text) in texts {
      let origin = StateOrigin(stored: text)
      origins[number] = origin
      numbers[origin] = number
    }
  }

  package subscript(number: ContextID) -> StateOrigin? { origins[number] }

  /// The number of an origin, written to the archive if it is new.
  package mutating func number(of origin: StateOrigin, in turn: inout Turn) -> ContextID {
    let number = number(of: origin)
    write(number, in: &turn)
    return number
  }

  /// The number of an origin that the archive need not know yet.
  mutating func number(of origin: StateOrigin) -> ContextID {
    if let number = numbers[origin] { return number }
    last += 1
    origins[last] = origin
    numbers[origin] = last
    unwritten.insert(last)
    return last
  }

  /// Writes an origin to the archive, unless that has it.
  mutating func write(_ number: ContextID, in turn: inout Turn) {
    guard unwritten.remove(number) != nil, let origin = origins[number] else { return }
    turn.write(.context(number, text: origin.stored))
  }

  /// The number of the origin without a session: the writer is unknown, so it is always the same.
  package mutating func numberWithoutSession(in turn: inout Turn) -> ContextID {
    if let sessionless { return sessionless }
    var origin = StateOrigin()
    origin.systemVersion = turn.settings.systemVersion
    let number = number(of: origin, in: &turn)
    sessionless = number
    return number
  }

  mutating func coder(of number: ContextID) -> CoderTemplate? {
    if let coder = coders[number] { return coder }
    coders[number] = origins[number].map { CoderTemplate($0) }
    return coders[number]
  }
}
