// SPDX-License-Identifier: Apache-2.0

/// Frees space when the disk is full.
extension ApplicationArchive {
  /// Bytes that one transaction frees. The most bounds its pages in memory; the least is worth a transaction of its
  /// own.
  private static let portions = (most: 64 << 20, least: 1 << 14)

  /// Writes changes. If space is lacking, purges dead rows with the ballast lent, then tries once more. Only removals
  /// may use the ballast for themselves.
  func withRoom<Value>(
    for changes: [ArchiveChange],
    in archive: OpenArchive<SQLiteArchive>,
    holding: [SequenceNumber],
    _ body: () throws(ArchiveError) -> Value
  ) throws(ArchiveError) -> Value {
    do throws(ArchiveError) {
      return try body()
    } catch {
      guard error.kind == .full else { throw error }
      let lent = directory.releaseBallast()
      defer { directory.makeBallast(bytes: upkeep.ballastBytes, released: lent) }
      try makeRoom(in: archive, holding: holding)
      guard changes.areSmall || directory.makeBallast(bytes: upkeep.ballastBytes, released: lent) else { throw error }
      return try body()
    }
  }

  /// Deletes all dead rows, as far as there is room to do so. A large transaction logs less than small ones: pages cut
  /// off the file's end need no place in the log, while small transactions move pages into gaps again and again.
  private func makeRoom(
    in archive: OpenArchive<SQLiteArchive>,
    holding: [SequenceNumber]
  ) throws(ArchiveError) {
    try archive.rows.setSparing(true)
    defer { try? archive.rows.setSparing(false) }
    var portion = Self.portions.most
    var isMore = true
    while isMore, portion >= Self.portions.least {
      ArchiveThreads.noteStep()
      _ = try unlessFull { () throws(ArchiveError) in try checkpoint(archive, .emptyingFile) }
      let isMade = try unlessFull { () throws(ArchiveError) in
        let purge = ArchivePurge(rowsMax: .max, bytesMax: portion)
        isMore = try archive.purge(purge, holding: holding) { () throws(ArchiveError) in
          try archive.rows.releasePages(beyond: 0, atMost: portion)
        }
      }
      if !isMade { portion /= 16 }
    }
  }

  /// Returns whether there was room for it.
  private func unlessFull(_ body: () throws(ArchiveError) -> Void) throws(ArchiveError) -> Bool {
    do throws(ArchiveError) {
      try body()
      return true
    } catch {
      guard error.kind == .full else { throw error }
      return false
    }
  }
}

extension [ArchiveChange] {
  /// Whether the changes may use the ballast: removals and their notes add little, and emptying the head frees more
  /// than it adds.
  fileprivate var areSmall: Bool {
    let emptiesHead = contains(.removeAll)
    return allSatisfy { change in
      if case .node = change, emptiesHead { true } else { change.isSmall }
    }
  }
}

extension ArchiveChange {
  fileprivate var isSmall: Bool {
    switch self {
    case .node(let record): record.isRemoved
    case .superseded, .removeState, .removeAll, .settle, .withhold, .release, .forgetContexts, .pin, .dropGeneration,
      .session, .forgetSessions, .claim, .run:
      true
    case .state, .context, .seal: false
    }
  }
}
