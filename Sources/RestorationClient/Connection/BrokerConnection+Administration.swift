// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Applications that have live sessions or an archive, by name.
  public func listApplications() async throws -> [ApplicationOverview] {
    try await perform(ListApplications()).applications
  }

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

  /// How a path can go on: the components that begin so, and whether something is below each.
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

  /// The generations of an application's archive, by number.
  public func listGenerations(of application: String? = nil) async throws -> [GenerationDescription] {
    try await perform(ListGenerations(), application: application).generations
  }

  /// Everything an application has saved, object by object. It changes nothing and opens no decode window.
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

  /// A socket for a sandbox: whoever comes through it may use this application and its instances only. It is made if
  /// there is none. Not for clients in sandboxes.
  public func openSocket(of application: String) async throws -> ApplicationSocket {
    let name = try ApplicationName(sending: application)
    return try await perform(OpenApplicationSocket().with { $0.application = name })
  }

  /// What the fleet's store has of archives that follow their user, and what it lacks.
  ///
  /// - Parameter application: `nil` for all.
  public func replicaStatus(of application: String? = nil) async throws -> ReplicaStatus {
    let name = try application.map { try ApplicationName(sending: $0) }
    return try await perform(ReportReplica().with { $0.application = name })
  }

  /// Waits until the fleet's store has what was stored before.
  ///
  /// - Parameters:
  ///   - application: `nil` for all.
  ///   - limit: for so long; `nil` for 5 seconds.
  /// - Returns: of which applications the store does not have everything.
  public func flushReplica(of application: String? = nil, within limit: Duration? = nil) async throws -> [UnsentChanges]
  {
    let name = try application.map { try ApplicationName(sending: $0) }
    let milliseconds = limit.map { $0 / .milliseconds(1) }.map { Int64($0) }
    return try await perform(FlushReplica().with { ($0.application, $0.milliseconds) = (name, milliseconds) }).unsent
  }

  /// Sends the archive of an application that is not in use to the fleet's store anew, sealed with the present key.
  public func migrateReplica(of application: String) async throws {
    let name = try ApplicationName(sending: application)
    _ = try await perform(MigrateReplica().with { $0.application = name })
  }

  /// The limits that the broker enforces.
  public func limits() async throws -> Limits { try await perform(ReportLimits()) }

  /// The broker's activity since its start, and its present content.
  public func statistics() async throws -> BrokerStatistics { try await perform(ReportStatistics()) }

  /// Returns when the broker has answered, and so has read all that was sent before.
  public func ping() async throws { _ = try await perform(Ping()) }

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

  /// Hands out withheld states again, and clears suspicions.
  ///
  /// - Parameter path: the object; `nil` releases everything, the archive as a whole included.
  /// - Returns: how many objects' states were withheld until now.
  @discardableResult
  public func releaseQuarantine(of path: IdentifierPath? = nil, application: String? = nil) async throws -> Int {
    try await perform(ReleaseQuarantine().with { $0.path = path }, application: application).released
  }
}
