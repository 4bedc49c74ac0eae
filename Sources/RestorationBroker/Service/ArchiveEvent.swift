// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// What the gateway of archives reports.
package enum ArchiveEvent {
  case opened(ApplicationID, Result<OpenedArchive, ArchiveError>)
  case committed(ApplicationID, ArchiveReceipt)
  /// Nothing of the transaction was stored: the archive is to be opened again. Nothing is written for the pause, in
  /// milliseconds; nil if nothing more is, because the broker is stopping.
  case commitFailed(ApplicationID, ErrorObject, pause: Int64?)
  case read(ApplicationID, StateRequest, Result<[StateReading?], ArchiveError>)
  case carriedOut(ApplicationID, StoreJob, Result<StoreJob.Outcome, ArchiveCopyError>)
  case listed(ListingPurpose, Result<ArchiveListing, ArchiveError>)
  /// Another host waits for the archive.
  case wanted(ApplicationID, host: String)
  /// Another host has it.
  case lost(ApplicationID, ArchiveLoss)
  /// What became of an archive and its replica, which need not be open.
  case replica(ApplicationName, ReplicaFact)
}
