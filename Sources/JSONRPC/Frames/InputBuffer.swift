// SPDX-License-Identifier: Apache-2.0

/// Bytes received and not yet consumed.
///
/// The array is longer than its contents, so that bytes are added by one copy.
struct InputBuffer {
  /// Zero bytes kept behind the input, so that the scan may read eight bytes at any place and stops at the end.
  private static let padding = 8

  /// A larger buffer is released when it holds little: the beginning of the next frame, or nothing.
  private static let keptCapacity = 64 << 10

  private var room = [UInt8](repeating: 0, count: padding)
  private var start = 0
  private var end = 0

  var count: Int { end - start }
  var isEmpty: Bool { end == start }

  var bytes: [UInt8] { Array(room[start..<end]) }

  subscript(index: Int) -> UInt8 { room[start + index] }

  mutating func append(_ new: UnsafeRawBufferPointer) {
    makeRoom(for: new.count)
    room.withUnsafeMutableBytes { room in
      UnsafeMutableRawBufferPointer(rebasing: room[end..<end + new.count]).copyMemory(from: new)
      room.storeBytes(of: 0, toByteOffset: end + new.count, as: UInt64.self)
    }
    end += new.count
  }

  mutating func consume(_ number: Int) {
    start += number
    guard room.count > Self.keptCapacity, count <= Self.keptCapacity / 4 else { return }
    var rest = InputBuffer()
    room.withUnsafeBytes { rest.append(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
    self = rest
  }

  mutating func skipWhiteSpace() {
    var gap = 0
    while gap < count, JSONWalk.isWhiteSpace(self[gap]) { gap += 1 }
    consume(gap)
  }

  mutating func consumeAll() { consume(count) }

  mutating func take(_ number: Int) -> [UInt8] {
    let taken = Array(room[start..<start + number])
    consume(number)
    return taken
  }

  /// Passes the bytes and their number; eight zero bytes follow them.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>, Int) -> Result) -> Result {
    room.withUnsafeBufferPointer { room in
      guard let base = room.baseAddress else { preconditionFailure("the padding is always there") }
      return body(base + start, count)
    }
  }

  /// Moves the contents to the front, and into more room if needed; doubling keeps the cost of a byte fixed.
  private mutating func makeRoom(for number: Int) {
    let kept = count
    let needed = kept + number + Self.padding
    if isEmpty || start > 0 && end + number + Self.padding > room.count {
      room.withUnsafeMutableBytes { room in
        UnsafeMutableRawBufferPointer(rebasing: room[..<kept])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: room[start..<end]))
      }
      (start, end) = (0, kept)
    }
    guard needed > room.count else { return }
    // An array, which is added by one copy also in an unoptimised build.
    room += [UInt8](repeating: 0, count: max(needed, 2 * room.count) - room.count)
  }
}
