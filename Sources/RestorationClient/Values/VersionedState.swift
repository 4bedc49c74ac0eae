// SPDX-License-Identifier: Apache-2.0

/// A value whose form changes from one version of the program to another: what an older program has saved is brought
/// into the present form before it is decoded.
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
/// The number is saved beside the value's own keys as `$version`, so the value must have keys: it is a structure, not a
/// number or an array. Values inside of others have numbers of their own. If classes or objects have got other names,
/// give these as `SessionOptions.classAliases` and `identifierAliases`.
public protocol VersionedState: Codable, Sendable {
  /// The number of the present form, from 1. Count it up whenever a program that knows only the former number could not
  /// decode what this one saves, or this one not what that one has saved.
  static var version: Int { get }

  /// Brings what was saved into the present form. Called only if the saved number is less than `version`.
  ///
  /// What it throws ends the decode. Numbers beyond 64 bits are the nearest `real` here.
  ///
  /// - Parameters:
  ///   - saved: the values by their keys, without `$version`.
  ///   - version: the number that was saved, or 0 if the type had none then.
  static func migrate(_ saved: inout [String: RestorableValue], from version: Int) throws
}

extension VersionedState {
  /// Optional properties and added keys with a default need no migration.
  public static func migrate(_ saved: inout [String: RestorableValue], from version: Int) {}
}
