// SPDX-License-Identifier: Apache-2.0

/// What becomes of space when there is none.
extension ApplicationArchive {
  /// Bytes that one transaction gives up: as many as its pages may take up in memory, or as few as it is worth its own.
  private static let portions = (most: 64 << 20, least: 1 << 14)

  /// Runs what writes the changes. If it fails for lack of space, what nobody can read makes room, with the ballast
  /// lent for that, and it is tried once more. Only what removes something may need the ballast for itself.
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

  /// Gives up all that nobody can read, as far as there is room to do so.
  ///
  /// Pages that a transaction cuts off the end of the file need no place in the log. So a large one logs less than
  /// small ones do, which move pages into gaps again and again; they are for what must be moved anyway.
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
  /// Whether they may take the ballast: removals, and the notes they need, add little. What empties the head
  /// frees more than the nodes it leaves take.
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
