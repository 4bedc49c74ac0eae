// SPDX-License-Identifier: Apache-2.0

/// Text of a JSON object, member by member.
struct JSONMembers {
  private var members: [String] = []

  /// Adds a string; nil as null.
  mutating func add(_ name: String, _ value: String?) {
    add(name, text: value.map(Self.quoted) ?? "null")
  }

  /// Adds an integer; nil as null.
  mutating func add(_ name: String, _ value: Int64?) {
    add(name, text: value.map { String($0) } ?? "null")
  }

  /// Adds a truth value.
  mutating func add(_ name: String, _ value: Bool) {
    add(name, text: value ? "true" : "false")
  }

  /// Adds an array of strings; nil as null.
  mutating func add(_ name: String, _ value: [String]?) {
    add(name, text: value.map { Self.array($0.map(Self.quoted)) } ?? "null")
  }

  /// Adds a value that is JSON text already.
  mutating func add(_ name: String, text: String) {
    members.append("\(Self.quoted(name)):\(text)")
  }

  /// The object in compact form.
  var text: String { "{\(inner)}" }

  /// The members without the brackets around them.
  var inner: String { members.joined(separator: ",") }

  /// An array of values that are JSON text already.
  static func array(_ values: [String]) -> String {
    "[\(values.joined(separator: ","))]"
  }

  /// A path as JSON text.
  static func path(_ components: [String]) -> String { array(components.map(quoted)) }

  /// A string as JSON text.
  static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20: quoted += escape(UInt16(scalar.value))
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }

  /// A unit of UTF-16 as it may stand in a string: `\u001b`.
  static func escape(_ unit: UInt16) -> String {
    let digits = String(unit, radix: 16)
    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
  }
}
