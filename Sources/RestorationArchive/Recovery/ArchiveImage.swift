// SPDX-License-Identifier: Apache-2.0

/// An archive file with its log replayed, in memory: for files that SQLite must not write, or cannot open.
struct ArchiveImage {
  static let pageBytes = 4096
  /// Whole pages.
  let bytes: [UInt8]

  var pageCount: Int { bytes.count / Self.pageBytes }

  /// - Parameter name: the file; no connection may have it open.
  init(of name: String, in directory: ArchiveDirectory) throws(SystemError) {
    var bytes: [UInt8] = []
    try directory.read(name) { bytes.append(contentsOf: $0) }
    var log = LogWalk(keepingPages: true)
    let logName = name + ArchiveFiles.logSuffix
    if try directory.entry(logName) != .absent { try directory.read(logName) { log.take($0) } }
    let found = (bytes.count + Self.pageBytes - 1) / Self.pageBytes
    let count = log.pages.isEmpty || log.pageCount > found + log.pages.count ? found : log.pageCount
    bytes.removeLast(max(0, bytes.count - count * Self.pageBytes))
    bytes.append(contentsOf: repeatElement(0, count: count * Self.pageBytes - bytes.count))
    for (number, page) in log.pages where page.count == Self.pageBytes && number <= count {
      bytes.replaceSubrange((number - 1) * Self.pageBytes..<number * Self.pageBytes, with: page)
    }
    self.bytes = Self.withoutLog(bytes)
  }

  /// Says in the header that there is no log, and that the database is as long as its file.
  static func withoutLog(_ bytes: [UInt8]) -> [UInt8] {
    guard !bytes.isEmpty else { return bytes }
    var bytes = bytes
    for place in 18...19 { bytes[place] = 1 }
    for place in 28...31 { bytes[place] = 0 }
    return bytes
  }

  func page(_ number: Int) -> ArraySlice<UInt8> {
    bytes[(number - 1) * Self.pageBytes..<number * Self.pageBytes]
  }
}
