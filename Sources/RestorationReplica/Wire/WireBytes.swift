// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

struct WireBytes: WireValue {
  static let schema = Schema.keywords(["type": "string", "contentEncoding": "base64"])
  static let expected = "a string of base 64 with padding"

  var bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .string else { throw Misfit(Self.expected) }
    let text = slice.text.dropFirst().dropLast()
    // Without an escape, the text is the string.
    let bytes = Base64.bytes(of: text) ?? slice.string().flatMap { Base64.bytes(of: $0) }
    guard let bytes else { throw Misfit(Self.expected) }
    self.bytes = bytes
  }

  func writeJSON(to writer: inout JSONWriter) { writer.base64(bytes) }
}

extension MemberWalk {
  mutating func bytes(_ name: StaticString, _ value: inout [UInt8], _ about: StaticString) throws(Misfit) {
    var text = WireBytes(value)
    try required(name, &text, about)
    value = text.bytes
  }
}
