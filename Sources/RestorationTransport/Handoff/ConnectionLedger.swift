// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import JSONRPC

/// A page for each connection, in memory that outlives this process: it lets the next process adopt the connections.
/// Used on one event loop only.
///
/// The first page describes the file. If the process ends in order, data that does not fit into a page is appended
/// behind all pages. Numbers are 64-bit words in the machine's byte order, because the file never leaves the machine:
///
///     first page:   magic, version, number of pages, the last key
///     other pages:  key (0: free), state, framing, our last call, unanswered calls, bytes of context,
///                   place behind the pages (0: none), bytes of input and of output there; at 128 the context
///
/// Invariants:
/// 1. A page says `idle` only while this process holds nothing of its connection: no unanswered input, no unsent
///    output. It says `busy` before a byte is read or sent.
/// 2. The rest of a page is written only while it says `busy`; the context also while it says `handedOver`, because it
///    is read from behind the pages then.
/// 3. A key is never used twice, in all processes that use the file.
/// 4. An inherited page says `idle` or stays as it was until its connection is adopted, so that a process that ends
///    before loses none.
package final class ConnectionLedger {
  static let pageBytes = 4_096
  private static let magic: UInt64 = 0x5253_544E_4C44_4752
  private static let version: UInt64 = 1

  private let file: Descriptor
  private let base: UnsafeMutableRawPointer
  private let pageCount: Int
  private var freePages: [Int]
  /// Pages of connections that are not adopted yet.
  private var inherited: [UInt64: Int]
  /// Where data behind the pages is appended next.
  private var end: Int

  package var descriptor: Int32 { file.number }

  package static func make(connectionsMax: Int) throws(TransportError) -> ConnectionLedger {
    try TransportError.reporting(
      "cannot create the connection ledger",
      calling: try ConnectionLedger(SystemCalls.memoryFile("connections"), pageCount: connectionsMax + 1)
    )
  }

  /// Frees all pages that are not inherited.
  private init(
    _ file: consuming Descriptor,
    pageCount: Int,
    lastKey: UInt64 = 0,
    inheriting inherited: [UInt64: Int] = [:]
  ) throws(SystemCallError) {
    (self.pageCount, self.inherited) = (pageCount, inherited)
    let taken = Set(inherited.values)
    freePages = (1..<max(pageCount, 1)).reversed().filter { !taken.contains($0) }
    end = max(pageCount * Self.pageBytes, Int(clamping: try SystemCalls.size(of: file.number)))
    try SystemCalls.resize(file.number, to: end)
    base = try SystemCalls.map(file.number, bytes: pageCount * Self.pageBytes)
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

  /// Takes over the former process's ledger and its descriptor. Returns the snapshots of its connections by key,
  /// without those that cannot be adopted.
  ///
  /// Throws if the file is not a whole ledger, or of an unknown version.
  package static func inherit(
    _ descriptor: Int32,
    connectionsMax: Int
  ) throws(TransportError) -> (ConnectionLedger, [UInt64: ConnectionSnapshot]) {
    let inherited = try TransportError.reporting(
      "cannot adopt connections",
      calling: try inherit(Descriptor(descriptor), connectionsMax: connectionsMax)
    )
    guard let inherited else {
      throw TransportError(.damaged, "cannot adopt connections: their ledger is damaged, or of another version")
    }
    return inherited
  }

  private static func inherit(
    _ file: consuming Descriptor,
    connectionsMax: Int
  ) throws(SystemCallError) -> (ConnectionLedger, [UInt64: ConnectionSnapshot])? {
    let head = try words(of: file.number, page: 0)
    let size = UInt64(clamping: try SystemCalls.size(of: file.number))
    guard head.count > Word.lastKey.rawValue, head[.magic] == magic, head[.version] == version,
      head[.pageCount] > 0, head[.pageCount] <= size / UInt64(pageBytes), head[.lastKey] < numberMax
    else { return nil }
    let before = Int(head[.pageCount])
    let pageCount = max(before, connectionsMax + 1)
    var records: [UInt64: ConnectionSnapshot] = [:]
    var inherited: [UInt64: Int] = [:]
    for page in 1..<max(before, 1) {
      let words = try words(of: file.number, page: page)
      // If a page cannot be read, only its own connection ends.
      guard words.count > Word.outputBytes.rawValue, words[.key] != 0,
        let record = try? record(words, of: file.number, page: page, size: size)
      else { continue }
      records[words[.key]] = record
      let isIdle = (try? settle(page, of: file.number, record)) == true
      // Further pages take the place of what was handed over behind them.
      if isIdle || pageCount == before { inherited[words[.key]] = page }
    }
    let ledger = try ConnectionLedger(file, pageCount: pageCount, lastKey: head[.lastKey], inheriting: inherited)
    return (ledger, records)
  }

  /// Marks a page as idle if its connection was handed over without input or output, so that it survives the end of
  /// this process as well. Nothing is answered twice or lost: from the first byte on the page says `busy`.
  ///
  /// - Returns: whether the page is idle; otherwise it is unchanged.
  private static func settle(
    _ page: Int,
    of file: Int32,
    _ record: ConnectionSnapshot
  ) throws(SystemCallError) -> Bool {
    if record.wasKilled { return true }
    guard record.input.isEmpty, record.output.isEmpty, !record.isClosing, record.context.count <= contextBytesMax
    else { return false }
    let idle = withUnsafeBytes(of: State.idle.rawValue) { Array($0) }
    try SystemCalls.write(file, record.context, at: page * pageBytes + contextStart)
    // Last: the rest of an idle page is already there.
    try SystemCalls.write(file, idle, at: page * pageBytes + 8 * Word.state.rawValue)
    return true
  }

  /// Frees the pages of connections that were not adopted, and drops the data behind the pages.
  package func endAdoption() {
    for page in inherited.values { release(page) }
    inherited = [:]
    end = pageCount * Self.pageBytes
    try? SystemCalls.resize(descriptor, to: end)
  }

  // MARK: Pages

  package func nextKey() -> UInt64 {
    self[0, .lastKey] += 1
    return self[0, .lastKey]
  }

  /// A page that says `busy`, or the inherited one, which may say `idle`; `nil` if all pages are taken.
  package func claim(_ key: UInt64) -> ConnectionPage? {
    guard let number = inherited.removeValue(forKey: key) ?? freePages.popLast() else { return nil }
    let isIdle = self[number, .key] == key && self[number, .state] == State.idle.rawValue
    if !isIdle {
      setState(.busy, page: number)
      self[number, .place] = 0
      self[number, .key] = key
    }
    return ConnectionPage(key: key, number: number, isBusy: !isIdle, ledger: self)
  }

  func release(_ page: Int) {
    self[page, .key] = 0
    freePages.append(page)
  }

  /// Writes the snapshot of a connection, of any length.
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
    /// The process has ended in order; the snapshot is behind the pages.
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
  /// A bit of the word `framing`.
  private static let closingMark: UInt64 = 1 << 8
  /// Greater than any valid number.
  private static let numberMax: UInt64 = 1 << 53
  package static let contextBytesMax = pageBytes - contextStart

  subscript(page: Int, word: Word) -> UInt64 {
    get { base.load(fromByteOffset: page * Self.pageBytes + 8 * word.rawValue, as: UInt64.self) }
    set { base.storeBytes(of: newValue, toByteOffset: page * Self.pageBytes + 8 * word.rawValue, as: UInt64.self) }
  }

  /// An atomic store: ordered after all earlier writes to the page, and before what follows.
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

  /// `nil` if the connection cannot be adopted.
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
