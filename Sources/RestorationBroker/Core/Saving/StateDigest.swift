// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// Tells whether two states are the same without keeping either: 128 bits that differ from process to process.
struct StateDigest: Hashable {
  private let high: Int
  private let low: Int

  /// Of all that would be stored but the time.
  init(_ record: StateRecord) {
    high = StateDigest.hash(record, 0)
    low = StateDigest.hash(record, 1)
  }

  private static func hash(_ record: StateRecord, _ seed: UInt8) -> Int {
    var hasher = Hasher()
    hasher.combine(seed)
    record.text.withUnsafeBytes { hasher.combine(bytes: $0) }
    hasher.combine(record.references)
    hasher.combine(record.elements)
    hasher.combine(record.context)
    hasher.combine(record.session)
    hasher.combine(record.isEarly)
    return hasher.finalize()
  }
}
