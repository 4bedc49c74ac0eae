// SPDX-License-Identifier: Apache-2.0

/// Decides for the whole application, like `UIApplicationDelegate` in UIKit.
///
/// Only one session of an application has a delegate (R9): give it to `RestorationSession.start`, which does not keep
/// it alive. Calls come one after the other, on the delegate's actor. Every method has a default.
public protocol RestorationDelegate: AnyObject, Sendable {
  /// Whether to save the application now. Called at the beginning of each round.
  ///
  /// - Parameter saved: the last result of `willEncodeRestorableState`, and its writer.
  func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool

  /// Whether to restore the saved state; if not, it stays saved.
  func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool

  /// A round begins; returns the application's own state to save. `nil` or a thrown error keeps the saved state.
  func willEncodeRestorableState() async throws -> RestorableState?

  /// Receives the application's own state when all objects have theirs.
  func didDecodeRestorableState(_ saved: SavedApplicationState) async

  /// Makes a view controller without a restoration class (R22). `nil` leaves it to a session that registers it, or to
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
  /// The delegate's state in the saved round; `nil` if it never gave one.
  public let state: RestorableState?
  /// The last writer and time, to refuse the state of another version; `nil` if nothing is saved.
  public let origin: ReservedKeys?
}
