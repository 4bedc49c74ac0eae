// SPDX-License-Identifier: Apache-2.0

/// Decides for the whole application: what the state restoration methods of `UIApplicationDelegate` are in UIKit.
///
/// One session of an application has one (R9): give it to `RestorationSession.start`, which does not keep it alive.
/// Calls come one after the other, each on the actor that the delegate belongs to. Every method has a default.
public protocol RestorationDelegate: AnyObject, Sendable {
  /// Whether the application is to be saved now. Asked at the beginning of each round.
  ///
  /// - Parameter saved: what `willEncodeRestorableState` gave last time, and who wrote it.
  func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool

  /// Whether what is saved is to be restored; if not, it stays saved.
  func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool

  /// A round begins; gives what is to be saved of the application itself. Nil leaves what was saved before, and so does
  /// a thrown error.
  func willEncodeRestorableState() async throws -> RestorableState?

  /// All objects have their states; the application's own is given back.
  func didDecodeRestorableState(_ saved: SavedApplicationState) async

  /// Makes a view controller that has no restoration class (R22). Nil leaves it to whoever registers it, or to its
  /// storyboard.
  func viewController(for request: RestorationRequest) async throws -> RestorableObject?
}

extension RestorationDelegate {
  /// Yes.
  public func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool { true }

  /// Yes.
  public func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool { true }

  /// Nothing.
  public func willEncodeRestorableState() async throws -> RestorableState? { nil }

  /// Does nothing.
  public func didDecodeRestorableState(_ saved: SavedApplicationState) async {}

  /// None.
  public func viewController(for request: RestorationRequest) async throws -> RestorableObject? { nil }
}

/// What is saved of the application itself, besides its objects.
public struct SavedApplicationState: Hashable, Sendable {
  /// What the delegate gave in the round that was saved; nil where it never gave anything.
  public let state: RestorableState?
  /// Who wrote last and when, to refuse what another version has written; nil where nothing is saved.
  public let origin: ReservedKeys?
}
