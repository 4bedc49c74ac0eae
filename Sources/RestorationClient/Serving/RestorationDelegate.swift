// SPDX-License-Identifier: Apache-2.0

/// Decides for the whole application, like the state restoration methods of `UIApplicationDelegate` in UIKit.
///
/// Only one session of an application has a delegate (R9): give it to `RestorationSession.start`, which does not keep
/// it alive. Calls come one after the other, each on the actor that the delegate belongs to. Every method has a
/// default.
public protocol RestorationDelegate: AnyObject, Sendable {
  /// Whether the application is to be saved now. Asked at the beginning of each round.
  ///
  /// - Parameter saved: what `willEncodeRestorableState` gave last time, and who wrote it.
  func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool

  /// Whether to restore the saved state; if not, it stays saved.
  func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool

  /// A round begins; returns the state of the application itself to save. `nil` or a thrown error keeps the state saved
  /// before.
  func willEncodeRestorableState() async throws -> RestorableState?

  /// All objects have their states; the application's own is given back.
  func didDecodeRestorableState(_ saved: SavedApplicationState) async

  /// Makes a view controller that has no restoration class (R22). `nil` leaves it to a session that registers it, or to
  /// its storyboard.
  func viewController(for request: RestorationRequest) async throws -> RestorableObject?
}

extension RestorationDelegate {
  public func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool { true }

  public func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool { true }

  public func willEncodeRestorableState() async throws -> RestorableState? { nil }

  public func didDecodeRestorableState(_ saved: SavedApplicationState) async {}

  public func viewController(for request: RestorationRequest) async throws -> RestorableObject? { nil }
}

/// The saved state of the application itself, besides its objects.
public struct SavedApplicationState: Hashable, Sendable {
  /// The state that the delegate gave in the saved round; `nil` if it never gave one.
  public let state: RestorableState?
  /// Who wrote last and when, to refuse what another version has written; `nil` if nothing is saved.
  public let origin: ReservedKeys?
}
