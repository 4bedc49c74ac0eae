// SPDX-License-Identifier: Apache-2.0

internal import CChecksum

/// CRC-32 as zlib's `crc32` computes it (`Protocol/archive-format.md`): by carry-less multiplication where the
/// processor has it, otherwise sixteen bytes a step by sixteen tables ("slicing-by-16").
package struct Checksum: Sendable {
  private var register: UInt32 = .max
  private let folds: Bool

  /// - Parameter byTables: whether to use tables alone, as on a processor without the multiplication.
  package init(byTables: Bool = false) { folds = !byTables && Self.canFold }

  package var value: UInt32 { ~register }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    let blocks = folds && bytes.count >= 64 ? bytes.count & ~15 : 0
    if blocks > 0 {
      withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) { folded in
        cchecksum_fold_blocks(register, bytes.baseAddress, blocks, folded.baseAddress)
        register = 0
        updateByTables(UnsafeRawBufferPointer(folded))
      }
    }
    updateByTables(UnsafeRawBufferPointer(rebasing: bytes[blocks...]))
  }

  private static let canFold = cchecksum_can_fold()

  private mutating func updateByTables(_ bytes: UnsafeRawBufferPointer) {
    var register = self.register
    Self.tables.withUnsafeBufferPointer { tables in
      var offset = 0
      while offset + 16 <= bytes.count {
        let first = Self.word(of: bytes, at: offset) ^ UInt64(register)
        let second = Self.word(of: bytes, at: offset + 8)
        register = Self.effect(of: first, tables, from: 8) ^ Self.effect(of: second, tables, from: 0)
        offset += 16
      }
      while offset < bytes.count {
        register = tables[Int((register ^ UInt32(bytes[offset])) & 0xff)] ^ register >> 8
        offset += 1
      }
    }
    self.register = register
  }

  private static func word(of bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The effect of eight bytes that are followed by `zeros` zero bytes.
  @inline(always)
  private static func effect(of word: UInt64, _ tables: UnsafeBufferPointer<UInt32>, from zeros: Int) -> UInt32 {
    let low =
      tables[(zeros + 7) << 8 | Int(word & 0xff)]
      ^ tables[(zeros + 6) << 8 | Int(word >> 8 & 0xff)]
      ^ tables[(zeros + 5) << 8 | Int(word >> 16 & 0xff)]
      ^ tables[(zeros + 4) << 8 | Int(word >> 24 & 0xff)]
    let high =
      tables[(zeros + 3) << 8 | Int(word >> 32 & 0xff)]
      ^ tables[(zeros + 2) << 8 | Int(word >> 40 & 0xff)]
      ^ tables[(zeros + 1) << 8 | Int(word >> 48 & 0xff)]
      ^ tables[zeros << 8 | Int(word >> 56)]
    return low ^ high
  }

  package mutating func update(_ text: String?) {
    guard var text else { return }
    text.withUTF8 { update(UnsafeRawBufferPointer($0)) }
  }

  /// `tables[k * 256 + b]` is the effect of byte `b` followed by `k` zero bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 16 * 256)
    for byte in 0..<256 {
      var register = UInt32(byte)
      for _ in 0..<8 { register = register & 1 == 1 ? register >> 1 ^ 0xedb8_8320 : register >> 1 }
      tables[byte] = register
    }
    for byte in 256..<16 * 256 {
      let former = tables[byte - 256]
      tables[byte] = former >> 8 ^ tables[Int(former & 0xff)]
    }
    return tables
  }()
}

extension Checksum {
  /// The stored checksum of a node or context row, over its integers, its texts' byte lengths (−1 for null), and its
  /// texts.
  init(integers: [Int64?], texts: [String?]) {
    self.init()
    let header = (integers + texts.map { $0.map { Int64($0.utf8.count) } }).map { ($0 ?? -1).littleEndian }
    header.withUnsafeBytes { update($0) }
    for text in texts { update(text) }
  }
}

extension NodeRecord {
  func checksum(at sequence: SequenceNumber) -> UInt32 {
    let flags = [keepsForever, isConfidential, isRemoved].map { $0 ? 1 : 0 as Int64? }
    return Checksum(
      integers: [sequence, node, parent, kind.rawValue] + flags + [successor],
      texts: [component, classes, restorationClass, storyboard]
    ).value
  }
}

extension StateRecord {
  /// The stored checksum of a state, over its sequence, every column and every text.
  func checksum(at sequence: SequenceNumber) -> UInt32 {
    var checksum = Checksum()
    let header: (Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64) = (
      sequence.littleEndian,
      node.littleEndian,
      context.littleEndian,
      session.littleEndian,
      revision.littleEndian,
      written.littleEndian,
      Int64(text.count).littleEndian,
      Int64(references?.utf8.count ?? -1).littleEndian,
      Int64(elements?.utf8.count ?? -1).littleEndian
    )
    withUnsafeBytes(of: header) { checksum.update($0) }
    text.withUnsafeBytes { checksum.update($0) }
    checksum.update(references)
    checksum.update(elements)
    return checksum.value
  }
}
