// SPDX-License-Identifier: Apache-2.0

/// What a store does whose archives can be carried from host to host. Not in `ArchiveStore`, which knows of no copies.
///
/// Everything is durable when a method returns. No method is called for an application while another one is under way
/// that is about the same copy.
package protocol ArchiveCarrying: ArchiveStore {
  /// The version of a reader that copies from here need.
  nonisolated var copyVersion: Int { get }

  /// Where an open archive ends.
  nonisolated(nonsending) func tip(_ lease: ArchiveLease) async throws(ArchiveError) -> ReplicaTip

  /// What is known of an archive without opening it; `nil` if it does not exist.
  nonisolated(nonsending) func summary(of application: String) async -> ArchiveSummary?

  /// Applications of which something is kept beside their archive, in ascending order.
  nonisolated(nonsending) func noted() async throws(ArchiveError) -> [String]
  /// What was kept beside the archive; empty if nothing was, or what is there is not a note.
  nonisolated(nonsending) func note(of application: String) async throws(ArchiveError) -> ReplicaNote
  /// - Parameter note: `nil` removes it.
  nonisolated(nonsending) func keep(_ note: ReplicaNote?, of application: String) async throws(ArchiveError)

  /// Copies everything committed, to be read piece by piece; a former copy goes.
  ///
  /// - Parameter shared: makes of a session's record what other hosts are told of it.
  nonisolated(nonsending) func beginCopy(
    _ lease: ArchiveLease,
    sharing shared: @escaping @Sendable (SessionRecord) -> SessionRecord
  ) async throws(ArchiveError) -> ArchiveCopy
  nonisolated(nonsending) func copy(
    of application: String,
    _ range: Range<Int>
  ) async throws(ArchiveError) -> [UInt8]
  nonisolated(nonsending) func endCopy(of application: String) async

  /// Takes such a copy, piece by piece; without a piece it is an empty archive.
  nonisolated(nonsending) func beginIncoming(_ application: String) async throws(ArchiveError)
  nonisolated(nonsending) func addIncoming(_ bytes: [UInt8], to application: String) async throws(ArchiveError)
  /// Checks it, and makes it an archive of its own.
  nonisolated(nonsending) func endIncoming(_ application: String) async throws(ArchiveError) -> CatchingUp.Copy
  /// Removes it, if it was not installed.
  nonisolated(nonsending) func dropIncoming(_ application: String) async
  /// Puts it in the place of the archive, which is not open.
  nonisolated(nonsending) func install(_ application: String) async throws(ArchiveError)

  /// Keeps a copy of an archive that is not open, until a person removes it. Returns its name.
  nonisolated(nonsending) func setAside(_ application: String) async throws(ArchiveError) -> String
  /// The names of all such copies, in ascending order.
  nonisolated(nonsending) func setAside() async throws(ArchiveError) -> [String]
  nonisolated(nonsending) func removeSetAside(_ application: String) async throws(ArchiveError)
}

package struct ArchiveCopy: Hashable, Sendable {
  /// Where it ends.
  package let tip: ReplicaTip
  package let bytes: Int

  package init(tip: ReplicaTip, bytes: Int) { (self.tip, self.bytes) = (tip, bytes) }
}
