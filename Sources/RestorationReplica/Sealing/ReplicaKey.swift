// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Names a key without revealing it: the first 8 bytes of its hash (BLAKE2b).
package struct ReplicaKeyID: Hashable, Sendable, CustomStringConvertible {
  static let byteCount = 8
  let bytes: [UInt8]

  /// Takes the first 8 bytes.
  init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes.prefix(Self.byteCount)) }

  /// `nil` unless these are 16 digits in the form of `description`.
  package init?(_ digits: some StringProtocol) {
    guard let bytes = Hexadecimal.bytes(Array(digits.utf8)), bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
    guard description == digits else { return nil }
  }

  /// Hexadecimal digits in lower case.
  package var description: String { String(decoding: Hexadecimal.digits(bytes), as: UTF8.self) }
}

/// A key that seals one user's archives. It is never printed, and is wiped when it is released.
package final class ReplicaKey: Sendable {
  package let id: ReplicaKeyID
  private let secret: Mutex<[UInt8]>
  private let sodium: Sodium

  package convenience init() throws(ReplicaKeyError) {
    self.init(try Sodium().random(Sodium.keyBytes), try Sodium())
  }

  /// `nil` unless these are the 64 hexadecimal digits of a key.
  package convenience init?(digits: some Collection<UInt8>) throws(ReplicaKeyError) {
    let sodium = try Sodium()
    guard digits.count == 2 * Sodium.keyBytes, let secret = Hexadecimal.bytes(digits) else { return nil }
    self.init(secret, sodium)
  }

  private init(_ secret: consuming [UInt8], _ sodium: Sodium) {
    self.sodium = sodium
    id = ReplicaKeyID(sodium.hash(secret))
    self.secret = Mutex(secret)
  }

  deinit {
    secret.withLock { sodium.wipe(&$0) }
  }

  /// Passes the key's digits to a function, and wipes them afterwards.
  func withDigits<Result>(_ body: ([UInt8]) throws(ReplicaKeyError) -> Result) throws(ReplicaKeyError) -> Result {
    var digits = Hexadecimal.digits(secret.withLock { $0 })
    defer { sodium.wipe(&digits) }
    return try body(digits)
  }

  func randomBytes(_ count: Int) -> [UInt8] { sodium.random(count) }

  /// Seals the text for this place, with a new nonce.
  package func seal(_ text: [UInt8], as place: SealedPlace) -> [UInt8] {
    let nonce = sodium.random(Sodium.nonceBytes)
    let key = secret.withLock { $0 }
    return SealedBytes.head(of: id) + nonce + sodium.seal(text, at: place.bytes(under: id), nonce: nonce, key: key)
  }

  /// `nil` if the bytes were not sealed with this key for this place.
  package func open(_ sealed: SealedBytes, as place: SealedPlace) -> [UInt8]? {
    guard sealed.keyID == id else { return nil }
    let key = secret.withLock { $0 }
    return sodium.open(sealed.text, at: place.bytes(under: id), nonce: Array(sealed.nonce), key: key)
  }
}

/// Why there are no keys, and what to do.
package struct ReplicaKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}
