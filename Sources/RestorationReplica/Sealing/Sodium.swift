// SPDX-License-Identifier: Apache-2.0

internal import CSodium

/// libsodium, loaded when the first value is made: a value guarantees that the library is there.
package struct Sodium: Sendable {
  package static let keyBytes = Int(csodium_key_bytes)
  package static let nonceBytes = Int(csodium_nonce_bytes)
  package static let tagBytes = Int(csodium_tag_bytes)

  package init() throws(ReplicaKeyError) {
    guard let fault = csodium_open() else { return }
    throw ReplicaKeyError(
      "nothing can be sealed: \(String(cString: fault)); install libsodium (Debian: libsodium23) and try again"
    )
  }

  /// Returns `tagBytes` more bytes than the text has. Opening them takes the same key and place.
  package func seal(_ text: [UInt8], at place: [UInt8], nonce: [UInt8], key: [UInt8]) -> [UInt8] {
    precondition(nonce.count == Self.nonceBytes && key.count == Self.keyBytes)
    return [UInt8](unsafeUninitializedCapacity: text.count + Self.tagBytes) { buffer, count in
      let code = csodium_seal(buffer.baseAddress, text, text.count, place, place.count, nonce, key)
      precondition(code == 0, "libsodium seals everything")
      count = text.count + Self.tagBytes
    }
  }

  /// `nil` if the bytes were not sealed with this nonce and key for this place.
  package func open(_ sealed: ArraySlice<UInt8>, at place: [UInt8], nonce: [UInt8], key: [UInt8]) -> [UInt8]? {
    precondition(nonce.count == Self.nonceBytes && key.count == Self.keyBytes)
    guard sealed.count >= Self.tagBytes else { return nil }
    var isGenuine = false
    let text = [UInt8](unsafeUninitializedCapacity: sealed.count - Self.tagBytes) { buffer, count in
      isGenuine = sealed.withUnsafeBufferPointer { sealed in
        csodium_unseal(buffer.baseAddress, sealed.baseAddress, sealed.count, place, place.count, nonce, key) == 0
      }
      count = isGenuine ? sealed.count - Self.tagBytes : 0
    }
    return isGenuine ? text : nil
  }

  /// BLAKE2b: 64 bytes.
  package func hash(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(csodium_hash_bytes)) { buffer, count in
      let code = csodium_hash(buffer.baseAddress, bytes, bytes.count)
      precondition(code == 0, "libsodium hashes everything")
      count = Int(csodium_hash_bytes)
    }
  }

  package func random(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let code = csodium_random(buffer.baseAddress, count)
      precondition(code == 0, "libsodium always has random bytes")
      initialized = count
    }
  }

  /// Overwrites a secret; copies that share no memory with it remain.
  package func wipe(_ bytes: inout [UInt8]) {
    bytes.withUnsafeMutableBytes { _ = csodium_wipe($0.baseAddress, $0.count) }
  }
}
