// SPDX-License-Identifier: Apache-2.0

/// A number in a file that only counts up, across crashes and power cuts.
package struct CounterFile: Sendable {
  package let path: String

  package init(path: String) { self.path = path }

  /// Adds one, and returns when that is durable.
  ///
  /// The number is written in place with a fixed width, so that a power cut leaves the old or the new one. If the file
  /// does not hold a number, this throws: starting over would use numbers twice.
  package func increment() throws(TransportError) -> Int64 {
    let path = path
    let purpose = "cannot count in \(path)"
    let file = try TransportError.reporting(purpose, calling: try SystemCalls.openOrCreate(path))
    let number = file.number
    let old = try TransportError.reporting(purpose, calling: try SystemCalls.read(number, count: 32))
    guard let next = Self.successor(of: old) else {
      throw TransportError(
        .damaged,
        "invalid counter in \(path); write a number into it that is higher than any used before"
      )
    }
    let digits = String(next)
    let line = String(repeating: "0", count: Self.width - digits.count) + digits + "\n"
    try TransportError.reporting(purpose) { () throws(SystemCallError) in
      try SystemCalls.overwrite(number, with: Array(line.utf8))
      try SystemCalls.sync(number)
      let directory = try SystemCalls.openForReading(Self.directory(of: path))
      try SystemCalls.sync(directory.number)
    }
    return next
  }

  /// Digits in the file.
  private static let width = 20

  private static func successor(of text: [UInt8]) -> Int64? {
    if text.isEmpty { return 1 }
    let digits = text.prefix { $0 != UInt8(ascii: "\n") }
    guard let number = Int64(String(decoding: digits, as: UTF8.self)), number >= 0, number < .max else { return nil }
    return number + 1
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
