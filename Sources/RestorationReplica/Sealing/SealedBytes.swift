// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The parts of sealed bytes (`Protocol/replica-format.md`).
package struct SealedBytes: Sendable {
  /// The version of the format. Unsealed data begins with a byte below 128.
  package static let version: UInt8 = 0x81
  /// How many bytes sealing adds.
  package static let overhead = 1 + ReplicaKeyID.byteCount + Sodium.nonceBytes + Sodium.tagBytes

  package let keyID: ReplicaKeyID
  let nonce: ArraySlice<UInt8>
  /// With the tag.
  let text: ArraySlice<UInt8>

  /// `nil` if they have another version or are too few.
  package init?(_ bytes: [UInt8]) {
    var rest = bytes[...]
    guard rest.popFirst() == Self.version, let id = rest.take(ReplicaKeyID.byteCount),
      let nonce = rest.take(Sodium.nonceBytes), rest.count >= Sodium.tagBytes
    else { return nil }
    (keyID, self.nonce, text) = (ReplicaKeyID(id), nonce, rest)
  }

  /// The bytes before the nonce.
  static func head(of id: ReplicaKeyID) -> [UInt8] { [version] + id.bytes }
}

/// Where sealed bytes belong. They can be opened for this place only.
///
/// The lease is not a part of it, because waiting data is stored under the next lease.
package enum SealedPlace: Sendable {
  /// The body of the batch does not matter.
  case batch(ReplicaBatch, of: Archive)
  case part(SnapshotPart, of: Archive)
  case summary(of: String)

  /// An archive from its beginning to its removal.
  package struct Archive: Hashable, Sendable {
    let application: String
    let history: String

    package init(application: String, history: String) { (self.application, self.history) = (application, history) }
  }

  /// The authenticated form.
  package func bytes(under key: ReplicaKeyID) -> [UInt8] {
    var bytes = Array("rstr".utf8) + SealedBytes.head(of: key)
    switch self {
    case .batch(let batch, let archive):
      bytes.append(0)
      bytes.append(archive)
      bytes.append(number: batch.after)
      bytes.append(number: batch.upto)
      bytes.append(batch.change)
    case .part(let part, let archive):
      bytes.append(1)
      bytes.append(archive)
      bytes.append(number: part.tip.sequence)
      bytes.append(part.tip.change == nil ? 0 : 1)
      if let change = part.tip.change { bytes.append(change) }
      for number in [part.reader, part.number, part.count] { bytes.append(number: Int64(number)) }
    case .summary(let application):
      bytes.append(2)
      bytes.append(counted: application.utf8)
    }
    return bytes
  }
}

extension SealedPlace: CustomStringConvertible {
  package var description: String {
    switch self {
    case .batch(let batch, let archive):
      "the batch with the changes \(batch.after &+ 1) to \(batch.upto) of \(archive.application)"
    case .part(let part, let archive):
      "part \(part.number &+ 1) of \(part.count) of the snapshot at \(part.tip.sequence) of \(archive.application)"
    case .summary(let application): "the summary of \(application)"
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ archive: SealedPlace.Archive) {
    append(counted: archive.application.utf8)
    append(counted: archive.history.utf8)
  }
}
