// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The names that a client may list in `serves`. The broker sends a client no others.
public enum ServedMethod: String, WireWord {
  package static let schema = Schema.shared("ServedMethod", .words(Self.self))
  package static let expected = "the name of a broker call"
  package static let plural = "names of broker calls"

  // Calls to the delegate
  case shouldSaveApplicationState
  case shouldRestoreApplicationState
  case willEncodeRestorableState
  case viewControllerWithRestorationIdentifierPath
  case didDecodeRestorableState

  // Calls to the owners of objects, restoration classes and data sources
  case encodeRestorableStateWithCoder
  case decodeRestorableStateWithCoder
  case objectWithRestorationIdentifierPath
  case modelIdentifierForElementAtIndexPath
  case indexPathForElementWithModelIdentifier

  // Notifications
  case applicationFinishedRestoringState
  case applicationStateSaved
  case registrationReplaced
  case pathChanged
  case headReplaced
  case stateWanted
  case encodeFailed
  case archiveLost
  case progress
  case event
}

/// A call for clients that list its name in `serves` (`Protocol/calls.md`). Its members are the parameters.
package protocol RestorationCall: WireObject {
  associatedtype Answer: WireValue

  static var method: ServedMethod { get }

  static var summary: String { get }
}

/// The answer to a call without a result; any value is accepted.
package struct Acknowledgement: WireValue, Hashable {
  package static let schema = Schema.any
  package static let expected = "a value"

  package init() {}

  package init(wire _: JSONSlice) {}

  package func writeJSON(to writer: inout JSONWriter) { writer.object { _ in } }
}

extension ServedMethod {
  /// The kind of message a name stands for.
  package enum Form {
    case call(any RestorationCall.Type)
    case notification(any RestorationNotification.Type)
    /// `EventNotification`, whose members depend on the event.
    case event
  }

  package var form: Form {
    switch self {
    case .shouldSaveApplicationState: .call(ShouldSaveApplicationState.self)
    case .shouldRestoreApplicationState: .call(ShouldRestoreApplicationState.self)
    case .willEncodeRestorableState: .call(WillEncodeRestorableState.self)
    case .viewControllerWithRestorationIdentifierPath: .call(ViewControllerWithRestorationIdentifierPath.self)
    case .didDecodeRestorableState: .call(DidDecodeRestorableState.self)
    case .encodeRestorableStateWithCoder: .call(EncodeRestorableStateWithCoder.self)
    case .decodeRestorableStateWithCoder: .call(DecodeRestorableStateWithCoder.self)
    case .objectWithRestorationIdentifierPath: .call(ObjectWithRestorationIdentifierPath.self)
    case .modelIdentifierForElementAtIndexPath: .call(ModelIdentifierForElementAtIndexPath.self)
    case .indexPathForElementWithModelIdentifier: .call(IndexPathForElementWithModelIdentifier.self)
    case .applicationFinishedRestoringState: .notification(ApplicationFinishedRestoringState.self)
    case .applicationStateSaved: .notification(ApplicationStateSaved.self)
    case .registrationReplaced: .notification(RegistrationReplaced.self)
    case .pathChanged: .notification(PathChanged.self)
    case .headReplaced: .notification(HeadReplaced.self)
    case .stateWanted: .notification(StateWanted.self)
    case .encodeFailed: .notification(EncodeFailed.self)
    case .archiveLost: .notification(ArchiveLost.self)
    case .progress: .notification(ArchiveProgress.self)
    case .event: .event
    }
  }
}
