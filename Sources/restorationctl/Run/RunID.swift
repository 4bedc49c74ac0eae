// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// The name of a program that comes back: the name of its file, and the instance of its unit.
struct RunID: CustomStringConvertible {
  let description: String

  /// `nil` unless the name means the same in paths, units, shells and command lines, without escaping.
  init?(_ text: String) {
    guard (1...64).contains(text.utf8.count), !text.hasPrefix("-") else { return nil }
    // Compares bytes: some letters beyond ASCII are equal to one of ASCII.
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard isPlain else { return nil }
    description = text
  }

  static func read(_ argument: String) throws -> RunID {
    guard let id = RunID(argument) else {
      throw ValidationError("'\(argument)' is no ID: use up to 64 letters, digits, - and _, and do not begin with -")
    }
    return id
  }

  /// - Parameter isGraphical: whether the unit begins and ends with the graphical session, not with the user's manager.
  func unit(isGraphical: Bool) -> String { "restoration-run\(isGraphical ? "-graphical" : "")@\(self).service" }

  /// Both, for a shell's command line.
  var units: String { "\(unit(isGraphical: false)) \(unit(isGraphical: true))" }
}
