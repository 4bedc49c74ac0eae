// SPDX-License-Identifier: Apache-2.0

extension ServedMethod {
  /// What stands behind a name.
  package enum Form {
    case call(any RestorationCall.Type)
    case notification(any RestorationNotification.Type)
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
    case .progress: .notification(ArchiveProgress.self)
    }
  }
}
