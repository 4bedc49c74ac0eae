// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The archive's record of the current or last run, besides its number (R16, R20).
package struct RunFacts: StoredFacts, Hashable {
  package enum Outcome: String, WireWord {
    case clean, crashed
  }

  package enum Decision: String, WireWord {
    case undecided, restoring, declined
  }

  /// Whether a session of the run is live, as far as the archive knows.
  package var isOpen = false
  /// The outcome so far; `crashed` stays until the next run begins.
  package var outcome: Outcome = .clean
  package var previousOutcome: Outcome = .clean
  /// Whether there was nothing to restore when the run began.
  package var beganPristine = true
  /// How the last session of each process role ended.
  package var outcomeByRole: [String: Outcome] = [:]
  package var endedByUserQuit = false
  /// Whether the restoration of this run has completed.
  package var hasCompletedRestoration = false
  /// Number of the last change before the run.
  package var began: Int64 = 0
  /// Whether the run restores, and the objects that it must not restore because their restoration classes refused them
  /// (R29).
  package var decision = Decision.undecided
  /// A restoration of the whole application is under way; the next broker continues it.
  package var isRestoring = false
  package var refused: Set<NodeID> = []
  /// The subtrees closed last (R13).
  package var shelf = ClosedShelf()
  /// Milliseconds since 1970 when a session last ended; 0 if unknown.
  package var used: Int64 = 0
  /// Milliseconds since 1970: the beginnings of this run and the former one, and the end of the former one's last
  /// session.
  package var begun: Int64 = 0
  package var formerBegun: Int64 = 0
  package var formerEnd: Int64 = 0
  /// The newest affinity that a session gave; `instance: "auto"` chooses by it.
  package var affinity: String?
  /// Milliseconds since 1970 of the last backup copy (R32).
  package var backedUp: Int64 = 0
  /// The copy in an earlier format, from before the archive was migrated.
  package var former: Former?
  package var blame = Blame()
  /// When the whole archive was quarantined, in milliseconds since 1970; 0 if it was not.
  package var quarantined: Int64 = 0
  /// Number of objects whose state is withheld, and whether these are all that have one.
  package var withheld: Int64 = 0
  package var withholdsAll = false

  /// The damage found at the opening of the archive, and its repair; retained until a run ends (R32).
  package var damage: String?

  /// Units that start the application's processes again, the delegate's first (R22).
  package var units: [Unit] = []
  /// Whether the broker ended because the user logged out: processes that have ended since have not crashed (R30).
  package var isLogout = false

  package struct Unit: StoredFacts, Hashable {
    package var name = ""
    package var isDelegate = false
    package var run: Int64 = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.stored("unit", &name)
      try members.stored("delegate", &isDelegate)
      try members.stored("run", count: &run)
    }
  }

  package struct Former: StoredFacts, Hashable {
    /// Milliseconds since 1970 when the broker first saw the copy, and the number of restorations completed by then.
    package var since: Int64 = 0
    package var restorations: Int64 = 0

    package init() {}

    init(since: Int64, restorations: Int64) { (self.since, self.restorations) = (since, restorations) }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.stored("since", count: &since)
      try members.stored("restorations", count: &restorations)
    }
  }

  static let unitsMax = 64
  static let rolesMax = 256

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("open", &isOpen)
    try members.stored("outcome", &outcome)
    try members.stored("previous", &previousOutcome)
    try members.stored("pristine", &beganPristine)
    var outcomes = outcomeByRole.mapValues(\.rawValue)
    try members.stored("roles", &outcomes)
    outcomeByRole = outcomes.compactMapValues { Outcome(rawValue: $0) }
    try members.stored("userQuit", &endedByUserQuit)
    try members.stored("completed", &hasCompletedRestoration)
    try members.stored("began", someCount: &began)
    try members.stored("decision", &decision, unless: .undecided)
    try members.stored("restoring", &isRestoring, unless: false)
    try walkFormerDecision(&members)
    try members.stored("shelf", &shelf, unless: ClosedShelf())
    var refused = refused.sorted()
    try members.stored("refused", &refused, unless: [])
    self.refused = Set(refused)
    try members.stored("used", someCount: &used)
    try members.stored("begun", someCount: &begun)
    try members.stored("formerBegun", someCount: &formerBegun)
    try members.stored("formerEnd", someCount: &formerEnd)
    try members.stored("affinity", &affinity)
    try members.stored("backedUp", count: &backedUp)
    try members.stored("former", &former)
    try members.stored("blame", &blame, unless: Blame())
    try members.stored("quarantined", someCount: &quarantined)
    try members.stored("withheld", someCount: &withheld)
    try members.stored("withholdsAll", &withholdsAll, unless: false)
    try members.stored("logout", &isLogout, unless: false)
    try members.stored("damage", &damage)
    try members.stored("units", &units, unless: [])
    units.removeAll { $0.name.isEmpty }
  }

  /// Reads the decision as former brokers recorded it: a no, or the first session after a yes.
  private mutating func walkFormerDecision(_ members: inout some MemberWalk) throws(Misfit) {
    var (isDeclined, firstLate): (Bool, SessionID?) = (false, nil)
    try members.stored("declined", &isDeclined, unless: false)
    try members.stored("firstLate", count: &firstLate)
    if isDeclined { decision = .declined } else if firstLate != nil { decision = .restoring }
  }
}
