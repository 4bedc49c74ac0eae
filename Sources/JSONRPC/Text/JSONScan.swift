// SPDX-License-Identifier: Apache-2.0

/// A strict, resumable scan of one JSON value: accepts exactly RFC 8259 within limits and notes where its upper levels
/// and its references lie. It builds no values, and reads each byte once, however the text arrives.
struct JSONScan {
  /// The kind of text; decides what is noted.
  enum Subject {
    /// A single message: noted down to the members of the objects in `params`, and two levels deeper in `result`.
    case message
    /// A batch: as for a message, one level deeper.
    case batch
    /// A single value: noted down to the members of its members.
    case document
  }

  let limits: FrameLimits
  private let referenceKey: [UInt8]
  private let literalKey: [UInt8]
  private(set) var subject = Subject.document
  private(set) var state = ScanState()
  private var levels: [ScanLevel] = []
  private(set) var tape: [TapeEntry] = []
  private var references: [TapeReference] = []

  init(limits: FrameLimits, vocabulary: ScanVocabulary) {
    self.limits = limits
    referenceKey = Array(vocabulary.referenceKey.utf8)
    literalKey = Array(vocabulary.literalKey.utf8)
    begin(.document)
  }

  mutating func begin(_ subject: Subject) {
    self.subject = subject
    state = ScanState(notedDepth: subject.memberDepth + 2, valuesLeft: max(0, limits.valuesPerFrameMax))
    if !references.isEmpty { references = [] }
    trim()
  }

  /// Keeps the memory of a usual frame and releases that of a large one; the current value is lost. Most connections
  /// are idle and have sent little, so the first allocation is small.
  mutating func trim() {
    if levels.isEmpty || levels.count > 64 { levels = Array(repeating: ScanLevel(), count: 8) }
    if tape.isEmpty || tape.count > 512 { tape = Array(repeating: Self.blank, count: 16) }
  }

  /// Continues the value whose first byte is at `base`; `count` bytes have arrived, and eight zero bytes follow.
  /// Returns `.complete`, `.needsBytes`, `.syntax` or `.limit`.
  mutating func advance(_ base: UnsafePointer<UInt8>, count: Int) -> ScanOutcome {
    while true {
      let outcome = run(base, count: count)
      switch outcome {
      case .needsRoom: makeRoom()
      case .name: noteName(base)
      case .markedObject: noteMarkedObject()
      case .complete, .needsBytes, .syntax, .limit: return outcome
      }
    }
  }

  private mutating func run(_ base: UnsafePointer<UInt8>, count: Int) -> ScanOutcome {
    let memberDepth = subject.memberDepth
    let depthMax = limits.depthMax
    let namesMax = Int32(clamping: limits.keysPerObjectMax)
    let initials = (referenceKey.first ?? 0, literalKey.first ?? 0)
    var state = state
    defer { self.state = state }
    return levels.withUnsafeMutableBufferPointer { levels in
      tape.withUnsafeMutableBufferPointer { tape in
        var cursor = ScanCursor(
          base: base,
          end: count,
          levels: levels,
          tape: tape,
          memberDepth: memberDepth,
          depthMax: depthMax,
          namesMax: namesMax,
          vocabularyInitials: initials,
          state: state
        )
        let outcome = cursor.run()
        state = cursor.state
        return outcome
      }
    }
  }

  /// The notes of the complete value at the beginning of `bytes`.
  func storage(of bytes: [UInt8]) -> FrameStorage {
    FrameStorage(bytes: bytes, tape: Array(tape[..<state.noted]), references: references)
  }

  private static let blank = TapeEntry(name: 0..<0, value: 0..<0, next: 0, kind: .null, flags: [])

  /// Objects nested less deeply are part of the message and never references.
  private var referenceDepthMin: Int {
    switch subject {
    case .message: 3
    case .batch: 4
    case .document: 1
    }
  }

  private mutating func makeRoom() {
    if state.noted == tape.count { tape += Array(repeating: Self.blank, count: tape.count) }
    if state.depth + 1 == levels.count { levels += Array(repeating: ScanLevel(), count: levels.count) }
  }

  private mutating func noteName(_ base: UnsafePointer<UInt8>) {
    guard state.depth >= referenceDepthMin else { return }
    let raw = UnsafeBufferPointer(start: base + state.nameStart, count: state.nameEnd - state.nameStart)
    let name = state.nameEscaped ? JSONEscape.decodeBytes(Array(raw)[...]) : Array(raw)
    if name == literalKey {
      levels[state.depth].marks.insert(.literal)
    } else if name == referenceKey {
      levels[state.depth].marks.insert(.reference)
      levels[state.depth].referenceName = Int32(truncatingIfNeeded: state.nameEnd)
    }
  }

  private mutating func noteMarkedObject() {
    let level = levels[state.depth + 1]
    while let last = references.last, last.start > level.start { references.removeLast() }
    guard !level.marks.contains(.literal) else { return }
    references.append(
      TapeReference(start: level.start, end: Int32(truncatingIfNeeded: state.at), nameEnd: level.referenceName)
    )
  }
}

extension JSONScan.Subject {
  /// The containers around a message's members; a document is noted like a message.
  fileprivate var memberDepth: Int {
    switch self {
    case .message: 1
    case .batch: 2
    case .document: 0
    }
  }
}

extension JSONSlice {
  /// Scans text that is one JSON value within the limits, surrounded only by white space.
  package static func scan(
    _ bytes: [UInt8],
    vocabulary: ScanVocabulary,
    limits: FrameLimits = FrameLimits()
  ) throws(JSONError) -> JSONSlice {
    let leading = bytes.prefix { JSONWalk.isWhiteSpace($0) }.count
    // A number at the end is complete only when a byte follows it; the scan stops at the zero bytes.
    var text = Array(bytes[leading...])
    text.append(UInt8(ascii: "\n"))
    text.append(contentsOf: repeatElement(0, count: 8))
    var scan = JSONScan(limits: limits, vocabulary: vocabulary)
    let outcome = text.withUnsafeBufferPointer { text in
      text.baseAddress.map { scan.advance($0, count: text.count - 8) } ?? .needsBytes
    }
    guard scan.state.at <= limits.frameBytesMax else {
      throw JSONError(message: "the text is longer than \(limits.frameBytesMax) bytes", position: limits.frameBytesMax)
    }
    if let message = scan.message(for: outcome) {
      let position = leading + scan.state.at
      throw position < bytes.count
        ? JSONError(message: message, position: position)
        : JSONError(message: "the text ends too early", position: bytes.count)
    }
    let end = leading + scan.state.at
    if let trailing = bytes[end...].firstIndex(where: { !JSONWalk.isWhiteSpace($0) }) {
      throw JSONError(message: "nothing may follow the value", position: trailing)
    }
    return scan.storage(of: text).root
  }
}

extension JSONScan {
  /// −32008 for the limit at which the scan has stopped; `nil` if it stopped for another reason.
  func limitError(for outcome: ScanOutcome) -> ErrorObject? {
    switch outcome {
    case .limit(.depth): .frameExceeds("depthMax", max: limits.depthMax)
    case .limit(.valuesPerFrame): .frameExceeds("valuesPerFrameMax", max: limits.valuesPerFrameMax)
    case .limit(.keysPerObject): .frameExceeds("keysPerObjectMax", max: limits.keysPerObjectMax)
    case .complete, .needsBytes, .needsRoom, .name, .markedObject, .syntax: nil
    }
  }

  /// The fault, as a sentence without a full stop; `nil` if the value is complete.
  func message(for outcome: ScanOutcome) -> String? {
    switch outcome {
    case .syntax(let fault): fault.message(expecting: state.phase)
    case .limit(.depth): "the text nests deeper than \(limits.depthMax)"
    case .limit(.valuesPerFrame): "the text holds more than \(limits.valuesPerFrameMax) values"
    case .limit(.keysPerObject): "an object has more than \(limits.keysPerObjectMax) members"
    case .needsBytes: "the text ends too early"
    case .complete, .needsRoom, .name, .markedObject: nil
    }
  }
}

/// The member names by which the scan knows references inside payloads (R14).
package struct ScanVocabulary: Sendable, Equatable {
  /// An object with this member is a reference; the member's value is its target.
  package let referenceKey: String

  /// An object with this member, and everything below it, holds no references.
  package let literalKey: String

  package init(referenceKey: String, literalKey: String) {
    (self.referenceKey, self.literalKey) = (referenceKey, literalKey)
  }
}
