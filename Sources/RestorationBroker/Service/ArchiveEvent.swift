// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

package enum ArchiveEvent {
  case opened(ApplicationID, Result<OpenedArchive, ArchiveError>)
  case committed(ApplicationID, ArchiveReceipt)
  /// Nothing of the transaction was stored: open the archive again. `pause`: milliseconds until the next write; `nil`
  /// if the broker is stopping and writes no more.
  case commitFailed(ApplicationID, ErrorObject, pause: Int64?)
  case read(ApplicationID, StateRequest, Result<[StateReading?], ArchiveError>)
  case listed(ListingPurpose, Result<ArchiveListing, ArchiveError>)
  case wanted(ApplicationID, host: String)
  case lost(ApplicationID, ArchiveLoss)
  /// News of an archive and its replica; the archive need not be open.
  case replica(ApplicationName, ReplicaFact)
}
