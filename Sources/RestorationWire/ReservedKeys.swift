// SPDX-License-Identifier: Apache-2.0

/// The keys of a coder, under the names UIKit gives them; only the broker writes them (R10, R26).
public struct ReservedKeys: WireObject, Hashable {
  package static let sharedName: String? = "Coder"

  package static let timestampKey: StaticString = "UIApplicationStateRestorationTimestampKey"

  /// Means that the session did not say what kind of interface it has.
  public static let unspecifiedIdiom: Int64 = -1

  public package(set) var bundleVersion: String?
  public package(set) var userInterfaceIdiom = unspecifiedIdiom
  /// By the broker's clock.
  public package(set) var timestamp = Timestamp(milliseconds: 0)
  /// Of the broker's machine.
  public package(set) var systemVersion: String?
  /// The unit of a view controller's storyboard; nil for every other object.
  public package(set) var storyboard: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "UIApplicationStateRestorationBundleVersionKey",
      &bundleVersion,
      "`bundleVersion` of the session that wrote the state."
    )
    try members.added(
      "UIApplicationStateRestorationUserInterfaceIdiomKey",
      &userInterfaceIdiom,
      "Its `userInterfaceIdiom`; −1 where it gave none."
    )
    try members.required(Self.timestampKey, &timestamp, "When the state was written.")
    try members.optional(
      "UIApplicationStateRestorationSystemVersionKey",
      &systemVersion,
      "Version of the operating system."
    )
    try members.optional("UIStateRestorationViewControllerStoryboardKey", unit: &storyboard, "Of a view controller.")
  }
}
