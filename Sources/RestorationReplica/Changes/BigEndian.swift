// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

// Numbers with the highest byte first, as in sealed bytes, in the database and on the wire.

extension [UInt8] {
  /// Appends a number, in as many bytes as its type has.
  package mutating func append(number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }

  /// Appends the number of bytes, in four bytes, then the bytes.
  package mutating func append(counted bytes: some Collection<UInt8>) {
    append(number: UInt32(bytes.count))
    append(contentsOf: bytes)
  }

  package mutating func append(_ change: ChangeID) {
    append(number: change.high)
    append(number: change.low)
  }
}

extension ArraySlice<UInt8> {
  /// Takes bytes from the beginning; `nil` if there are fewer.
  package mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= self.count else { return nil }
    defer { removeFirst(count) }
    return prefix(count)
  }

  package mutating func takeNumber<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
    take(Number.bitWidth / 8)?.reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  package mutating func takeChange() -> ChangeID? {
    guard let high = takeNumber(UInt64.self), let low = takeNumber(UInt64.self) else { return nil }
    return ChangeID(high: high, low: low)
  }
}
