// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// A 128-bit digest that compares states. Its key differs by process, so that collisions cannot be chosen.
package struct StateDigest: Equatable {
  private let high: UInt64
  private let low: UInt64

  /// Of all that would be stored but the time.
  package init(_ record: StateRecord) {
    var hash = KeyedHash()
    record.text.withUnsafeBytes { hash.add($0) }
    hash.add(record.references)
    hash.add(record.elements)
    hash.add(UInt64(bitPattern: record.context))
    hash.add(UInt64(bitPattern: record.session))
    hash.add(record.isEarly ? 1 : 0)
    (high, low) = (hash.high.value, hash.low.value)
  }
}

/// Two independent halves, in one pass of eight bytes a step.
private struct KeyedHash {
  /// Multiplies by a secret number and folds the product.
  struct Half {
    private(set) var value: UInt64
    private let factor: UInt64

    /// Swift has other hash values in each process.
    init(key: Int) {
      value = UInt64(bitPattern: Int64(key.hashValue))
      factor = UInt64(bitPattern: Int64((~key).hashValue)) | 1
    }

    @inline(always)
    mutating func add(_ word: UInt64) {
      let product = (value ^ word).multipliedFullWidth(by: factor)
      value = product.high ^ product.low
    }
  }

  private static let start = (high: Half(key: 1), low: Half(key: 2))

  private(set) var (high, low) = Self.start

  @inline(always)
  mutating func add(_ word: UInt64) {
    high.add(word)
    low.add(word)
  }

  mutating func add(_ text: String?) {
    guard var text else { return add(UInt64.max) }
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  /// The length first, so that no two sequences of texts are the same words.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    add(UInt64(bytes.count))
    let rest = bytes.count & ~7
    for place in stride(from: 0, to: rest, by: 8) { add(bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)) }
    if rest < bytes.count { add(bytes[rest...].reduce(0) { $0 << 8 | UInt64($1) }) }
  }
}
