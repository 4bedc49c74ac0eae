// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What became of a restoration (R21–R23).
public struct RestoreResult: Hashable, Sendable {
  /// Objects that have their states back.
  public let restored: [[String]]
  /// Objects that somebody or a rule refused.
  public let skipped: [Skipped]
  /// What nobody had registered in time.
  public let absent: [[String]]
  /// Whether the delegate said no: then nothing was done.
  public let declined: Bool
  /// How many paths there are besides; nil where all are listed.
  public let omitted: Int64?
  /// Units that were to bring missing processes and were not started.
  public let failedUnits: [FailedUnit]
  /// How long it took.
  public let duration: Duration

  /// An object that was not restored although it is known.
  public struct Skipped: Hashable, Sendable {
    /// Its path.
    public let path: [String]
    /// `refused`, `parentSkipped`, `classMismatch`, `quarantined`, `unreadable`, `notServed`, `failed`, `late`, `ended`
    /// and others; later brokers know more words.
    public let reason: String
    /// What the client said of it, or what is wrong with its answer; for people.
    public let message: String?
  }

  /// A unit that was not started.
  public struct FailedUnit: Hashable, Sendable {
    /// Its name.
    public let unit: String
    /// Why, for people.
    public let message: String
  }

  init(_ wire: RestoreApplicationState.Reply) {
    restored = wire.restored.map(\.components)
    skipped = wire.skipped.map { Skipped(path: $0.path.components, reason: $0.reason, message: $0.message) }
    absent = wire.absent.map(\.components)
    declined = wire.declined
    omitted = wire.omitted
    failedUnits = wire.failedUnits.map { FailedUnit(unit: $0.unit, message: $0.message) }
    duration = .milliseconds(wire.milliseconds)
  }
}
