// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How a server's replies are told apart. As little of them is read as possible.
package enum ReplyFraming: Sendable {
  /// Each JSON text, or reply of Redis, has so many lines.
  case lines(Int)
  /// A head that tells the length of its body: of `Content-Length` framing, or of HTTP.
  case headers
  case dbus

  package struct Reply: Equatable {
    /// Bytes of the whole reply.
    package let length: Int
    /// False for what answers no request: a notification, an empty response of HTTP.
    package var isAnswer = true
    package var isRefusal = false
    /// The number of the request, if the reply tells it; otherwise replies come in the order of requests.
    package var id: Int?
  }

  /// The reply at the beginning of these bytes; `nil` if it is not complete.
  package func reply(in bytes: UnsafePointer<UInt8>, count: Int) -> Reply? {
    switch self {
    case .lines(let lines): Self.lines(lines, bytes, count)
    case .headers: Self.body(bytes, count)
    case .dbus: Self.dbus(bytes, count)
    }
  }

  private static func lines(_ lines: Int, _ bytes: UnsafePointer<UInt8>, _ count: Int) -> Reply? {
    var end = 0
    // A missing value of Redis, `$-1`, is one line.
    let isMissing = count > 1 && bytes[0] == UInt8(ascii: "$") && bytes[1] == UInt8(ascii: "-")
    for _ in 0..<(isMissing ? 1 : lines) {
      guard let newline = memchr(bytes + end, 10, count - end) else { return nil }
      end = UnsafeRawPointer(newline) - UnsafeRawPointer(bytes) + 1
    }
    let isRefusal = isMissing || bytes[0] == UInt8(ascii: "-")
    return isRefusal ? Reply(length: end, isRefusal: true) : json(bytes, end, length: end)
  }

  private static func body(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Reply? {
    var line = 0
    var length = 0
    while let newline = memchr(bytes + line, 10, count - line) {
      let end = UnsafeRawPointer(newline) - UnsafeRawPointer(bytes) + 1
      if end - line == 2 {
        guard count - end >= length else { return nil }
        return length == 0
          ? Reply(length: end, isAnswer: false) : json(bytes + end, length, length: end + length)
      }
      let name: StaticString = "content-length:"
      let isLength = name.withUTF8Buffer { name in
        end - line > name.count && name.indices.allSatisfy { name[$0] == bytes[line + $0] | 0x20 }
      }
      // All of `-` and `:` have the bit of lower case.
      if isLength { length = digits(bytes + line + name.utf8CodeUnitCount + 1, end - line).value }
      line = end
    }
    return nil
  }

  /// `{"jsonrpc":"2.0","id":12,"result":…}`, in this order.
  private static func json(_ bytes: UnsafePointer<UInt8>, _ count: Int, length: Int) -> Reply {
    let head: StaticString = #"{"jsonrpc":"2.0","id":"#
    guard count > 0, bytes[0] == UInt8(ascii: "{") else { return Reply(length: length) }
    let size = head.utf8CodeUnitCount
    guard count > size + 12, memcmp(bytes, head.utf8Start, size) == 0 else {
      return Reply(length: length, isAnswer: false)
    }
    let id = digits(bytes + size, count - size)
    // An answer without a number is an error about a text that could not be read.
    guard id.count > 0 else { return Reply(length: length, isRefusal: true) }
    let isRefusal = bytes[size + id.count + 2] == UInt8(ascii: "e")
    return Reply(length: length, isRefusal: isRefusal, id: id.value)
  }

  private static func digits(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> (value: Int, count: Int) {
    var value = 0
    var index = 0
    while index < min(count, 12), case let digit = bytes[index] &- UInt8(ascii: "0"), digit < 10 {
      value = value * 10 + Int(digit)
      index += 1
    }
    return (value, index)
  }

  private static func dbus(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Reply? {
    guard count >= 16 else { return nil }
    let number = { (place: Int) in (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) } }
    let length = 16 + (number(12) + 7) / 8 * 8 + number(4)
    guard count >= length else { return nil }
    return Reply(length: length, isAnswer: bytes[1] == 2 || bytes[1] == 3, isRefusal: bytes[1] == 3)
  }
}
