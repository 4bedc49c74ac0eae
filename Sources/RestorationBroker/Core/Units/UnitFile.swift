// SPDX-License-Identifier: Apache-2.0

/// The broker's section in a unit's file: the applications for which the unit may be started.
///
///     [X-Restoration]
///     Application=org.example.Notes
///
/// The syntax is that of systemd: comments, continued lines, repeated sections, drop-ins after the file, and an empty
/// value that clears the earlier ones. Invalid text names no application.
package enum UnitFile {
  static let section = "[X-Restoration]"
  static let key = "Application"
  static let textBytesMax = 1 << 20
  static let applicationsMax = 256

  /// Whether the unit may be started for the application with this full name.
  ///
  /// - Parameter texts: of the file and its drop-ins, in the order of their precedence.
  package static func permits(_ texts: [String], of unit: UnitName, for application: String) -> Bool {
    applications(texts, of: unit).contains(application)
  }

  package static func applications(_ texts: [String], of unit: UnitName) -> [String] {
    var names: [String] = []
    for text in texts {
      // An unreadable text names no application, and neither do its drop-ins.
      guard text.utf8.count <= textBytesMax, !text.utf8.contains(0) else { return [] }
      for value in values(in: text) {
        if value.isEmpty {
          names = []
        } else if let name = expanded(value, unit) {
          names.append(name)
        }
      }
      guard names.count <= applicationsMax else { return [] }
    }
    return names
  }

  /// The values of `key` in `section`, in order.
  private static func values(in text: String) -> [String] {
    var values: [String] = []
    var isOurs = false
    for line in lines(in: text) {
      if line.first == UInt8(ascii: "[") {
        isOurs = line.elementsEqual(section.utf8)
      } else if isOurs, let equals = line.firstIndex(of: UInt8(ascii: "=")),
        trimmed(line[..<equals]).elementsEqual(key.utf8)
      {
        values.append(String(decoding: trimmed(line[line.index(after: equals)...]), as: UTF8.self))
      }
    }
    return values
  }

  /// The effective lines: trimmed and joined, without comments and empty lines.
  private static func lines(in text: String) -> [ArraySlice<UInt8>] {
    var lines: [ArraySlice<UInt8>] = []
    var continued: [UInt8]?
    var bytes = Array(text.utf8)[...]
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
    while let raw = takeLine(&bytes) {
      let line = raw.drop(while: isSpace)
      // Comments are skipped even between the parts of a continued line.
      if line.first == UInt8(ascii: "#") || line.first == UInt8(ascii: ";") { continue }
      var whole = continued ?? []
      whole += line
      if endsInBackslash(line) {
        whole[whole.count - 1] = UInt8(ascii: " ")
        continued = whole
      } else {
        lines.append(trimmed(whole[...]))
        continued = nil
      }
    }
    if let continued { lines.append(trimmed(continued[...])) }
    return lines.filter { !$0.isEmpty }
  }

  /// Takes a line, which ends at a line feed, a carriage return, or both. The text has no NUL.
  private static func takeLine(_ bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard !bytes.isEmpty else { return nil }
    let line = bytes.prefix { !isEnd($0) }
    bytes = bytes[line.endIndex...]
    if let end = bytes.popFirst(), let next = bytes.first, isEnd(next), next != end { bytes.removeFirst() }
    return line
  }

  private static func isEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }

  /// Whether the last backslash is not escaped itself.
  private static func endsInBackslash(_ line: ArraySlice<UInt8>) -> Bool {
    line.reversed().prefix { $0 == UInt8(ascii: "\\") }.count % 2 == 1
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var line = line.drop(while: isSpace)
    while let last = line.last, isSpace(last) { line.removeLast() }
    return line
  }

  private static func expanded(_ value: String, _ unit: UnitName) -> String? {
    var result = ""
    var rest = value.utf8[...]
    while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
      result += String(decoding: rest[..<percent], as: UTF8.self)
      let next = rest.index(after: percent)
      guard next < rest.endIndex, let expansion = unit.expansion(of: rest[next]) else { return nil }
      result += expansion
      rest = rest[rest.index(after: next)...]
    }
    return result + String(decoding: rest, as: UTF8.self)
  }
}
