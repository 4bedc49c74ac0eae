// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Checks everything that is stored of an application, and changes nothing. Others are served meanwhile.
  public func verifyArchive(
    of application: String? = nil,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> ArchiveVerification {
    try await perform(VerifyArchive(), application: application, progress: progress)
  }

  /// Copies an archive to a file, or renews the copy the broker falls back to when the archive is damaged (R32).
  ///
  /// - Parameter path: absolute, of a file that does not exist yet. The broker makes it, readable only for its owner;
  ///   it appears when it is complete. `nil` renews the archive's own backup.
  @discardableResult
  public func backUpArchive(
    of application: String? = nil,
    to path: String? = nil,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> ArchiveBackup {
    try await perform(BackupArchive().with { $0.to = path }, application: application, progress: progress)
  }

  /// The saved state of an application at one moment, as the text of a document that `importArchive` accepts
  /// (`Protocol/export-format.md`). Equal saved states give the same text, byte by byte.
  ///
  /// - Parameters:
  ///   - generation: `nil` exports the head.
  ///   - reveal: whether confidential states are part of it; without them it is imported only by force.
  public func exportArchive(
    of application: String? = nil,
    generation: Int64? = nil,
    reveal: Bool = false,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> String {
    try await withProgress(progress) { token in
      var document = ExportedDocument()
      var cursor: String?
      repeat {
        let call = ExportArchive().with {
          $0.generation = generation
          $0.cursor = cursor
          $0.reveal = reveal
          $0.progressToken = token
        }
        let reply = try await perform(call, application: application)
        guard document.append(reply.part) else { throw unexpectedAnswer(to: ExportArchive.method) }
        cursor = reply.cursor
      } while cursor != nil
      return document.text
    }
  }

  /// Replaces the saved state of an application by a document from `exportArchive`: completely, or not at all if this
  /// throws. The application must not be in use. A document too large for one message is sent in parts.
  ///
  /// - Parameter force: replace existing state, which stays as the newest generation, and accept a document in which
  ///   states are missing.
  @discardableResult
  public func importArchive(
    _ document: String,
    into application: String? = nil,
    force: Bool = false,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> ImportedArchive {
    let parts = try ImportedDocument(document, limits: try await perform(ReportLimits()))
    let total = Int64(parts.objectCount)
    var told: ArchiveProgress.Handler?
    if let progress {
      // The broker does not know how many are to come.
      told = { come in progress(come.with { $0.total = total }) }
    }
    return try await withProgress(told) { token in
      try await send(parts, into: application, force: force, token)
    }
  }

  private func send(
    _ parts: ImportedDocument,
    into application: String?,
    force: Bool,
    _ token: ProgressToken?
  ) async throws -> ImportedArchive {
    var call = ImportArchive().with {
      $0.more = true
      $0.force = force
      $0.progressToken = token
    }
    for index in 0..<parts.count - 1 {
      call.part = try parts.part(index)
      call.upload = try await perform(call, application: application).upload
    }
    call.more = false
    let last = try parts.part(parts.count - 1)
    if parts.count == 1 { call.document = last } else { call.part = last }
    return try await perform(call, application: application)
  }

  /// Calls a method that tells how far it has come.
  func perform<Method: LongMethod>(
    _ call: Method,
    application: String?,
    progress: ArchiveProgress.Handler?
  ) async throws -> Method.Reply {
    try await withProgress(progress) { token in
      try await perform(call.with { $0.progressToken = token }, application: application)
    }
  }

  /// Calls `body` with a token for the broker's `progress` notifications; without a token if there is no handler.
  func withProgress<Result>(
    _ progress: ArchiveProgress.Handler?,
    _ body: (ProgressToken?) async throws -> Result
  ) async throws -> Result {
    guard let progress else { return try await body(nil) }
    let token = await link.add(progress)
    do {
      let result = try await body(token)
      await link.removeProgress(token)
      return result
    } catch {
      await link.removeProgress(token)
      throw error
    }
  }
}
