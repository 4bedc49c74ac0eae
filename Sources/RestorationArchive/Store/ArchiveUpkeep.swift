// SPDX-License-Identifier: Apache-2.0

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
    logBytesMax: Int = 32 << 20,
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
