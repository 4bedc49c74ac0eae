// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import JSONRPC

/// A page for each connection in memory that outlives this process, so that whoever comes after it knows which
/// connections it can go on with, and how. Used on one event loop only.
///
/// The file begins with a page about itself. What does not fit into a page when the process ends in order stands
/// behind all of them. Numbers are words of 64 bits in the order of the machine, which such a file never leaves:
///
///     first page:   magic, version, number of pages, the key given last
///     other pages:  key (0: free), state, framing, our last call, unanswered calls, bytes of context,
///                   place behind the pages (0: none), bytes of input and of output there; at 128 the context
///
/// Invariants:
/// 1. A page says `idle` only while nothing of its connection is in this process: nothing that was read and is not
///    answered, nothing that is still to be sent. It says `busy` before a byte is read or sent.
/// 2. The rest of a page is written only while it says `busy`.
/// 3. A key is never given twice, by none of the processes that have the file one after the other.
package final class ConnectionLedger {
  static let pageBytes = 4_096
  private static let magic: UInt64 = 0x5253_544E_4C44_4752
  private static let version: UInt64 = 1

  private let file: Descriptor
  private let base: UnsafeMutableRawPointer
  private let pageCount: Int
  private var freePages: [Int]
  /// Where what does not fit into the pages goes next.
  private var end: Int

  /// Of the file; whoever stores it stores a duplicate.
  package var descriptor: Int32 { file.number }

  /// A new one with room for so many connections.
  package static func make(connectionsMax: Int) throws(TransportError) -> ConnectionLedger {
    try TransportError.reporting(
      "cannot keep connections",
      calling: try ConnectionLedger(SystemCalls.memoryFile("connections"), pageCount: connectionsMax + 1, lastKey: 0)
    )
  }

  /// All pages are free; what is behind them goes.
  private init(_ file: consuming Descriptor, pageCount: Int, lastKey: UInt64) throws(SystemCallError) {
    self.pageCount = pageCount
    freePages = Array((1..<max(pageCount, 1)).reversed())
    end = pageCount * Self.pageBytes
    try SystemCalls.resize(file.number, to: end)
    base = try SystemCalls.map(file.number, bytes: end)
    self.file = file
    for page in freePages { self[page, .key] = 0 }
    self[0, .version] = Self.version
    self[0, .pageCount] = UInt64(pageCount)
    self[0, .lastKey] = lastKey
    self[0, .magic] = Self.magic
  }

  deinit {
    SystemCalls.unmap(base, bytes: pageCount * Self.pageBytes)
  }

  /// Takes over the one of the process before, with what it says of its connections by their keys; those that cannot
  /// be gone on with are missing. The descriptor is the ledger's from now on.
  ///
  /// Throws where the file is none, or one of a version we do not know.
  package static func inherit(
    _ descriptor: Int32,
    connectionsMax: Int
  ) throws(TransportError) -> (ConnectionLedger, [UInt64: ConnectionSnapshot]) {
    try TransportError.reporting(
      "cannot go on with connections",
      calling: try inherit(Descriptor(descriptor), connectionsMax: connectionsMax)
    )
  }

  private static func inherit(
    _ file: consuming Descriptor,
    connectionsMax: Int
  ) throws(SystemCallError) -> (ConnectionLedger, [UInt64: ConnectionSnapshot]) {
    let head = try words(of: file.number, page: 0)
    let size = UInt64(clamping: try SystemCalls.size(of: file.number))
    guard head.count > Word.lastKey.rawValue, head[.magic] == magic, head[.version] == version,
      (1...size / UInt64(pageBytes)).contains(head[.pageCount]), head[.lastKey] < numberMax
    else { throw SystemCallError(call: "ledger", number: SystemCallError.invalid) }
    let before = Int(head[.pageCount])
    var records: [UInt64: ConnectionSnapshot] = [:]
    for page in 1..<max(before, 1) {
      let words = try words(of: file.number, page: page)
      guard words.count > Word.outputBytes.rawValue, words[.key] != 0 else { continue }
      // One that cannot be read ends its own connection only.
      records[words[.key]] = try? record(words, of: file.number, page: page, size: size)
    }
    let pageCount = max(before, connectionsMax + 1)
    return (try ConnectionLedger(file, pageCount: pageCount, lastKey: head[.lastKey]), records)
  }

  // MARK: Pages

  /// A key never given before.
  package func nextKey() -> UInt64 {
    self[0, .lastKey] += 1
    return self[0, .lastKey]
  }

  /// A page that says `busy`; nil where all are taken.
  package func claim(_ key: UInt64) -> ConnectionPage? {
    guard let number = freePages.popLast() else { return nil }
    self[number, .state] = State.busy.rawValue
    self[number, .place] = 0
    self[number, .key] = key
    return ConnectionPage(key: key, number: number, ledger: self)
  }

  func release(_ page: Int) {
    self[page, .key] = 0
    freePages.append(page)
  }

  /// Puts down what is left of a connection, whatever its length.
  func handOver(_ record: ConnectionSnapshot, page: Int) throws(SystemCallError) {
    let bytes = record.context + record.input + record.output
    try SystemCalls.write(descriptor, bytes, at: end)
    self[page, .framing] = record.framingNumber | (record.isClosing ? Self.closingMark : 0)
    self[page, .lastCall] = UInt64(record.callsMade.lastID)
    self[page, .unanswered] = UInt64(record.callsMade.unanswered)
    self[page, .contextBytes] = UInt64(record.context.count)
    self[page, .inputBytes] = UInt64(record.input.count)
    self[page, .outputBytes] = UInt64(record.output.count)
    self[page, .place] = UInt64(end)
    setState(.handedOver, page: page)
    end += bytes.count
  }

  // MARK: Words

  enum State: UInt64 {
    case busy, idle
    /// The process has ended in order, and what is left of the connection stands behind the pages.
    case handedOver
  }

  enum Word: Int {
    case key, state, framing, lastCall, unanswered, contextBytes, place, inputBytes, outputBytes

    static let magic = Word.key
    static let version = Word.state
    static let pageCount = Word.framing
    static let lastKey = Word.lastCall
  }

  private static let contextStart = 128
  /// Beside the framing.
  private static let closingMark: UInt64 = 1 << 8
  /// Beyond every number that counts something real.
  private static let numberMax: UInt64 = 1 << 53
  package static let contextBytesMax = pageBytes - contextStart

  subscript(page: Int, word: Word) -> UInt64 {
    get { base.load(fromByteOffset: page * Self.pageBytes + 8 * word.rawValue, as: UInt64.self) }
    set { base.storeBytes(of: newValue, toByteOffset: page * Self.pageBytes + 8 * word.rawValue, as: UInt64.self) }
  }

  /// Written after everything else of the page, and before what follows.
  func setState(_ state: State, page: Int) {
    let word = base.advanced(by: page * Self.pageBytes + 8 * Word.state.rawValue)
    clinux_store(word, state.rawValue)
  }

  func setContext(_ context: [UInt8], page: Int) {
    self[page, .contextBytes] = UInt64(context.count)
    let start = page * Self.pageBytes + Self.contextStart
    UnsafeMutableRawBufferPointer(start: base + start, count: Self.contextBytesMax).copyBytes(from: context)
  }

  // MARK: Reading

  private static func words(of file: Int32, page: Int) throws(SystemCallError) -> Words {
    let bytes = try SystemCalls.read(file, count: contextStart, at: page * pageBytes)
    return Words(
      words: bytes.withUnsafeBytes { bytes in
        (0..<bytes.count / 8).map { bytes.load(fromByteOffset: 8 * $0, as: UInt64.self) }
      }
    )
  }

  private struct Words {
    let words: [UInt64]
    var count: Int { words.count }
    subscript(word: Word) -> UInt64 { words[word.rawValue] }
  }

  /// Nil for a connection that nobody can go on with.
  private static func record(
    _ words: Words,
    of file: Int32,
    page: Int,
    size: UInt64
  ) throws(SystemCallError) -> ConnectionSnapshot? {
    guard let state = State(rawValue: words[.state]), state != .busy,
      let framing = ConnectionSnapshot.framing(words[.framing] & ~closingMark),
      words[.lastCall] < numberMax, words[.unanswered] < numberMax
    else { return nil }
    var record = ConnectionSnapshot(framing: framing)
    record.isClosing = words[.framing] & closingMark != 0
    record.wasKilled = state == .idle
    record.callsMade.lastID = Int(clamping: words[.lastCall])
    record.callsMade.unanswered = Int(clamping: words[.unanswered])
    let counts = [words[.contextBytes], words[.inputBytes], words[.outputBytes]].map { Int(clamping: $0) }
    guard state == .handedOver else {
      guard counts[0] <= contextBytesMax else { return nil }
      record.context = try SystemCalls.read(file, count: counts[0], at: page * pageBytes + contextStart)
      return record.context.count == counts[0] ? record : nil
    }
    guard counts.allSatisfy({ UInt64($0) <= size }) else { return nil }
    let total = counts.reduce(0, +)
    let bytes = try SystemCalls.read(file, count: total, at: Int(clamping: words[.place]))
    guard bytes.count == total else { return nil }
    record.context = Array(bytes[..<counts[0]])
    record.input = Array(bytes[counts[0]..<counts[0] + counts[1]])
    record.output = Array(bytes[(counts[0] + counts[1])...])
    return record
  }
}
