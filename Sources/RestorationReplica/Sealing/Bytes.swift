// SPDX-License-Identifier: Apache-2.0

extension [UInt8] {
  /// Appends a number as it lies in sealed bytes: the highest byte first, as many as its type has.
  mutating func append(number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }

  /// Appends a text or other bytes behind their number.
  mutating func append(counted bytes: some Collection<UInt8>) {
    append(number: UInt32(bytes.count))
    append(contentsOf: bytes)
  }
}

extension ArraySlice<UInt8> {
  /// Takes bytes from the beginning; `nil` if there are fewer.
  mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= self.count else { return nil }
    defer { removeFirst(count) }
    return prefix(count)
  }

  /// Takes a number as `append(number:)` writes it.
  mutating func takeNumber<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
    take(Number.bitWidth / 8)?.reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }
}

/// Bytes as hexadecimal digits. A key may be among them: no copy is left anywhere but in the result.
enum Hexadecimal {
  static func digits(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return text
  }

  /// `nil` unless there are two digits a byte, and nothing else.
  static func bytes(_ digits: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var rest = digits[...]
    while let high = rest.popFirst() {
      guard let low = rest.popFirst(), let high = value(high), let low = value(low) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    Character(UnicodeScalar(digit)).hexDigitValue.map(UInt8.init)
  }
}
