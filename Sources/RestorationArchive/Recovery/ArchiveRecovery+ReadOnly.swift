// SPDX-License-Identifier: Apache-2.0

extension ArchiveRecovery {
  /// Opens an archive that was set aside, or that of a read-only directory, as a copy in memory.
  func openInMemory() throws(OpeningFailure) -> Opened {
    let main = try image(files.main)
    if let main, let opened = try open(main) { return opened }
    let removed = try entry(files.removed)
    let finding = main == nil ? "its file is missing" : "its file is not sound"
    for name in main == nil && removed != .absent ? [] : [files.backup, files.former] {
      if let copy = try image(name), let opened = try open(copy, after: main, finding) { return opened }
    }
    guard main != nil || isCreating else { throw .absent }
    guard let opened = try open(nil, after: main, main == nil ? nil : finding) else { throw .unreadable(finding) }
    return opened
  }

  /// `nil` if there is no such file, or it is empty.
  private func image(_ name: String) throws(OpeningFailure) -> ArchiveImage? {
    guard try entry(name).bytes > 0 else { return nil }
    return try OpeningFailure.deciding { () throws(SystemError) in try ArchiveImage(of: name, in: directory) }
  }

  /// - Parameters:
  ///   - image: `nil` for an empty archive.
  ///   - main: the damaged archive itself; its sound rows are added.
  ///   - finding: why the image replaces the archive.
  /// - Returns: `nil` if the image is damaged.
  private func open(
    _ image: ArchiveImage?,
    after main: ArchiveImage? = nil,
    _ finding: String? = nil
  ) throws(OpeningFailure) -> Opened? {
    let system = directory.system
    do throws(OpeningFailure) {
      let connection = try OpeningFailure.deciding { () throws(SQLiteFailure) -> SQLiteConnection in
        let connection = try SQLiteConnection(inMemory: image?.bytes ?? [], in: system)
        if image == nil { try SQLiteArchive.create(in: connection, of: system) }
        if let main { _ = try Salvage(main, of: system).add(to: connection) }
        return connection
      }
      let archive = try SQLiteArchive(checking: connection, mark: directory.pathname(files.mark), in: system)
      let index = try OpeningFailure.deciding { () throws(SQLiteFailure) -> ArchiveIndex in
        let faults = try connection.archiveIndex().faults
        let findings = [finding, faults.finding].compactMap(\.self).joined(separator: "; ")
        try connection.execute("BEGIN")
        if !findings.isEmpty {
          let place = files.isSetAside ? "was set aside" : "its directory is read-only"
          let damage = "the archive of \(files.application) is damaged (\(findings)), and \(place)"
          _ = try connection.settle("\(damage): what is sound is served\(faults.remedy)", mending: faults, of: system)
        }
        if try !connection.hasChecksums() { try connection.addChecksums() }
        try connection.execute("COMMIT")
        return try connection.archiveIndex().index
      }
      return Opened(archive: archive, index: index, faults: RowFaults())
    } catch {
      guard case .damaged = error else { throw error }
      return nil
    }
  }
}
