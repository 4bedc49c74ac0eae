// SPDX-License-Identifier: Apache-2.0

/// An engine's storage for the rows of one open archive; `OpenArchive` decides about writes and reads. After
/// `.indeterminate` the transaction's outcome is unknown; after all other errors nothing was written.
protocol ArchiveRows {
  /// Names the archive for ever.
  var archive: String { get }

  mutating func begin() throws(ArchiveError)
  /// Returns once everything since `begin` is durable.
  mutating func commit() throws(ArchiveError)
  /// Does nothing if no transaction is open.
  mutating func rollBack()

  // Inside a transaction:
  mutating func write(_ change: ArchiveChange, at sequence: SequenceNumber, _ effect: ChangeEffect) throws(ArchiveError)
  mutating func write(_ tip: ArchiveTip) throws(ArchiveError)
  mutating func delete(_ purge: ArchivePurge) throws(ArchiveError)
  mutating func delete(_ contexts: [ContextID]) throws(ArchiveError)

  func index() throws(ArchiveError) -> ArchiveIndex
  func state(at sequence: SequenceNumber) throws(ArchiveError) -> StateReading
  func node(at sequence: SequenceNumber) throws(ArchiveError) -> NodeRecord
  /// Runs a body that reads many rows, which take less time together.
  func readMany<Value>(_ body: () throws(ArchiveError) -> Value) throws(ArchiveError) -> Value
  func contexts() throws(ArchiveError) -> [ContextID: String]
  /// In ascending order of id.
  func sessions() throws(ArchiveError) -> [SessionRecord]
  /// In ascending order of node.
  func claims() throws(ArchiveError) -> [ClaimRecord]
  func run() throws(ArchiveError) -> RunRecord?
  /// The damage found and the action taken; `nil` once a run has been written.
  func damage() throws(ArchiveError) -> String?
  /// In ascending order of sequence.
  func withheld() throws(ArchiveError) -> [WithheldRow]

  /// Drops cached rows, so that the next reading comes from the disk.
  func forgetCached() throws(ArchiveError)
  /// The faults of the structure that holds the rows, a sentence each.
  func structureFaults() throws(ArchiveError) -> [String]
}

/// The numbers of an archive that every commit writes anew.
package struct ArchiveTip: Hashable {
  /// No archive reaches this number. A higher one from a file or another host is refused. Handles are made of it.
  package static let sequenceMax: SequenceNumber = 1 << 44 - 1

  var sequence: SequenceNumber = 0
  var changeID: ChangeID?
  var lastNode: NodeID = 0
  var lastContext: ContextID = 0
  var lastSession: SessionID = 0
  var lastGeneration: Int64 = 0
  var pinned: Int64?
  /// Milliseconds since 1970 of the newest state written; 0 if no state was written.
  var written: Int64 = 0
  /// The newest change of a node or a state.
  var content: SequenceNumber = 0
}

/// The rows that an engine writes for a change, besides the change's own.
struct ChangeEffect {
  /// False if the row would say nothing new, as when a missing state is removed.
  var writesRow = true
  /// A removed node had a state: a removal row of the same sequence goes into the state log too.
  var removesState = false
  /// State rows to lose their early mark.
  var settled: [SequenceNumber] = []
  /// State rows to withhold or release.
  var rows: [StateRow] = []
  /// Contexts to delete.
  var contexts: [ContextID] = []
}
