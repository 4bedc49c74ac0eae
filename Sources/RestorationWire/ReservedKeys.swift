// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The keys of a coder, under the names UIKit gives them; only the broker writes them (R10, R26).
package struct ReservedKeys: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "Coder",
    .object([
      .optional(
        "UIApplicationStateRestorationBundleVersionKey",
        .string,
        "`bundleVersion` of the session that wrote the state."
      ),
      .required(
        "UIApplicationStateRestorationUserInterfaceIdiomKey",
        .integer,
        "Its `userInterfaceIdiom`; −1 where it gave none."
      ),
      .required("UIApplicationStateRestorationTimestampKey", .timestamp, "When the state was written."),
      .optional("UIApplicationStateRestorationSystemVersionKey", .string, "Version of the operating system."),
      .optional("UIStateRestorationViewControllerStoryboardKey", Storyboard.schema, "Of a view controller."),
    ])
  )

  package static let bundleVersionKey = "UIApplicationStateRestorationBundleVersionKey"
  package static let userInterfaceIdiomKey = "UIApplicationStateRestorationUserInterfaceIdiomKey"
  package static let timestampKey = "UIApplicationStateRestorationTimestampKey"
  package static let systemVersionKey = "UIApplicationStateRestorationSystemVersionKey"
  package static let storyboardKey = "UIStateRestorationViewControllerStoryboardKey"

  /// Means that the session did not say what kind of interface it has.
  package static let unspecifiedIdiom: Int64 = -1

  /// As the session that wrote the state gave it.
  package var bundleVersion: String?
  package var userInterfaceIdiom: Int64
  /// When the state was written, by the broker's clock.
  package var timestamp: Timestamp
  /// Of the operating system that ran the broker.
  package var systemVersion: String?
  /// The unit of a view controller's storyboard; nil for every other object. On the wire `{"unit": …}`.
  package var storyboard: String?

  package init(
    bundleVersion: String?,
    userInterfaceIdiom: Int64 = unspecifiedIdiom,
    timestamp: Timestamp,
    systemVersion: String?,
    storyboard: String? = nil
  ) {
    self.bundleVersion = bundleVersion
    self.userInterfaceIdiom = userInterfaceIdiom
    self.timestamp = timestamp
    self.systemVersion = systemVersion
    self.storyboard = storyboard
  }

  /// Reads a coder; nil where it is none.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.bundleVersion = try reader.optionalString(Self.bundleVersionKey)
      self.userInterfaceIdiom = try reader.optionalInteger(Self.userInterfaceIdiomKey) ?? Self.unspecifiedIdiom
      self.timestamp = try reader.value(Self.timestampKey) { $0.string().flatMap { Timestamp($0) } }
      self.systemVersion = try reader.optionalString(Self.systemVersionKey)
      self.storyboard = try reader.optional(Self.storyboardKey) { $0["unit"]?.string() }
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("UIApplicationStateRestorationBundleVersionKey", ifPresent: bundleVersion)
      writer.member("UIApplicationStateRestorationUserInterfaceIdiomKey", userInterfaceIdiom)
      writer.member("UIApplicationStateRestorationTimestampKey", timestamp)
      writer.member("UIApplicationStateRestorationSystemVersionKey", ifPresent: systemVersion)
      writer.member("UIStateRestorationViewControllerStoryboardKey", ifPresent: storyboard.map { Storyboard(unit: $0) })
    }
  }
}
