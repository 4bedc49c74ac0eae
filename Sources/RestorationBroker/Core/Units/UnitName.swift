// SPDX-License-Identifier: Apache-2.0

/// The name of a unit that can be started: a service or a target, but not a template.
package struct UnitName: Hashable, Sendable, CustomStringConvertible {
  package let description: String
  /// The part before `@`, or before the type if there is no `@`.
  let prefix: String
  /// The escaped part behind `@`.
  let instance: String?

  private static let types = [".service", ".target"]
  private static let bytesMax = 255

  /// `nil` if the text is no unit name, such as a path or a command line.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.bytesMax, text.utf8.allSatisfy(Self.isAllowed),
      let type = Self.types.first(where: { text.hasSuffix($0) })
    else { return nil }
    let stem = text.dropLast(type.count)
    let parts = stem.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    guard let prefix = parts.first, !prefix.isEmpty, parts.count == 1 || !parts[1].isEmpty else { return nil }
    self.description = text
    self.prefix = String(prefix)
    self.instance = parts.count == 1 ? nil : String(parts[1])
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: ":-_.\\@".utf8.contains(byte)
    }
  }

  /// The value of a systemd specifier in this unit's file; `nil` if it is not supported.
  func expansion(of specifier: UInt8) -> String? {
    switch specifier {
    case UInt8(ascii: "%"): "%"
    case UInt8(ascii: "n"): description
    case UInt8(ascii: "N"): instance.map { "\(prefix)@\($0)" } ?? prefix
    case UInt8(ascii: "p"): prefix
    case UInt8(ascii: "i"): instance ?? ""
    case UInt8(ascii: "I"): Self.unescaped(instance ?? "")
    default: nil
    }
  }

  /// Reverses `systemd-escape`; `nil` if the text is not escaped correctly.
  private static func unescaped(_ text: String) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "-"): bytes.append(UInt8(ascii: "/"))
      case UInt8(ascii: "\\"):
        guard rest.popFirst() == UInt8(ascii: "x"), rest.count >= 2,
          let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), value != 0
        else { return nil }
        rest = rest.dropFirst(2)
        bytes.append(value)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
