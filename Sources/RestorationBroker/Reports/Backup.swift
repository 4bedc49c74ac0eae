// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Copies the archive: to a file, or as its own backup copy. It is one piece, and cannot be cancelled.
struct Backup: Report {
  let path: String?
  var isCancellable: Bool { false }

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    let bytes = try await archive.copy(to: path)
    try await archive.tell(bytes, of: bytes, isLast: true)
    let milliseconds = try await archive.milliseconds()
    return BackupArchive.Reply().with { ($0.to, $0.bytes, $0.milliseconds) = (path, bytes, milliseconds) }
  }
}
