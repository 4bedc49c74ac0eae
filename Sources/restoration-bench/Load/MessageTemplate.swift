// SPDX-License-Identifier: Apache-2.0

/// A message whose bytes are made once. From request to request only numbers change in it, which always have eight
/// digits: so its length is always the same, and what tells the length need not change.
package struct MessageTemplate: Sendable {
  /// Stands for the number of the request. It begins with a 1, because JSON knows no leading zeros.
  package static let id = "########"
  /// Stands for the number of the object.
  package static let key = "@@@@@@@@"
  /// The number of the first request on a connection.
  package static let firstID = 10_000_000

  package let bytes: [UInt8]
  private let ids: [Int]
  private let keys: [Int]
  private let serial: Int?

  /// - Parameter serial: where the number of the request stands as four bytes, the lowest first, as in D-Bus.
  package init(_ bytes: [UInt8], serial: Int? = nil) {
    self.bytes = bytes
    self.serial = serial
    ids = Self.places(of: Self.id, in: bytes)
    keys = Self.places(of: Self.key, in: bytes)
  }

  package init(_ text: String) { self.init(Array(text.utf8)) }

  /// Fills in the numbers where the template's bytes, or those of an earlier request, stand.
  package func fill(_ message: UnsafeMutablePointer<UInt8>, id: Int, key: Int) {
    for place in ids { Self.write(id, to: message + place) }
    for place in keys { Self.write(key, to: message + place) }
    if let serial { for byte in 0..<4 { message[serial + byte] = UInt8(truncatingIfNeeded: id >> (8 * byte)) } }
  }

  /// The message of one request.
  package func message(id: Int = firstID, key: Int = 0) -> [UInt8] {
    var message = bytes
    message.withUnsafeMutableBufferPointer { buffer in
      if let start = buffer.baseAddress { fill(start, id: id, key: key) }
    }
    return message
  }

  private static func write(_ number: Int, to place: UnsafeMutablePointer<UInt8>) {
    var rest = UInt32(truncatingIfNeeded: number)
    for index in stride(from: 7, through: 0, by: -1) {
      place[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
  }

  private static func places(of mark: String, in bytes: [UInt8]) -> [Int] {
    let mark = Array(mark.utf8)
    guard bytes.count >= mark.count else { return [] }
    return (0...(bytes.count - mark.count)).filter { bytes[$0..<($0 + mark.count)].elementsEqual(mark) }
  }
}
