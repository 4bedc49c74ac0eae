// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// The saved state of an application at one moment, as a document for `importArchive` (`Protocol/export-format.md`).
  /// Equal saved states give the same bytes.
  ///
  /// - Parameters:
  ///   - generation: `nil` exports the head.
  ///   - reveal: include confidential states; a document without them needs `force` to be imported.
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

  /// Replaces the saved state of an application by a document from `exportArchive`. If this throws, nothing is changed.
  /// The application must not be in use. A document too large for one message is sent in parts.
  ///
  /// - Parameters:
  ///   - force: replace existing state, which stays as the newest generation; accept a document without some states.
  ///   - dryRun: change nothing; throws if the import would.
  @discardableResult
  public func importArchive(
    _ document: String,
    into application: String? = nil,
    force: Bool = false,
    dryRun: Bool = false,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> ImportedArchive {
    let parts = try ImportedDocument(document, limits: try await perform(ReportLimits()))
    let total = Int64(parts.objectCount)
    var told: ArchiveProgress.Handler?
    if let progress {
      // The broker does not know the number of parts.
      told = { come in progress(come.with { $0.total = total }) }
    }
    return try await withProgress(told) { token in
      let call = ImportArchive().with { ($0.force, $0.dryRun, $0.progressToken) = (force, dryRun, token) }
      return try await send(parts, into: application, call)
    }
  }

  private func send(
    _ parts: ImportedDocument,
    into application: String?,
    _ call: ImportArchive
  ) async throws -> ImportedArchive {
    var call = call
    call.more = true
    for index in 0..<parts.count - 1 {
      call.part = try parts.part(index)
      call.upload = try await perform(call, application: application).upload
    }
    call.more = false
    let last = try parts.part(parts.count - 1)
    if parts.count == 1 { call.document = last } else { call.part = last }
    return try await perform(call, application: application)
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
