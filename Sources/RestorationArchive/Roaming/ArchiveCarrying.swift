// SPDX-License-Identifier: Apache-2.0

/// A store whose archives can be copied from host to host. Kept apart from `ArchiveStore`, which knows of no copies.
///
/// When a method returns, its effect is durable. Callers run one method at a time for each copy of an application.
package protocol ArchiveCarrying: ArchiveStore {
  /// The version of a reader that this store's copies need.
  nonisolated var copyVersion: Int { get }

  nonisolated(nonsending) func tip(_ lease: ArchiveLease) async throws(ArchiveError) -> ReplicaTip

  /// Read without opening the archive; `nil` if it does not exist.
  nonisolated(nonsending) func summary(of application: String) async -> ArchiveSummary?

  /// Applications with a note beside their archive, in ascending order.
  nonisolated(nonsending) func noted() async throws(ArchiveError) -> [String]
  /// The text of the note beside the archive; `nil` if there is none, or one that is too long.
  nonisolated(nonsending) func note(of application: String) async throws(ArchiveError) -> String?
  /// - Parameter note: `nil` removes it.
  nonisolated(nonsending) func keep(_ note: String?, of application: String) async throws(ArchiveError)

  /// Copies everything committed, to be read in pieces, and replaces a former copy.
  ///
  /// - Parameter shared: reduces a session's record to what other hosts may know.
  nonisolated(nonsending) func beginCopy(
    _ lease: ArchiveLease,
    sharing shared: @escaping @Sendable (SessionRecord) -> SessionRecord
  ) async throws(ArchiveError) -> ArchiveCopy
  nonisolated(nonsending) func copy(
    of application: String,
    _ range: Range<Int>
  ) async throws(ArchiveError) -> [UInt8]
  nonisolated(nonsending) func endCopy(of application: String) async

  /// Receives such a copy in pieces; without a piece it becomes an empty archive.
  nonisolated(nonsending) func beginIncoming(_ application: String) async throws(ArchiveError)
  nonisolated(nonsending) func addIncoming(_ bytes: [UInt8], to application: String) async throws(ArchiveError)
  /// Checks the received copy and makes it a separate archive.
  nonisolated(nonsending) func endIncoming(_ application: String) async throws(ArchiveError) -> CarriedCopy
  /// Removes the received copy unless it was installed.
  nonisolated(nonsending) func dropIncoming(_ application: String) async
  /// Replaces the archive, which must be closed, by the received copy.
  nonisolated(nonsending) func install(_ application: String) async throws(ArchiveError)

  /// Keeps a copy of a closed archive until a person removes it. Returns the copy's name.
  nonisolated(nonsending) func setAside(_ application: String) async throws(ArchiveError) -> String
  /// The names under which all copies set aside can be opened, and since when they are, in milliseconds since 1970.
  nonisolated(nonsending) func setAside() async throws(ArchiveError) -> [String: Int64]
  nonisolated(nonsending) func removeSetAside(_ application: String) async throws(ArchiveError)
}

/// The end of contents: the last sequence, and the transaction that wrote it.
package struct ReplicaTip: Hashable, Sendable {
  package var sequence: SequenceNumber
  /// `nil` if the contents are empty.
  package var change: ChangeID?

  package init(sequence: SequenceNumber = 0, change: ChangeID? = nil) {
    (self.sequence, self.change) = (sequence, change)
  }
}

/// A copy of an archive that this store can open.
package struct CarriedCopy: Hashable, Sendable {
  /// Its UUID.
  package var archive: String
  package var tip: ReplicaTip

  package init(archive: String, tip: ReplicaTip) { (self.archive, self.tip) = (archive, tip) }
}

package struct ArchiveCopy: Hashable, Sendable {
  package let tip: ReplicaTip
  package let bytes: Int

  package init(tip: ReplicaTip, bytes: Int) { (self.tip, self.bytes) = (tip, bytes) }
}
