// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// What the broker tells a session without being asked.
public enum BrokerNotification: Hashable, Sendable {
  /// An object has another path, because it or an ancestor was moved or renamed (R6). The path is nil where the
  /// object's own identifier is nil.
  case pathChanged(object: Int64, path: IdentifierPath?)
  /// Another session has taken the object's path over; writes to it now fail with `replaced` (R8).
  case registrationReplaced(object: Int64, path: IdentifierPath, by: ObjectOwner)
  /// These objects of the session have been restored, and so have all others of the application (R21).
  case applicationFinishedRestoringState(objects: [Int64])
  /// The application was saved as this generation.
  case applicationStateSaved(generation: Int64)
  /// What is saved was replaced as a whole by this generation; objects may be restored anew.
  case headReplaced(generation: Int64)
  /// So many notifications came faster than they were taken and are lost: ask `describeApplication` how things are.
  case missed(count: Int)

  /// The notifications a session can ask for.
  public enum Kind: String, CaseIterable, Hashable, Sendable {
    /// `BrokerNotification.pathChanged`
    case pathChanged
    /// `BrokerNotification.registrationReplaced`
    case registrationReplaced
    /// `BrokerNotification.applicationFinishedRestoringState`
    case applicationFinishedRestoringState
    /// `BrokerNotification.applicationStateSaved`
    case applicationStateSaved
    /// `BrokerNotification.headReplaced`
    case headReplaced

    var wire: ServedMethod {
      switch self {
      case .pathChanged: .pathChanged
      case .registrationReplaced: .registrationReplaced
      case .applicationFinishedRestoringState: .applicationFinishedRestoringState
      case .applicationStateSaved: .applicationStateSaved
      case .headReplaced: .headReplaced
      }
    }
  }

  /// Nil for notifications that this version does not know, and for those of another form.
  init?(_ notification: JSONRPC.Notification) {
    guard notification.fault == nil, case .named(let parameters) = notification.parameters else { return nil }
    switch ServedMethod(rawValue: notification.method) {
    case .pathChanged:
      guard let wire = try? PathChanged(wire: parameters) else { return nil }
      self = .pathChanged(object: wire.object, path: wire.path)
    case .registrationReplaced:
      guard let wire = try? RegistrationReplaced(wire: parameters) else { return nil }
      self = .registrationReplaced(object: wire.object, path: wire.path, by: wire.by)
    case .applicationFinishedRestoringState:
      guard let wire = try? ApplicationFinishedRestoringState(wire: parameters) else { return nil }
      self = .applicationFinishedRestoringState(objects: wire.objects)
    case .applicationStateSaved:
      guard let wire = try? ApplicationStateSaved(wire: parameters) else { return nil }
      self = .applicationStateSaved(generation: wire.generation)
    case .headReplaced:
      guard let wire = try? HeadReplaced(wire: parameters) else { return nil }
      self = .headReplaced(generation: wire.generation)
    default:
      return nil
    }
  }
}
