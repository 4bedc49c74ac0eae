// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An object's state as JSON text, with the results of its scan.
package struct EncodedState: WireValue {
  package static let schema = Schema.state
  package static let expected = "an object"

  package static let empty = EncodedState(text: .emptyObject, references: [], reservedKey: nil, depth: 1)

  /// Prefixes of the keys that only the broker writes (R10).
  package static let reservedPrefixes = ["UIApplicationStateRestoration", "UIStateRestoration"]

  private static let reservedPrefixBytes = reservedPrefixes.map { Array($0.utf8) }

  /// The key of a reference inside a state (R14), and the key that escapes text of the same form.
  package static let vocabulary = ScanVocabulary(referenceKey: "$restorable", literalKey: "$literal")

  /// Compact JSON text of one object.
  package let text: JSONText
  /// In the order of the text; offsets are relative to `text`.
  package let references: [JSONReference]
  package let reservedKey: String?
  /// Nesting of the state; `{}` is 1.
  package let depth: Int

  /// A copy with its own storage, so that the state does not keep its message in memory.
  package func detached() -> EncodedState {
    EncodedState(text: text.detached(), references: references, reservedKey: reservedKey, depth: depth)
  }

  /// Does not scan the text, for states that are only written.
  package init(unchecked text: JSONText) { self.init(text: text, references: [], reservedKey: nil, depth: 1) }

  private init(text: JSONText, references: [JSONReference], reservedKey: String?, depth: Int) {
    (self.text, self.references, self.reservedKey, self.depth) = (text, references, reservedKey, depth)
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.text = slice.compactText
    self.references = slice.references
    self.reservedKey = slice.firstMemberName(withAnyPrefix: Self.reservedPrefixBytes)
    self.depth = slice.depth
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.text(text) }
}

/// The keys of a coder, by UIKit's names; only the broker writes them (R10).
public struct ReservedKeys: WireObject, Hashable {
  package static let sharedName: String? = "Coder"

  package static let timestampKey: StaticString = "UIApplicationStateRestorationTimestampKey"

  /// The session did not give its idiom.
  public static let unspecifiedIdiom: Int64 = -1

  /// As given by the session that wrote the state; `nil` if it gave none.
  public package(set) var bundleVersion: String?
  /// UIKit's number; `unspecifiedIdiom` if the session gave none.
  public package(set) var userInterfaceIdiom = unspecifiedIdiom
  /// By the broker's clock.
  public package(set) var timestamp = Timestamp(milliseconds: 0)
  /// Of the broker's machine.
  public package(set) var systemVersion: String?
  /// The unit of a view controller's storyboard; `nil` for other objects.
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
      "Its `userInterfaceIdiom`; −1 if it gave none."
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

/// The systemd user unit that starts an object's process (R22).
package struct Storyboard: WireObject, Hashable {
  package static let sharedName: String? = "Storyboard"
  package static let expected = "an object with a unit"

  /// In UTF-8; systemd's limit.
  package static let nameBytesMax = 255

  package var unit = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("unit", &unit, .bytes(0...Self.nameBytesMax), "The systemd user unit; empty for none.")
  }
}

extension MemberWalk {
  /// A storyboard, given by its unit; `nil` if empty.
  package mutating func optional(_ name: StaticString, unit: inout String?, _ about: StaticString) throws(Misfit) {
    var storyboard = unit.map { unit in Storyboard().with { $0.unit = unit } }
    try optional(name, &storyboard, about)
    unit = storyboard.flatMap { $0.unit.isEmpty ? nil : $0.unit }
  }
}
