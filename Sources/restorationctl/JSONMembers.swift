// SPDX-License-Identifier: Apache-2.0

/// Text of a flat JSON object, member by member.
struct JSONMembers {
  private var members: [String] = []

  /// Adds a string.
  mutating func add(_ name: String, _ value: String) {
    members.append("\(Self.quoted(name)):\(Self.quoted(value))")
  }

  /// Adds an integer.
  mutating func add(_ name: String, _ value: Int64) {
    members.append("\(Self.quoted(name)):\(value)")
  }

  /// Adds a value that is JSON text.
  mutating func add(_ name: String, text: String) {
    members.append("\(Self.quoted(name)):\(text)")
  }

  /// The object in compact form.
  var text: String { "{\(members.joined(separator: ","))}" }

  /// A string as JSON text.
  static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
