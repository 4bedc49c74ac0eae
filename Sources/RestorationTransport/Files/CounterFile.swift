// SPDX-License-Identifier: Apache-2.0

/// A number in a file that only ever counts up, also over crashes and power cuts.
package struct CounterFile: Sendable {
  package let path: String

  package init(path: String) { self.path = path }

  /// Adds one and makes that durable before it returns.
  ///
  /// The number is written in place and in one piece of fixed width, so that a cut leaves the old or the new one.
  /// Throws also when the file holds anything but a number: starting over would give numbers out twice.
  package func increment() throws(TransportError) -> Int64 {
    let path = path
    let purpose = "cannot count in \(path)"
    let file = try TransportError.reporting(purpose, calling: try SystemCalls.openOrCreate(path))
    let number = file.number
    let old = try TransportError.reporting(purpose, calling: try SystemCalls.read(number, count: 32))
    guard let next = Self.successor(of: old) else {
      throw TransportError(.damaged, "\(path) does not hold a number; write a higher one than ever used into it")
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

  /// Digits in the file, enough for every number.
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
