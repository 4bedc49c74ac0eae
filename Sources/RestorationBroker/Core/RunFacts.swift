// SPDX-License-Identifier: Apache-2.0

package import RestorationWire

/// What the archive remembers of the current or last run, beside its number (R16, R20).
package struct RunFacts: StoredFacts, Hashable {
  package enum Outcome: String, WireWord {
    case clean, crashed
  }

  /// A session of the run is alive, as far as the archive knows.
  package var isOpen = false
  /// How the run went so far; `crashed` stays until the next run begins.
  package var outcome: Outcome = .clean
  /// How the run before it ended.
  package var previousOutcome: Outcome = .clean
  /// There was nothing to restore when the run began.
  package var beganPristine = true
  /// How the last session of each process role ended.
  package var outcomeByRole: [String: Outcome] = [:]
  package var endedByUserQuit = false
  /// The restoration of this run has completed (R19).
  package var hasCompletedRestoration = false
  /// Milliseconds since 1970 of the last backup copy (R32).
  package var backedUp: Int64 = 0
  /// What crashes are held against (R31).
  package var blame = Blame()
  /// Milliseconds since 1970 when the archive as a whole was put into quarantine; 0 where it was not.
  package var quarantined: Int64 = 0
  /// All that there is to restore is withheld.
  package var withholdsAll = false

  /// What was found damaged when the archive was opened, and what was done about it; until a run ends (R32).
  package var damage: String?

  /// Units that start the application's processes again, the delegate's first (R22).
  package var units: [Unit] = []
  /// The broker ended because the user's session did; processes that are gone afterwards have not crashed (R30).
  package var isLogout = false
  /// The last start of a broker that gave handles of this application out; 0 where that is not known.
  package var epoch: Int64 = 0

  /// A unit, and in which run a session was of it last.
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

  static let unitsMax = 64

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
    try members.stored("backedUp", count: &backedUp)
    try members.stored("blame", &blame, unless: Blame())
    try members.stored("quarantined", someCount: &quarantined)
    try members.stored("withholdsAll", &withholdsAll, unless: false)
    try members.stored("logout", &isLogout, unless: false)
    try members.stored("damage", &damage)
    try members.stored("epoch", someCount: &epoch)
    if !CoreSettings.epochs.contains(epoch) { epoch = 0 }
    try members.stored("units", &units, unless: [])
    units.removeAll { $0.name.isEmpty }
  }
}
