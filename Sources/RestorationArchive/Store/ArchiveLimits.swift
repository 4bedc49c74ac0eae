// SPDX-License-Identifier: Apache-2.0

/// Limits for all archives of a store together; an existing archive is always opened.
package struct ArchiveQuota: Hashable, Sendable {
  package var applicationsMax: Int
  package var allArchivesBytesMax: Int
  /// The most archives with open files; others are closed until their next use.
  package var openArchivesMax: Int

  package init(applicationsMax: Int = 1_024, allArchivesBytesMax: Int = 1 << 30, openArchivesMax: Int = 64) {
    (self.applicationsMax, self.allArchivesBytesMax) = (applicationsMax, allArchivesBytesMax)
    self.openArchivesMax = openArchivesMax
  }
}

/// When a store does its upkeep, and in which portions.
package struct ArchiveUpkeep: Sendable {
  /// Above this many dead bytes, and above `deadPerReachable` times the reachable ones, commits delete dead rows.
  package var deadBytesMax: Int
  package var deadPerReachable: Int
  /// One batch of deletions.
  package var batchRowsMax: Int
  package var batchBytesMax: Int
  /// Above this size the write-ahead log is moved even if the store is busy. Commits wait a millisecond or two for each
  /// MiB.
  package var logBytesMax: Int
  /// Above this many unused bytes the main file is shortened when idle.
  package var freeBytesMax: Int
  /// Size of the file that is released so that deletions work on a full disk.
  package var ballastBytes: Int

  package init(
    deadBytesMax: Int = 64 << 20,
    deadPerReachable: Int = 2,
    batchRowsMax: Int = 256,
    batchBytesMax: Int = 1 << 20,
    logBytesMax: Int = 2 << 20,
    freeBytesMax: Int = 1 << 20,
    ballastBytes: Int = 1 << 20
  ) {
    (self.deadBytesMax, self.deadPerReachable) = (deadBytesMax, deadPerReachable)
    (self.batchRowsMax, self.batchBytesMax, self.logBytesMax) = (batchRowsMax, batchBytesMax, logBytesMax)
    (self.freeBytesMax, self.ballastBytes) = (freeBytesMax, ballastBytes)
  }

  /// Keeps files below about two and a half times the limit: it holds for the head, and as much again for all else.
  package init(archiveBytesMax: Int) {
    self.init(deadBytesMax: max(4 << 20, archiveBytesMax / 16), deadPerReachable: 0)
  }
}
