// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What the broker tells a session without being asked.
public enum BrokerNotification: Hashable, Sendable {
  /// An object has another path, because it or an ancestor was moved or renamed (R6). The path is nil where the
  /// object's own identifier is nil.
  case pathChanged(object: Int64, path: [String]?)
  /// Another session has taken the object's path over; writes to it now fail with `replaced` (R8).
  case registrationReplaced(object: Int64, path: [String], by: ObjectOwner)
  /// So many notifications came faster than they were taken and are lost: ask `describeApplication` how things are.
  case missed(count: Int)

  /// The notifications a session can ask for.
  public enum Kind: String, CaseIterable, Hashable, Sendable {
    /// `BrokerNotification.pathChanged`
    case pathChanged
    /// `BrokerNotification.registrationReplaced`
    case registrationReplaced

    var wire: ServedMethod {
      switch self {
      case .pathChanged: .pathChanged
      case .registrationReplaced: .registrationReplaced
      }
    }
  }

  /// Nil for notifications that this version does not know, and for those of another form.
  init?(_ notification: JSONRPC.Notification) {
    guard notification.fault == nil, case .named(let parameters) = notification.parameters else { return nil }
    switch notification.method {
    case ServedMethod.pathChanged.rawValue:
      guard let wire = PathChanged(parameters) else { return nil }
      self = .pathChanged(object: wire.object, path: wire.path?.components)
    case ServedMethod.registrationReplaced.rawValue:
      guard let wire = RegistrationReplaced(parameters) else { return nil }
      self = .registrationReplaced(object: wire.object, path: wire.path.components, by: ObjectOwner(wire.by))
    default:
      return nil
    }
  }
}
