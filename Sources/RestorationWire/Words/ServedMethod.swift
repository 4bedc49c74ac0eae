// SPDX-License-Identifier: Apache-2.0

/// What a client may list in `serves`: the broker calls and notifies a client only by these names.
public enum ServedMethod: String, WireWord {
  package static let schema = Schema.shared("ServedMethod", .words(Self.self))
  package static let expected = "a method the broker calls"
  package static let plural = "methods the broker calls"

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
  case progress
}
