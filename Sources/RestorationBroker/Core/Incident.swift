// SPDX-License-Identifier: Apache-2.0

/// A log entry that may need action by a person. The raw value is its `MESSAGE_ID` in the journal, which
/// `systemd/restorationd.catalog` explains. It never changes its meaning.
package enum Incident: String, CaseIterable, Sendable {
  /// The state of an object is withheld, because restoring it crashed processes (R31, R35).
  case stateWithheld = "4523a868f6974c50a65a1735cbaea4c1"
  /// All states of an application are withheld, because restoring them crashed processes repeatedly (R35).
  case allStatesWithheld = "f5a8a7b45e084edba2aaf172db8df46b"
  /// An archive was damaged, and was repaired, or replaced by its backup copy (R32).
  case damageFound = "fe3f0a00d2424e26bd4a56cfb9f4fec3"
  /// An archive cannot be used; it was left untouched (R32).
  case archiveUnusable = "00e36f30159c4d3eb3d6353b2293d2f4"
  case storeFailed = "c2ee4c5ee27e4913916c7eb8594b093e"
  /// The backup copy of an archive failed (R32).
  case backupFailed = "3e49ccb36c69448187f1b438edbe0e57"
  /// Changes of this host have not reached the fleet's store (R36).
  case replicaBehind = "2486816ce71c44669d55c3f6d37178be"
  /// The archive of the fleet's store has replaced that of this host (R36).
  case archiveConflict = "edbf023525ac4c5489589b3940cd6435"
  case unitNotStarted = "f1503f5a017f471d94de3632a001b12c"
  /// A connection was ended because its client did not read.
  case clientCut = "2489e0acbfd54afe8580515b05f5b2ff"
  /// The descriptor limit is lower than what may be needed.
  case descriptorLimitLow = "4d6683eac0f647b2b240ca992cdc2a7a"
  case configurationInvalid = "cba77325836e44d4b5a9c2bf8ae6c625"
  case brokerFailed = "661786b4559442048f5aef404eaeb566"

  /// Key of the metadata that names an entry's incident.
  package static let key = "incident"

  package init?(named name: String) {
    guard let incident = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
    self = incident
  }
}
