// SPDX-License-Identifier: Apache-2.0

/// Where an engine keeps the rows of one open archive; `OpenArchive` decides what is written and read.
///
/// Errors say by their kind what became of a transaction: `.indeterminate` means nobody knows, all others mean that
/// nothing was written.
protocol ArchiveRows {
  /// Names the archive for ever.
  var archive: String { get }

  mutating func begin() throws(ArchiveError)
  /// Returns once everything since `begin` is durable.
  mutating func commit() throws(ArchiveError)
  /// Gives up everything since `begin`, if a transaction is open.
  mutating func rollBack()

  /// Writes the rows of a change inside a transaction.
  mutating func write(
    _ change: ArchiveChange,
    at sequence: SequenceNumber,
    _ effect: ChangeEffect
  ) throws(ArchiveError)
  /// Writes the numbers every commit writes anew, inside a transaction.
  mutating func write(_ tip: ArchiveTip) throws(ArchiveError)
  /// Deletes rows inside a transaction.
  mutating func delete(_ purge: ArchivePurge) throws(ArchiveError)
  /// Deletes contexts inside a transaction.
  mutating func delete(_ contexts: [ContextID]) throws(ArchiveError)

  /// Reads everything but texts.
  func index() throws(ArchiveError) -> ArchiveIndex
  /// The state row of a sequence that the index names.
  func state(at sequence: SequenceNumber) throws(ArchiveError) -> StateReading
  /// The node row of a sequence that the index names.
  func node(at sequence: SequenceNumber) throws(ArchiveError) -> NodeRecord
  func contexts() throws(ArchiveError) -> [ContextID: String]
  /// In ascending order of id.
  func sessions() throws(ArchiveError) -> [SessionRecord]
  /// In ascending order of node.
  func claims() throws(ArchiveError) -> [ClaimRecord]
  func run() throws(ArchiveError) -> RunRecord?
}

/// When a store does its upkeep, and in which portions.
package struct ArchiveUpkeep: Sendable {
  /// Dead bytes from which on commits delete dead rows themselves: this many, or `deadPerReachable` times the
  /// reachable ones, whichever is more.
  package var deadBytesMax: Int
  package var deadPerReachable: Int
  /// One batch of deletions.
  package var batchRowsMax: Int
  package var batchBytesMax: Int
  /// Size of the write-ahead log from which on it is moved into the main file although the store is busy.
  package var logBytesMax: Int
  /// Unused bytes inside the main file from which on it is shortened when idle.
  package var freeBytesMax: Int
  /// Size of the file that is given up so that a full disk still takes deletions.
  package var ballastBytes: Int

  package init(
    deadBytesMax: Int = 64 << 20,
    deadPerReachable: Int = 2,
    batchRowsMax: Int = 256,
    batchBytesMax: Int = 1 << 20,
    logBytesMax: Int = 4 << 20,
    freeBytesMax: Int = 1 << 20,
    ballastBytes: Int = 1 << 20
  ) {
    self.deadBytesMax = deadBytesMax
    self.deadPerReachable = deadPerReachable
    self.batchRowsMax = batchRowsMax
    self.batchBytesMax = batchBytesMax
    self.logBytesMax = logBytesMax
    self.freeBytesMax = freeBytesMax
    self.ballastBytes = ballastBytes
  }
}
