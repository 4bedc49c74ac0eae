// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Copies a generation into the head and seals the head as the next generation, in one step; the former state stays
  /// as a generation (R16).
  ///
  /// - Parameters:
  ///   - force: roll back even while sessions are live. They keep their objects, are notified by `headReplaced`, and
  ///     should restore again.
  ///   - objects: bring back only these, with all below them; `nil` means all.
  @discardableResult
  public func rollBack(
    _ application: String? = nil,
    to generation: Int64,
    force: Bool = false,
    objects: [IdentifierPath]? = nil,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> RolledBackArchive {
    let call = RollBack().with {
      $0.generation = generation
      $0.force = force
      $0.objects = objects
    }
    return try await perform(call, application: application, progress: progress)
  }

  /// What differs between two generations of an application, or a generation and the head, path by path. Reads all
  /// pages.
  ///
  /// - Parameters:
  ///   - to: `nil` compares with the head.
  ///   - reveal: tell the keys of confidential objects.
  public func diffGenerations(
    of application: String? = nil,
    from: Int64,
    to: Int64? = nil,
    reveal: Bool = false,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> GenerationDifference {
    try await withProgress(progress) { token in
      var call = DiffGenerations().with {
        $0.from = from
        $0.to = to
        $0.reveal = reveal
        $0.progressToken = token
      }
      var difference = try await perform(call, application: application)
      while let cursor = difference.cursor {
        call.cursor = cursor
        let page = try await perform(call, application: application)
        difference.added += page.added
        difference.removed += page.removed
        difference.changed += page.changed
        difference.cursor = page.cursor
      }
      return difference
    }
  }

  /// Why an object was saved and restored, or was not: what happened to it in the last round and the last restoration.
  ///
  /// - Parameter reveal: tell the model identifiers of a confidential object.
  public func explainRestoration(
    of object: ObjectReference,
    reveal: Bool = false,
    application: String? = nil
  ) async throws -> RestorationExplanation {
    let call = ExplainRestoration().with {
      $0.object = object
      $0.reveal = reveal
    }
    return try await perform(call, application: application)
  }
}
