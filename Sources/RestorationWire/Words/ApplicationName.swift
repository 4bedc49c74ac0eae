// SPDX-License-Identifier: Apache-2.0

/// Names an application and so its archive: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, optionally `@instance` (the same
/// alphabet, at most 48 characters). `+conflict-N` behind it names a copy of the archive that was set aside (R36).
public struct ApplicationName: Hashable, Sendable, CustomStringConvertible {
  package static let baseMax = 128
  package static let instanceMax = 48
  private static let copyMark = "+conflict-"

  /// The whole name, with the instance.
  public let description: String

  /// A placeholder in messages that are not filled in yet.
  package static let blank = ApplicationName()

  private init() { description = "" }

  /// `nil` if `text` is no valid name.
  public init?(_ text: String) {
    let name = text.utf8.prefix { $0 != UInt8(ascii: "+") }
    guard name.count <= Self.baseMax + 1 + Self.instanceMax, Self.marks(text.utf8[name.endIndex...]) else { return nil }
    let parts = name.split(separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
    guard Self.isName(parts[0], max: Self.baseMax) else { return nil }
    if parts.count == 2, !Self.isName(parts[1], max: Self.instanceMax) { return nil }
    self.description = text
  }

  /// Compares byte for byte.
  package func isSpelled(_ text: String) -> Bool {
    // A name is ASCII; any other text that `String` holds equal takes more bytes.
    description == text && description.utf8.count == text.utf8.count
  }

  /// `nil` if the instance is invalid or this name already has one.
  package func with(instance: String) -> ApplicationName? {
    self.instance == nil ? ApplicationName("\(description)@\(instance)") : nil
  }

  public var base: String { String(description.prefix { $0 != "@" && $0 != "+" }) }

  /// `nil` if the name has none.
  public var instance: String? {
    description.firstIndex(of: "@").map { String(description[$0...].dropFirst().prefix { $0 != "+" }) }
  }

  /// Whether it names a copy that was set aside.
  package var isSetAside: Bool { description.utf8.contains(UInt8(ascii: "+")) }

  private static func isName(_ bytes: Substring.UTF8View.SubSequence, max: Int) -> Bool {
    guard let first = bytes.first, isLetterOrDigit(first), bytes.count <= max else { return false }
    return bytes.allSatisfy { isLetterOrDigit($0) || punctuation.contains($0) }
  }

  /// Whether it marks a copy, by a number of at most 9 digits, or is nothing.
  private static func marks(_ bytes: Substring.UTF8View) -> Bool {
    let digits = bytes.dropFirst(copyMark.utf8.count)
    guard !bytes.isEmpty else { return true }
    return bytes.starts(with: copyMark.utf8) && (1...9).contains(digits.count) && digits.first != UInt8(ascii: "0")
      && digits.allSatisfy { isLetterOrDigit($0) && $0 < UInt8(ascii: "A") }
  }

  private static let punctuation = Array("._-".utf8)

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }
}
