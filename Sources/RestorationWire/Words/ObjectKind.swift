// SPDX-License-Identifier: Apache-2.0

/// What a registered object is to its application; decides which rules hold for it (R4, R5, R22, R23).
public enum ObjectKind: String, WireWord {
  package static let schema = Schema.shared("ObjectKind", .words(Self.self))

  /// Any object with state; needs an identifier.
  case object
  /// May have a storyboard and a null identifier, and is located first by its restoration class (R22).
  case viewController
  /// Saved only below views and view controllers that all have identifiers (R5).
  case view
}
