// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// Knows which element of the model a view shows where: what `UIDataSourceModelAssociation` is in UIKit (R28).
///
/// The view may belong to another process. With it, selected and topmost rows are found again when the data has
/// changed. The session does not keep the data source alive; it may ask for several elements at the same time.
public protocol ModelAssociating: AnyObject, Sendable {
  /// What is shown there now; nil where that is not to be remembered.
  func modelIdentifierForElement(
    at indexPath: [Int],
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> String?

  /// Where that is shown now; nil where it is gone.
  func indexPathForElement(
    withModelIdentifier identifier: String,
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> [Int]?
}
