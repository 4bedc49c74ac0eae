// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

extension ChangeBatch {
  /// State texts are slices that keep all of `bytes` in memory.
  package init(decoding bytes: [UInt8]) throws(ChangeBatchError) {
    var reader = ChangeReader(bytes)
    let version = try reader.byte()
    guard version == Self.version else {
      throw reader.error("version \(version) is unknown; install a restorationd that knows it")
    }
    self.init(after: try reader.read(), try reader.read())
    guard reader.isAtEnd else { throw reader.error("bytes follow the last change") }
    guard upto <= ChangeWriter.numberMax else { throw reader.error("the last sequence, \(upto), is above 2^53") }
  }
}

package struct ChangeBatchError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Number of bytes read before the fault.
  package let offset: Int
  package let message: String

  package var description: String { "byte \(offset): \(message)" }
}

/// Reads fields one after the other. Allocates only for bytes that are there.
struct ChangeReader: ChangeWalk {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { offset == bytes.count }

  func error(_ message: String) -> ChangeBatchError { ChangeBatchError(offset: offset, message: message) }

  mutating func read<Field: ChangeField>() throws(ChangeBatchError) -> Field { try Field(from: &self) }

  mutating func visit(_ field: inout some ChangeField) throws(ChangeBatchError) { field = try read() }

  mutating func byte() throws(ChangeBatchError) -> UInt8 {
    guard !isAtEnd else { throw error("the batch ends too early") }
    defer { offset += 1 }
    return bytes[offset]
  }

  /// Accepts only the shortest form, which `ChangeWriter.number` writes.
  mutating func number() throws(ChangeBatchError) -> Int64 {
    var number: Int64 = 0
    for shift in stride(from: Int64(0), to: 56, by: 7) {
      let byte = try byte()
      number |= Int64(byte & 0x7f) << shift
      guard byte < 0x80 else { continue }
      guard byte > 0 || shift == 0 else { throw error("a number has a byte too many") }
      guard number <= ChangeWriter.numberMax else { break }
      return number
    }
    throw error("a number is above 2^53")
  }

  mutating func content(_ count: Int64) throws(ChangeBatchError) -> ArraySlice<UInt8> {
    guard count <= bytes.count - offset else { throw error("\(count) bytes are to follow; the batch ends too early") }
    defer { offset += Int(count) }
    return bytes[offset..<offset + Int(count)]
  }
}
