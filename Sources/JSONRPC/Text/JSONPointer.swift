// SPDX-License-Identifier: Apache-2.0

/// Builds JSON pointers (RFC 6901) for `data.pointer`.
package enum JSONPointer {
  /// The pointer to the value reached by these member names and indices.
  package static func make(_ tokens: String...) -> String {
    tokens.reduce(into: "") { $0 += "/\(escaped($1))" }
  }

  /// A member's name as a part of a pointer.
  package static func escaped(_ name: String) -> String {
    let (tilde, slash) = (UInt8(ascii: "~"), UInt8(ascii: "/"))
    // A name may be as long as a message.
    guard name.utf8.contains(where: { $0 == tilde || $0 == slash }) else { return name }
    var bytes: [UInt8] = []
    for byte in name.utf8 {
      switch byte {
      case tilde: bytes += "~0".utf8
      case slash: bytes += "~1".utf8
      default: bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
