// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// A notification of the broker to a session.
public enum BrokerNotification: Hashable, Sendable {
  /// A move or renaming of the object or an ancestor changed its path (R6); `nil` if its own identifier is `nil`.
  case pathChanged(PathChanged)
  /// Another session has taken the object's path over; writes to it now fail with `replaced` (R8).
  case registrationReplaced(RegistrationReplaced)
  /// These objects of the session have been restored, and so have all others of the application (R21).
  case applicationFinishedRestoringState(ApplicationFinishedRestoringState)
  /// The application was saved as this generation.
  case applicationStateSaved(ApplicationStateSaved)
  /// The saved state was replaced as a whole by this generation; objects may be restored again.
  case headReplaced(HeadReplaced)
  /// An object of the session is saved from now on, and its former state was not stored: encode it.
  case stateWanted(StateWanted)
  /// The broker did not store a state that it had asked this session for.
  case encodeFailed(EncodeFailed)
  /// Another host has the application, and the session has ended; further calls fail with `fenced`.
  case archiveLost(ArchiveLost)
  /// The count of notifications lost because they were not read in time: ask `describeApplication`.
  case missed(count: Int)

  /// The notifications a session can ask for.
  public enum Kind: String, CaseIterable, Hashable, Sendable {
    case pathChanged, registrationReplaced, applicationFinishedRestoringState, applicationStateSaved, headReplaced,
      stateWanted, encodeFailed, archiveLost

    var wire: ServedMethod {
      switch self {
      case .pathChanged: .pathChanged
      case .registrationReplaced: .registrationReplaced
      case .applicationFinishedRestoringState: .applicationFinishedRestoringState
      case .applicationStateSaved: .applicationStateSaved
      case .headReplaced: .headReplaced
      case .stateWanted: .stateWanted
      case .encodeFailed: .encodeFailed
      case .archiveLost: .archiveLost
      }
    }
  }

  /// `nil` for notifications unknown to this version, and for malformed ones.
  init?(_ notification: JSONRPC.Notification) {
    guard notification.fault == nil, case .named(let parameters) = notification.parameters,
      let kind = Kind(rawValue: notification.method), let known = try? BrokerNotification(kind, parameters)
    else { return nil }
    self = known
  }

  private init(_ kind: Kind, _ slice: JSONSlice) throws(Misfit) {
    self =
      switch kind {
      case .pathChanged: .pathChanged(try PathChanged(wire: slice))
      case .registrationReplaced: .registrationReplaced(try RegistrationReplaced(wire: slice))
      case .applicationFinishedRestoringState:
        .applicationFinishedRestoringState(try ApplicationFinishedRestoringState(wire: slice))
      case .applicationStateSaved: .applicationStateSaved(try ApplicationStateSaved(wire: slice))
      case .headReplaced: .headReplaced(try HeadReplaced(wire: slice))
      case .stateWanted: .stateWanted(try StateWanted(wire: slice))
      case .encodeFailed: .encodeFailed(try EncodeFailed(wire: slice))
      case .archiveLost: .archiveLost(try ArchiveLost(wire: slice))
      }
  }
}
