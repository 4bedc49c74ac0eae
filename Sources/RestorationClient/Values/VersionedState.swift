// SPDX-License-Identifier: Apache-2.0

/// A value with versions: the state of an older program is migrated to the present version before it is decoded.
///
/// ```swift
/// struct Draft: VersionedState {
///   static let version = 2
///   var text = ""
///   static func migrate(_ saved: inout [String: RestorableValue], from version: Int) {
///     if version < 2 { saved["text"] = saved.removeValue(forKey: "body") }
///   }
/// }
/// ```
///
/// The number is saved beside the value's own keys as `$version`, so the value must have keys: it is no number or
/// array. Nested values have numbers of their own. For renamed classes or objects, set `SessionOptions.classAliases`
/// and `identifierAliases`.
public protocol VersionedState: Codable, Sendable {
  /// The present version, from 1. Increase it if programs of the former and the present version cannot decode each
  /// other's states.
  static var version: Int { get }

  /// Migrates a saved value to the present version. Called only if the saved number is less than `version`. An error
  /// ends the decode. Numbers beyond 64 bits are the nearest `real` here.
  ///
  /// - Parameters:
  ///   - saved: the values by their keys, without `$version`.
  ///   - version: the saved number; 0 if the type had none.
  static func migrate(_ saved: inout [String: RestorableValue], from version: Int) throws
}

extension VersionedState {
  /// Optional properties and added keys with a default need no migration.
  public static func migrate(_ saved: inout [String: RestorableValue], from version: Int) {}
}
