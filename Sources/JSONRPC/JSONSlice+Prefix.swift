// SPDX-License-Identifier: Apache-2.0

extension JSONSlice {
  /// The decoded name of the first member that begins with one of the prefixes; nil where none does, or for another
  /// kind than an object.
  package func firstMemberName(withAnyPrefix prefixes: [String]) -> String? {
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
  fileprivate func hasPrefix(_ prefix: String, in bytes: [UInt8]) -> Bool {
    if escaped { return JSONEscape.decodeBytes(bytes[range]).starts(with: prefix.utf8) }
    guard range.count >= prefix.utf8.count else { return false }
    var index = range.lowerBound
    for byte in prefix.utf8 {
      if bytes[index] != byte { return false }
      index += 1
    }
    return true
  }
}
