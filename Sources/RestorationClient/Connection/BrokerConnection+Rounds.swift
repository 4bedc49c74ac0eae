// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// On a connection without a session, `application` names the application; with a session it is omitted.
extension BrokerConnection {
  /// Saves a whole application: all its processes are asked for the states of their objects, and the answers become one
  /// generation (R11, R12). Joins a round that is under way.
  ///
  /// - Parameters:
  ///   - reason: for people and logs.
  ///   - deadline: how long the round may take; `nil` takes the broker's 5 seconds.
  ///   - progress: told how far the round has come.
  public func saveApplicationState(
    of application: String? = nil,
    reason: String? = nil,
    deadline: Duration? = nil,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> SaveResult {
    let call = SaveApplicationState().with { message in
      message.reason = reason
      message.deadlineMilliseconds = deadline.map { max(1, $0.wholeMilliseconds) }
    }
    return try await perform(call, application: application, progress: progress)
  }

  /// Restores all saved objects of an application that are not restored yet (R21–R24). Joins a restoration that is
  /// under way.
  ///
  /// - Parameters:
  ///   - deadline: when the restoration ends with what has been restored until then; `nil` means the broker's 10
  ///     seconds.
  ///   - objects: restore only these, with all below them; `nil` means all.
  ///   - progress: told how far it has come.
  public func restoreApplicationState(
    of application: String? = nil,
    deadline: Duration? = nil,
    objects: [ObjectReference]? = nil,
    progress: ArchiveProgress.Handler? = nil
  ) async throws -> RestoreResult {
    let call = RestoreApplicationState().with {
      $0.deadlineMilliseconds = deadline.map { max(1, $0.wholeMilliseconds) }
      $0.objects = objects
    }
    return try await perform(call, application: application, progress: progress)
  }

  /// Holds back the end of the restoration until `completeStateRestoration` was called as often (R21); gives how many
  /// sessions of the application are still restoring.
  @discardableResult
  public func extendStateRestoration() async throws -> Int64 { try await perform(ExtendStateRestoration()).pending }

  /// Says that the saved state of an object is out of date: the broker asks for its state within a second.
  public func invalidateRestorableState(of object: ObjectReference) async throws {
    _ = try await perform(InvalidateRestorableState().with { $0.object = object })
  }

  /// Makes this session answer `objectWithRestorationIdentifierPath` for a restoration class (R22, R23).
  public func registerRestorationClass(_ name: String, shared: Bool = false) async throws {
    _ = try await perform(RegisterRestorationClass().with { ($0.restorationClass, $0.isShared) = (name, shared) })
  }

  /// Makes this session the data source of a view (R28).
  public func registerDataSource(for view: ObjectReference) async throws {
    _ = try await perform(RegisterDataSource().with { $0.view = view })
  }
}
