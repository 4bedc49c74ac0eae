// SPDX-License-Identifier: Apache-2.0

extension JSONSlice {
  /// The decoded name of the first member that begins with one of the prefixes, given in UTF-8; `nil` if there is none,
  /// or this is not an object.
  package func firstMemberName(withAnyPrefix prefixes: [[UInt8]]) -> String? {
    guard kind == .object else { return nil }
    var found: String?
    forEachChild { name, _ in
      guard prefixes.contains(where: { name.hasPrefix($0, in: storage.bytes) }) else { return true }
      found = name.string(in: storage.bytes)
      return false
    }
    return found
  }
}

extension SliceName {
  fileprivate func hasPrefix(_ prefix: [UInt8], in bytes: [UInt8]) -> Bool {
    if escaped { return JSONEscape.decodeBytes(bytes[range]).starts(with: prefix) }
    guard range.count >= prefix.count else { return false }
    for index in 0..<prefix.count where bytes[range.lowerBound + index] != prefix[index] { return false }
    return true
  }
}
