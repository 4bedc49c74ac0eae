// SPDX-License-Identifier: Apache-2.0

extension SQLiteArchiveStore: ArchiveCarrying {
  package nonisolated var copyVersion: Int { Int(ArchiveSchema.version) }

  nonisolated(nonsending) package func tip(_ lease: ArchiveLease) async throws(ArchiveError) -> ReplicaTip {
    try await archive(lease).tip(lease)
  }

  package func noted() throws(ArchiveError) -> [String] { try files(ArchiveFiles.application(ofNote:)) }

  package func setAside() throws(ArchiveError) -> [String: Int64] {
    let copies = try files { file in
      let name = String(file.dropLast(ArchiveFiles.suffix.count))
      return file.hasSuffix(ArchiveFiles.suffix) && ArchiveFiles.isSetAside(name) ? name : nil
    }
    return copies.reduce(into: [:]) { times, copy in
      guard case .file(_, let changed, _)? = try? directory.entry(ArchiveFiles(copy).main) else { return }
      times[copy] = Int64(changed / 1_000_000)
    }
  }

  private nonisolated func files(_ name: (String) -> String?) throws(ArchiveError) -> [String] {
    do throws(SystemError) {
      return try directory.names().compactMap(name).sorted()
    } catch {
      throw ArchiveError(.unreadable, error.message)
    }
  }

  nonisolated(nonsending) package func note(of application: String) async throws(ArchiveError) -> String? {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.note() }
  }

  nonisolated(nonsending) package func keep(
    _ note: String?,
    of application: String
  ) async throws(ArchiveError) {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.keep(note) }
  }

  /// Deletes the notes of copies on a host without a replica: later writes make them wrong. A later replica treats the
  /// archives as new. Returns their applications.
  package nonisolated func forgetReplica() throws(ArchiveError) -> [String] {
    let noted = try files(ArchiveFiles.application(ofNote:))
    do throws(SystemError) {
      for application in noted { try directory.remove(ArchiveFiles(application).replica) }
      if !noted.isEmpty { try directory.sync() }
      return noted
    } catch {
      throw ArchiveError(.unreadable, error.message)
    }
  }

  nonisolated(nonsending) package func beginCopy(
    _ lease: ArchiveLease,
    sharing shared: @escaping @Sendable (SessionRecord) -> SessionRecord
  ) async throws(ArchiveError) -> ArchiveCopy {
    try await archive(lease).beginCopy(lease, sharing: shared)
  }

  nonisolated(nonsending) package func copy(
    of application: String,
    _ range: Range<Int>
  ) async throws(ArchiveError) -> [UInt8] {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.copy(range) }
  }

  nonisolated(nonsending) package func endCopy(of application: String) async {
    try? await visiting(application) { archive in await archive.endCopy() }
  }

  nonisolated(nonsending) package func beginIncoming(_ application: String) async throws(ArchiveError) {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.beginIncoming() }
  }

  nonisolated(nonsending) package func addIncoming(
    _ bytes: [UInt8],
    to application: String
  ) async throws(ArchiveError) {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.addIncoming(bytes) }
  }

  nonisolated(nonsending) package func endIncoming(
    _ application: String
  ) async throws(ArchiveError) -> CarriedCopy {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.endIncoming() }
  }

  nonisolated(nonsending) package func dropIncoming(_ application: String) async {
    try? await visiting(application) { archive in await archive.dropIncoming() }
  }

  nonisolated(nonsending) package func install(_ application: String) async throws(ArchiveError) {
    try await visiting(application) { archive throws(ArchiveError) in
      try await archive.replace(with: archive.files.incoming)
    }
  }

  nonisolated(nonsending) package func setAside(_ application: String) async throws(ArchiveError) -> String {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.setAside() }
  }

  nonisolated(nonsending) package func removeSetAside(_ application: String) async throws(ArchiveError) {
    try await visiting(application) { archive throws(ArchiveError) in try await archive.removeSetAside() }
  }
}

extension ApplicationArchive {
  fileprivate func tip(_ lease: ArchiveLease) throws(ArchiveError) -> ReplicaTip {
    let tip = try archive(lease).index.tip
    return ReplicaTip(sequence: tip.sequence, change: tip.changeID)
  }

  private func onFiles<Value>(_ body: () throws(SystemError) -> Value) throws(ArchiveError) -> Value {
    do throws(SystemError) {
      return try body()
    } catch {
      throw ArchiveError(error.isFull ? .full : .definite, "archive of \(application): \(error.message)")
    }
  }

  private func inDatabase<Value>(_ body: () throws(SQLiteFailure) -> Value) throws(ArchiveError) -> Value {
    do throws(SQLiteFailure) {
      return try body()
    } catch {
      throw ArchiveError(error.isFull ? .full : .definite, "archive of \(application): \(error)")
    }
  }

  // MARK: The note

  fileprivate func note() throws(ArchiveError) -> String? {
    try onFiles { () throws(SystemError) in
      guard case .file(let size, _, _) = try directory.entry(files.replica), size <= ArchiveFiles.noteBytesMax else {
        return nil
      }
      var text: [UInt8] = []
      try directory.read(files.replica) { text.append(contentsOf: $0) }
      return String(decoding: text, as: UTF8.self)
    }
  }

  fileprivate func keep(_ note: String?) throws(ArchiveError) {
    try onFiles { () throws(SystemError) in
      if let note { return try directory.keep(note, as: files.replica) }
      try directory.remove(files.replica)
      try directory.sync()
    }
  }

  // MARK: A copy that goes

  fileprivate func beginCopy(
    _ lease: ArchiveLease,
    sharing shared: (SessionRecord) -> SessionRecord
  ) throws(ArchiveError) -> ArchiveCopy {
    let archive = try archive(lease)
    let tip = archive.index.tip
    let path = directory.pathname(files.outgoing)
    try onFiles { () throws(SystemError) in _ = try directory.createEmpty(files.outgoing) }
    do throws(ArchiveError) {
      try inDatabase { () throws(SQLiteFailure) in try archive.rows.copy(to: path) }
      try SQLiteArchive.share(path, in: directory.system, by: shared)
      let bytes = try onFiles { () throws(SystemError) in try directory.entry(files.outgoing).bytes }
      return ArchiveCopy(tip: ReplicaTip(sequence: tip.sequence, change: tip.changeID), bytes: bytes)
    } catch {
      endCopy()
      throw error
    }
  }

  fileprivate func copy(_ range: Range<Int>) throws(ArchiveError) -> [UInt8] {
    try onFiles { () throws(SystemError) in
      let file = try directory.system.open(directory.pathname(files.outgoing), .reading)
      var bytes = [UInt8](repeating: 0, count: range.count)
      let count = try bytes.withUnsafeMutableBytes { buffer in
        Result { () throws(SystemError) in try file.read(into: buffer, at: range.lowerBound) }
      }.get()
      bytes.removeLast(bytes.count - count)
      return bytes
    }
  }

  fileprivate func endCopy() { removeDraft(files.outgoing) }

  private func removeDraft(_ name: String) {
    for suffix in ["", ArchiveFiles.logSuffix, ArchiveFiles.journalSuffix] { try? directory.remove(name + suffix) }
  }

  // MARK: A copy that comes

  fileprivate func beginIncoming() throws(ArchiveError) {
    removeDraft(files.incoming)
    try onFiles { () throws(SystemError) in _ = try directory.createEmpty(files.incoming) }
  }

  fileprivate func addIncoming(_ bytes: [UInt8]) throws(ArchiveError) {
    try onFiles { () throws(SystemError) in
      let end = try directory.entry(files.incoming).bytes
      let file = try directory.system.open(directory.pathname(files.incoming), .writing)
      try bytes.withUnsafeBytes { bytes in
        Result { () throws(SystemError) in try file.write(bytes, at: end) }
      }.get()
    }
  }

  fileprivate func dropIncoming() { removeDraft(files.incoming) }

  fileprivate func endIncoming() throws(ArchiveError) -> CarriedCopy {
    var tip = ReplicaTip()
    let path = directory.pathname(files.incoming)
    let isEmpty = try onFiles { () throws(SystemError) in try directory.entry(files.incoming).bytes == 0 }
    if isEmpty {
      try inDatabase { () throws(SQLiteFailure) in try SQLiteArchive.create(at: path, in: directory.system) }
    } else {
      tip = try checkIncoming(path)
    }
    // An archive that is installed twice gets a new identity: the second does not know the changes of the first.
    let archive = try inDatabase { () throws(SQLiteFailure) in
      try SQLiteArchive.settle(at: path, in: directory.system, damage: nil)
    }
    try onFiles { () throws(SystemError) in try directory.syncFile(files.incoming) }
    return CarriedCopy(archive: archive, tip: tip)
  }

  /// Checks a copy from outside. Returns its tip.
  private func checkIncoming(_ path: String) throws(ArchiveError) -> ReplicaTip {
    do throws(OpeningFailure) {
      return try SQLiteArchive.opening(path, in: directory.system) { connection throws(OpeningFailure) in
        let mark = directory.pathname(files.mark)
        _ = try SQLiteArchive(checking: connection, mark: mark, in: directory.system)
        let (index, faults) = try OpeningFailure.deciding { () throws(SQLiteFailure) in try connection.archiveIndex() }
        if let finding = faults.finding { throw .damaged(finding) }
        connection.checkpointsOnClose = true
        connection.close()
        return ReplicaTip(sequence: index.tip.sequence, change: index.tip.changeID)
      }
    } catch {
      throw ArchiveError(error, of: application)
    }
  }

  // MARK: What was set aside

  fileprivate func setAside() throws(ArchiveError) -> String {
    try checkClosed()
    return try onFiles { () throws(SystemError) in
      let last = try conflicts().compactMap { Int($0.dropFirst(files.conflictPrefix.count).prefix { $0.isNumber }) }
        .max()
      let name = "\(files.conflictPrefix)\((last ?? 0) + 1)\(ArchiveFiles.suffix)"
      try directory.copy(files.main, to: files.outgoing)
      try directory.move(files.outgoing, to: name)
      try directory.sync()
      return name
    }
  }

  fileprivate func removeSetAside() throws(ArchiveError) {
    try onFiles { () throws(SystemError) in
      for name in try conflicts() { try directory.remove(name) }
      try directory.sync()
    }
  }

  private func conflicts() throws(SystemError) -> [String] {
    try directory.names().filter { $0.hasPrefix(files.conflictPrefix) }
  }
}

extension SQLiteArchive {
  /// Turns a closed copy into the form shared with other hosts.
  fileprivate static func share(
    _ path: String,
    in system: any FileSystem,
    by shared: (SessionRecord) -> SessionRecord
  ) throws(ArchiveError) {
    do throws(SQLiteFailure) {
      let connection = try SQLiteConnection(path, in: system)
      defer { connection.close() }
      // Overwritten bytes must not be found in the file.
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA secure_delete = ON; BEGIN IMMEDIATE")
      for record in try connection.sessions() {
        let shared = shared(record)
        let statement = try connection.prepare("UPDATE session SET token = ?1, facts = ?2 WHERE session = ?3")
        try statement.run([shared.token, shared.facts, record.session])
      }
      try connection.execute("COMMIT")
      try connection.checkpoint(.emptyingFile)
      connection.checkpointsOnClose = true
    } catch {
      throw ArchiveError(error.isFull ? .full : .definite, "copy: \(error)")
    }
  }
}
