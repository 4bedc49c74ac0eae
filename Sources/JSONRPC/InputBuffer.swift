// SPDX-License-Identifier: Apache-2.0

/// Bytes received and not yet used up.
struct InputBuffer {
  /// Zero bytes kept behind the input, so that the scan may read eight bytes at any place and stops at the end.
  private static let padding = 8

  /// An empty buffer larger than this is given back.
  private static let keptCapacity = 64 << 10

  private var bytes = [UInt8](repeating: 0, count: padding)
  private var start = 0

  var count: Int { bytes.count - Self.padding - start }
  var isEmpty: Bool { count == 0 }

  subscript(index: Int) -> UInt8 { bytes[start + index] }

  mutating func append(_ new: UnsafeRawBufferPointer) {
    if start > 0 {
      bytes.removeSubrange(..<start)
      start = 0
    }
    bytes.removeLast(Self.padding)
    bytes.append(contentsOf: new)
    pad()
  }

  /// Drops bytes at the front.
  mutating func consume(_ number: Int) {
    start += number
    guard isEmpty else { return }
    if bytes.capacity > Self.keptCapacity {
      bytes = []
    } else {
      bytes.removeAll(keepingCapacity: true)
    }
    pad()
    start = 0
  }

  mutating func consumeAll() {
    consume(count)
  }

  /// Drops bytes at the front and returns them.
  mutating func take(_ number: Int) -> [UInt8] {
    let taken = Array(bytes[start..<start + number])
    consume(number)
    return taken
  }

  /// Gives the bytes and their number; eight zero bytes follow them.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>, Int) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { buffer in
      guard let base = buffer.baseAddress else { preconditionFailure("the padding is always there") }
      return body(base + start, count)
    }
  }

  private mutating func pad() {
    for _ in 0..<Self.padding { bytes.append(0) }
  }
}
