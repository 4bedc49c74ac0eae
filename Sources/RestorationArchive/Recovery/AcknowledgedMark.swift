// SPDX-License-Identifier: Apache-2.0

/// The newest acknowledged sequence of an archive, in a small file beside it while it is open.
///
/// It is written after each commit and never synced. After a kill it is exact. After a power cut it may be older than
/// the archive, but not newer, because the archive was synced first. If an archive ends before its mark, it has lost
/// changes.
struct AcknowledgedMark {
  private let file: any OpenFile

  /// `<UUID of the archive> <sequence, 20 digits>`
  static let bytes = offset + digits
  private static let digits = 20
  private static let offset = 37

  /// Replaces an earlier mark; `nil` if the file cannot be written, as on a full disk. The mark only adds certainty.
  init?(_ path: String, of system: any FileSystem, archive: String, sequence: SequenceNumber) {
    guard let file = try? system.open(path, .creatingOrWriting) else { return nil }
    self.file = file
    let digits = String(sequence)
    // In one write: a kill must not leave the sequence of another archive behind this one's UUID.
    let text = "\(archive) \(String(repeating: "0", count: Self.digits - digits.utf8.count))\(digits)"
    guard (try? file.write(text, at: 0)) != nil, (try? file.truncate(to: Self.bytes)) != nil else { return nil }
  }

  func write(_ sequence: SequenceNumber) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.digits) { text in
      var rest = sequence
      for index in (0..<Self.digits).reversed() {
        text[index] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      }
      try? file.write(UnsafeRawBufferPointer(text), at: Self.offset)
    }
  }

  /// The sequence that a mark names; `nil` if the mark is invalid or of another archive.
  static func sequence(in text: [UInt8], archive: String) -> SequenceNumber? {
    let words = String(decoding: text, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, words[0] == archive, words[1].utf8.count == digits else { return nil }
    return SequenceNumber(words[1])
  }
}
