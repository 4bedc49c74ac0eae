// SPDX-License-Identifier: Apache-2.0

package import SeededRandom

extension SeededGenerator {
  /// Bytes that mean something in JSON, in HTTP, or as UTF-8.
  private static let bytes: [UInt8] =
    Array("{}[]\",:\\/u0123456789.eE+-tfn \n\r\tdDcC89abAB".utf8)
    + [0, 1, 0x1F, 0x7F, 0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xED, 0xF0, 0xF4, 0xFF]

  /// One of the texts with a few bytes changed, inserted, removed, or copied from elsewhere.
  package mutating func mutation(of seeds: [[UInt8]]) -> [UInt8] {
    var text = seeds[below(seeds.count)]
    for _ in 0..<below(4) + 1 where !text.isEmpty {
      let index = below(text.count)
      let byte = Self.bytes[below(Self.bytes.count)]
      switch below(5) {
      case 0: text[index] = byte
      case 1: text.insert(byte, at: index)
      case 2: text.remove(at: index)
      case 3:
        let end = min(text.count, index + below(12))
        text.insert(contentsOf: text[index..<end], at: below(text.count))
      default: text.removeSubrange(index..<min(text.count, index + below(6)))
      }
    }
    return text
  }
}
