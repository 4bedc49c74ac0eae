// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// An application's sessions and all its objects, without their states. Reads all pages.
  public func describeApplication(_ application: String? = nil) async throws -> ApplicationDescription {
    var description = try await perform(DescribeApplication(), application: application)
    while let cursor = description.cursor {
      let page = try await perform(DescribeApplication().with { $0.cursor = cursor }, application: application)
      description.objects += page.objects
      description.cursor = page.cursor
    }
    return description
  }

  /// The paths of an application's objects, as `describeApplication` has them.
  package func listPaths(of application: String) async throws -> [IdentifierPath] {
    var call = DescribePaths()
    var paths: [IdentifierPath] = []
    while true {
      let page = try await perform(call, application: application)
      paths += page.objects.compactMap(\.path)
      guard let cursor = page.cursor else { return paths }
      call.cursor = cursor
    }
  }

  /// The next components below a path, and whether something is below each.
  ///
  /// - Parameter path: `nil` lists first components.
  package func listPathComponents(
    of application: String,
    below path: IdentifierPath?,
    beginning: String
  ) async throws -> [(component: String, isParent: Bool)] {
    var call = ListPathComponents().with { ($0.path, $0.beginning) = (path, beginning) }
    var found: [(component: String, isParent: Bool)] = []
    while true {
      let page = try await perform(call, application: application)
      var parents = page.parents[...]
      for component in page.components {
        let isParent = parents.first.map { $0.utf8.elementsEqual(component.utf8) } ?? false
        if isParent { parents.removeFirst() }
        found.append((component, isParent))
      }
      guard let cursor = page.cursor else { return found }
      call.cursor = cursor
    }
  }

  /// The saved state of an application, object by object. Changes nothing and opens no decode window.
  ///
  /// - Parameters:
  ///   - generation: `nil` reads the head.
  ///   - reveal: show the states of confidential objects.
  public func readArchive(
    of application: String? = nil,
    generation: Int64? = nil,
    reveal: Bool = false
  ) -> SavedObjects {
    SavedObjects(connection: self, generation: generation, reveal: reveal, application: application)
  }

  /// States that are withheld after crashes or suspected of one. Reads all pages.
  ///
  /// - Parameter reveal: show the states of confidential objects.
  public func listQuarantine(of application: String? = nil, reveal: Bool = false) async throws -> QuarantineReport {
    var call = ListQuarantine().with { $0.reveal = reveal }
    var report = try await perform(call, application: application)
    while let cursor = report.cursor {
      call.cursor = cursor
      let page = try await perform(call, application: application)
      report.objects += page.objects
      report.cursor = page.cursor
    }
    return report
  }

  /// The differences between two generations, or a generation and the head, path by path. Reads all pages.
  ///
  /// - Parameters:
  ///   - to: `nil` compares with the head.
  ///   - reveal: show the keys of confidential objects.
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
}
