// SPDX-License-Identifier: Apache-2.0

/// Tells from the bytes of a write-ahead log which frames SQLite will replay, and which it would silently drop.
///
/// The format is SQLite's (sqlite.org/fileformat2.html, section 4): a header of 32 bytes, then frames of 24 bytes and a
/// page each. Frames with the salts of the header belong to this log. The bytes behind them are of an earlier log in
/// the same file, or zeros that lengthened it. Each checksum continues the one before, so replaying ends at the first
/// invalid frame.
///
/// Behind a commit that was cut short there may also be frames of this log: of a longer one, which failed before it and
/// was rolled back. The last of these, which would end it, was not written whole. So only a finished commit behind one
/// that cannot be replayed is evidence of damage.
struct LogWalk {
  enum Finding: Equatable {
    /// The log holds no frame.
    case empty
    /// Every finished commit is replayed.
    case whole
    /// At most the last commit is not replayed, as after a kill or a power cut in the middle of a write.
    case torn
    /// Finished commits are not replayed, for this reason.
    case damaged(String)
  }

  private enum Header {
    case awaited, invalid
    case valid(frameBytes: Int, salts: UInt64, hasBigEndianChecksums: Bool)
  }

  private var header = Header.awaited
  /// Bytes of a header or frame that is not whole yet.
  private var pending: [UInt8] = []
  private var checksum = Checksum(first: 0, second: 0)
  private var frames = 0
  /// The last frame read does not end a commit.
  private var isInCommit = false
  /// A frame was invalid: SQLite replays nothing from there on.
  private var isBroken = false
  /// The number of the first frame with this log's salts from there on; `nil` until one is found.
  private var firstInvalid: Int?
  private var hasCommitPastInvalid = false
  private var hasFinishedCommitPastThatCommit = false
  private var isBlank = true
  /// Whether to keep `pages`.
  private let keepsPages: Bool
  /// The pages that are replayed, by number from 1.
  private(set) var pages: [Int: [UInt8]] = [:]
  /// How many the file has then.
  private(set) var pageCount = 0
  /// Those of a commit that is not whole yet.
  private var pendingPages: [Int: [UInt8]] = [:]

  init(keepingPages: Bool = false) { keepsPages = keepingPages }

  private static let headerBytes = 32
  private static let frameHeaderBytes = 24

  mutating func take(_ bytes: UnsafeRawBufferPointer) {
    var buffer: [UInt8] = []
    swap(&buffer, &pending)
    buffer.append(contentsOf: bytes)
    buffer.removeFirst(buffer.withUnsafeBytes { read($0) })
    swap(&buffer, &pending)
  }

  /// Valid once the whole file has been taken in.
  var finding: Finding {
    switch header {
    case .awaited: .empty
    case .invalid: isBlank ? .empty : .damaged("its header is invalid")
    case .valid:
      if let firstInvalid {
        hasFinishedCommitPastThatCommit ? .damaged("frame \(firstInvalid) of \(frames) is invalid") : .torn
      } else if isInCommit || !pending.isEmpty {
        .torn
      } else {
        frames == 0 ? .empty : .whole
      }
    }
  }

  /// Reads whole pieces; returns how many bytes they are.
  private mutating func read(_ bytes: UnsafeRawBufferPointer) -> Int {
    var offset = 0
    if case .awaited = header {
      guard bytes.count >= Self.headerBytes else { return 0 }
      readHeader(UnsafeRawBufferPointer(rebasing: bytes[..<Self.headerBytes]))
      offset = Self.headerBytes
    }
    guard case .valid(let size, let salts, let isBigEndian) = header else {
      // A header alone has never held anything.
      isBlank = isBlank && bytes[offset...].allSatisfy { $0 == 0 }
      return bytes.count
    }
    while offset + size <= bytes.count {
      readFrame(UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + size]), salts, isBigEndian)
      offset += size
    }
    return offset
  }

  private mutating func readHeader(_ bytes: UnsafeRawBufferPointer) {
    let magic = bytes.bigEndian(at: 0)
    let pageBytes = Int(bytes.bigEndian(at: 8))
    let isBigEndian = magic & 1 == 1
    checksum.add(bytes[..<24], isBigEndian)
    guard magic & ~1 == 0x377f_0682, bytes.bigEndian(at: 4) == 3_007_000,
      (512...65_536).contains(pageBytes), pageBytes & (pageBytes - 1) == 0, checksum.stands(in: bytes, at: 24)
    else {
      header = .invalid
      return
    }
    header = .valid(
      frameBytes: Self.frameHeaderBytes + pageBytes,
      salts: bytes.salts(at: 16),
      hasBigEndianChecksums: isBigEndian
    )
  }

  private mutating func readFrame(_ bytes: UnsafeRawBufferPointer, _ salts: UInt64, _ isBigEndian: Bool) {
    frames += 1
    let isOfThisLog = bytes.salts(at: 8) == salts
    let isCommit = bytes.bigEndian(at: 4) != 0
    checksum.add(bytes[..<8], isBigEndian)
    checksum.add(bytes[Self.frameHeaderBytes...], isBigEndian)
    let isFollowing = isOfThisLog && bytes.bigEndian(at: 0) != 0 && checksum.stands(in: bytes, at: 16)
    if !isBroken, isFollowing {
      isInCommit = !isCommit
      if keepsPages { keepPage(bytes, isCommit) }
      return
    }
    isBroken = true
    // If this frame is damaged, the next one can still be checked: its checksum continues the one that stands here.
    checksum = Checksum(of: bytes, at: 16)
    guard isOfThisLog else { return }
    if firstInvalid == nil { firstInvalid = frames }
    guard isCommit else { return }
    if hasCommitPastInvalid, isFollowing { hasFinishedCommitPastThatCommit = true }
    hasCommitPastInvalid = true
  }

  private mutating func keepPage(_ frame: UnsafeRawBufferPointer, _ isCommit: Bool) {
    pendingPages[Int(frame.bigEndian(at: 0))] = Array(frame[Self.frameHeaderBytes...])
    guard isCommit else { return }
    pages.merge(pendingPages) { $1 }
    pendingPages = [:]
    pageCount = Int(frame.bigEndian(at: 4))
  }

  private struct Checksum {
    var first: UInt32
    var second: UInt32

    init(first: UInt32, second: UInt32) { (self.first, self.second) = (first, second) }

    /// The one that stands there.
    init(of bytes: UnsafeRawBufferPointer, at offset: Int) {
      self.init(first: bytes.bigEndian(at: offset), second: bytes.bigEndian(at: offset + 4))
    }

    /// - Parameter bytes: a multiple of eight.
    mutating func add(_ bytes: Slice<UnsafeRawBufferPointer>, _ isBigEndian: Bool) {
      let bytes = UnsafeRawBufferPointer(rebasing: bytes)
      for offset in stride(from: 0, to: bytes.count, by: 8) {
        let words = (bytes.bigEndian(at: offset), bytes.bigEndian(at: offset + 4))
        first &+= (isBigEndian ? words.0 : words.0.byteSwapped) &+ second
        second &+= (isBigEndian ? words.1 : words.1.byteSwapped) &+ first
      }
    }

    func stands(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
      bytes.bigEndian(at: offset) == first && bytes.bigEndian(at: offset + 4) == second
    }
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func bigEndian(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  fileprivate func salts(at offset: Int) -> UInt64 { loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
}
