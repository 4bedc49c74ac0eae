// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// What the archive remembers of the current or last run, beside its number (R16, R20).
package struct RunFacts: Sendable, Hashable {
  package enum Outcome: String, Sendable {
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
  package struct Unit: Sendable, Hashable {
    package var name: String
    package var isDelegate: Bool
    package var run: Int64
  }

  static let unitsMax = 64

  package init() {}

  package init(text: String) {
    let value = (try? JSONCodec.parse(Array(text.utf8))) ?? .null
    isOpen = value["open"]?.bool ?? false
    outcome = value["outcome"]?.string.flatMap { Outcome(rawValue: $0) } ?? .clean
    previousOutcome = value["previous"]?.string.flatMap { Outcome(rawValue: $0) } ?? .clean
    beganPristine = value["pristine"]?.bool ?? true
    for (role, outcome) in value["roles"]?.object?.members ?? [] {
      outcomeByRole[role] = outcome.string.flatMap { Outcome(rawValue: $0) }
    }
    endedByUserQuit = value["userQuit"]?.bool ?? false
    hasCompletedRestoration = value["completed"]?.bool ?? false
    backedUp = value["backedUp"]?.storedCount ?? 0
    blame = value["blame"].map { Blame($0) } ?? Blame()
    quarantined = value["quarantined"]?.storedCount ?? 0
    withholdsAll = value["withholdsAll"]?.bool ?? false
    isLogout = value["logout"]?.bool ?? false
    damage = value["damage"]?.string
    epoch = value["epoch"]?.integer.flatMap { CoreSettings.epochs.contains($0) ? $0 : nil } ?? 0
    units = (value["units"]?.array ?? []).compactMap { unit in
      unit["unit"]?.string.map {
        Unit(name: $0, isDelegate: unit["delegate"]?.bool ?? false, run: unit["run"]?.storedCount ?? 0)
      }
    }
  }

  package var text: String {
    var roles: JSONObject = [:]
    for (role, outcome) in outcomeByRole.sorted(by: { $0.key < $1.key }) {
      roles[role] = .string(outcome.rawValue)
    }
    var object: JSONObject = [
      "open": .bool(isOpen),
      "outcome": .string(outcome.rawValue),
      "previous": .string(previousOutcome.rawValue),
      "pristine": .bool(beganPristine),
      "roles": .object(roles),
      "userQuit": .bool(endedByUserQuit),
      "completed": .bool(hasCompletedRestoration),
      "backedUp": .integer(backedUp),
    ]
    if !blame.isEmpty { object["blame"] = blame.json }
    if quarantined != 0 { object["quarantined"] = .integer(quarantined) }
    if withholdsAll { object["withholdsAll"] = true }
    if isLogout { object["logout"] = true }
    if let damage { object["damage"] = .string(damage) }
    if epoch != 0 { object["epoch"] = .integer(epoch) }
    if !units.isEmpty {
      object["units"] = .array(
        units.map { ["unit": .string($0.name), "delegate": .bool($0.isDelegate), "run": .integer($0.run)] }
      )
    }
    return JSONText(.object(object)).string
  }
}

extension JSONValue {
  /// A count that an archive or a former broker kept, brought into the range of those that can be added to.
  var storedCount: Int64? { integer.map { min(max(0, $0), 1 << 53) } }
}
