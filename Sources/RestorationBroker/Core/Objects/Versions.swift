// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Every state of one object, and which of them counts for whom (R15, R19, R35). The archive has the texts.
///
/// Invariant: `hidden` exists only while `newest` is provisional, and is older.
///
/// | | any reader | the owner |
/// |---|---|---|
/// | the newest is confirmed | the newest | the newest |
/// | the newest is provisional | the newest | the hidden one, if there is one |
///
/// `Node.ownerState` adds that the owner of a fresh object gets none (R29), `Application.outgoingState` that a
/// restoration gets a declined one again (R22). A withheld state is given to neither.
package struct Versions {
  /// How many withheld texts of an object are retained.
  private static let withheldMax = 3

  /// Provisional if its owner wrote it before it was given, or had fetched, an older one (R19).
  package private(set) var newest: StateSummary?
  /// The confirmed state that a provisional one hides.
  package private(set) var hidden: StateSummary?
  /// The owner was given the hidden state, which is about to be stored again: the provisional one no longer counts.
  package private(set) var isSuperseded = false
  /// The newest row is damaged (R32).
  package private(set) var isUnreadable = false
  /// The owner could not take in its state, so its next state replaces that (R29).
  package private(set) var hasFailed = false
  /// Rows that are withheld, or were until a newer one replaced them, oldest first (R35). Nearly always `nil`.
  private var withheldRows: [WithheldRow]?

  package init(newest: StateSummary? = nil, hidden: StateSummary? = nil) {
    self.newest = newest
    self.hidden = isProvisional ? hidden : nil
  }

  package var isProvisional: Bool { newest?.isEarly ?? false }

  /// The newest state that is not provisional: the one for its owner.
  package var confirmed: StateSummary? { isProvisional ? hidden : newest }

  /// Whether it may still turn out which of its states counts.
  var isUndecided: Bool { isProvisional && !isSuperseded }

  /// The state for all but its owner.
  package var shown: StateSummary? { isSuperseded ? hidden : newest }

  /// The newest first.
  var all: [StateSummary] { [newest, hidden].compactMap { $0 } }

  // MARK: Writing

  package mutating func write(_ state: StateSummary) {
    hidden = state.isEarly ? confirmed : nil
    newest = state
    (isUnreadable, isSuperseded) = (false, false)
    if !state.isEarly { hasFailed = false }
  }

  /// The newest state counts for its owner as well.
  package mutating func confirm() {
    newest?.isEarly = false
    (hidden, isSuperseded, hasFailed) = (nil, false, false)
  }

  /// Withheld texts stay until they are released.
  package mutating func remove() {
    (newest, hidden) = (nil, nil)
    (isSuperseded, isUnreadable, hasFailed) = (false, false, false)
  }

  mutating func supersede() { isSuperseded = hidden.map { !isWithheld($0) } ?? false }

  /// The hidden state could not be stored again.
  mutating func endSuperseding() { isSuperseded = false }

  // MARK: Reading

  /// Reading the row found it damaged. That counts if it is still the newest.
  package mutating func noteUnreadable(_ sequence: SequenceNumber) {
    if newest?.sequence == sequence { isUnreadable = true }
  }

  /// The owner could not take in its state.
  mutating func noteFailed() { hasFailed = true }

  /// There is a new owner, or the state is withheld.
  mutating func forgetFailure() { hasFailed = false }

  // MARK: Withholding

  var withheld: [WithheldRow] { withheldRows ?? [] }

  // Patterns, because `== nil` would copy the value, and every push asks for this.
  package var hasWithheld: Bool { if case nil = withheldRows { false } else { true } }

  /// - Parameter areReplaced: whether to list rows that are states no longer, or those that still are.
  package func withheld(areReplaced: Bool) -> [StateRow] {
    let current = all.map(\.sequence)
    return withheld.map(\.row).filter { current.contains($0.sequence) != areReplaced }
  }

  /// Since when the state is withheld, in milliseconds since 1970; `nil` if it is not.
  func withheldSince(_ state: SequenceNumber) -> Int64? { withheldRows?.first { $0.row.sequence == state }?.since }

  /// Whether a factory may be given the state.
  func mayGive(_ state: StateSummary) -> Bool { !isUnreadable && !isWithheld(state) }

  package func isWithheld(_ state: StateSummary) -> Bool { withheldSince(state.sequence) != nil }

  /// - Returns: the oldest row, if that is one too many. It is withheld no longer.
  package mutating func withhold(_ row: WithheldRow) -> StateRow? {
    withheldRows = withheld + [row]
    return withheld.count > Self.withheldMax ? withheldRows?.removeFirst().row : nil
  }

  package mutating func release(_ row: StateRow) {
    withheldRows?.removeAll { $0.row == row }
    if withheld.isEmpty { withheldRows = nil }
  }

  /// - Returns: the rows that were withheld.
  package mutating func releaseAll() -> [StateRow] {
    defer { withheldRows = nil }
    return withheld.map(\.row)
  }
}
