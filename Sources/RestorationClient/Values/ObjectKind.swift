// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What an object is to its application; decides which rules hold for it.
public enum ObjectKind: String, CaseIterable, Hashable, Sendable {
  /// Any object with state; needs an identifier.
  case object
  /// May have a storyboard, and an identifier of nil, which excludes it and everything below it (R4).
  case viewController
  /// Saved only below views and view controllers that all have identifiers (R5).
  case view

  init(_ wire: RestorationWire.ObjectKind) {
    self =
      switch wire {
      case .object: .object
      case .viewController: .viewController
      case .view: .view
      }
  }

  var wire: RestorationWire.ObjectKind {
    switch self {
    case .object: .object
    case .viewController: .viewController
    case .view: .view
    }
  }
}
