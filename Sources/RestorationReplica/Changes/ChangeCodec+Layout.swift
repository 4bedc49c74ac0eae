// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

// The parts of a batch. The fields of a record are said once: the same walk writes and reads them.

extension ArchiveChange: ChangeField {
  func write(to writer: inout ChangeWriter) {
    switch self {
    case .node(let record): writer.write(0, record)
    case .state(let record): writer.write(1, record)
    case .removeState(let node): writer.write(2, node)
    case .removeAll: writer.byte(3)
    case .settle(let nodes): writer.write(4, nodes)
    case .withhold(let rows, let since):
      writer.write(5, rows)
      writer.write(since)
    case .release(let rows): writer.write(6, rows)
    case .context(let context, let text):
      writer.write(7, context)
      writer.write(text)
    case .forgetContexts(let contexts): writer.write(8, contexts)
    case .seal(let record): writer.write(9, record)
    case .pin(let generation): writer.write(10, generation)
    case .dropGeneration(let generation): writer.write(11, generation)
    case .session(let record): writer.write(12, writer.shared(record))
    case .forgetSessions(let sessions): writer.write(13, sessions)
    case .claim(let record): writer.write(14, record)
    case .run(let record): writer.write(15, record)
    case .superseded: writer.byte(16)
    }
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    let tag = try reader.byte()
    switch tag {
    case 0: self = .node(try reader.read())
    case 1: self = .state(try reader.read())
    case 2: self = .removeState(try reader.read())
    case 3: self = .removeAll
    case 4: self = .settle(try reader.read())
    case 5: self = .withhold(try reader.read(), since: try reader.read())
    case 6: self = .release(try reader.read())
    case 7: self = .context(try reader.read(), text: try reader.read())
    case 8: self = .forgetContexts(try reader.read())
    case 9: self = .seal(try reader.read())
    case 10: self = .pin(generation: try reader.read())
    case 11: self = .dropGeneration(try reader.read())
    case 12: self = .session(try reader.read())
    case 13: self = .forgetSessions(try reader.read())
    case 14: self = .claim(try reader.read())
    case 15: self = .run(try reader.read())
    case 16: self = .superseded
    default: throw reader.error("a change of kind \(tag) is unknown")
    }
  }
}

// MARK: Records

extension ChangeBatch.Transaction: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(changeID.high)
    writer.write(changeID.low)
    writer.write(changes)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(ChangeID(high: try reader.read(), low: try reader.read()), try reader.read())
  }
}

extension NodeRecord: ChangeRecord {
  static var blank: NodeRecord { NodeRecord(node: 0, parent: nil, component: nil, kind: .object) }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&node)
    try fields.visit(&parent)
    try fields.visit(&component)
    try fields.visit(&kind)
    try fields.visit(&classes)
    try fields.visit(&restorationClass)
    try fields.visit(&storyboard)
    try fields.visit(&keepsForever)
    try fields.visit(&isConfidential)
    try fields.visit(&isRemoved)
    try fields.visit(&successor)
  }
}

extension StateRecord: ChangeRecord {
  static var blank: StateRecord { StateRecord(node: 0, context: 0, written: 0, text: []) }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&node)
    try fields.visit(&context)
    try fields.visit(&session)
    try fields.visit(&revision)
    try fields.visit(&isEarly)
    try fields.visit(&written)
    try fields.visit(&text)
    try fields.visit(&references)
    try fields.visit(&elements)
  }
}

extension StateRow: ChangeRecord {
  static var blank: StateRow { StateRow(node: 0, sequence: 0) }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&node)
    try fields.visit(&sequence)
  }
}

extension GenerationRecord: ChangeRecord {
  static var blank: GenerationRecord { GenerationRecord(generation: 0, kind: "", committed: 0, objects: 0, bytes: 0) }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&generation)
    try fields.visit(&kind)
    try fields.visit(&committed)
    try fields.visit(&objects)
    try fields.visit(&bytes)
    try fields.visit(&omitted)
  }
}

extension SessionRecord: ChangeRecord {
  static var blank: SessionRecord { SessionRecord(session: 0, token: "", facts: "") }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&session)
    try fields.visit(&token)
    try fields.visit(&facts)
    try fields.visit(&ending)
    try fields.visit(&ended)
    try fields.visit(&restorationsAtEnd)
  }
}

extension ClaimRecord: ChangeRecord {
  static var blank: ClaimRecord { ClaimRecord(node: 0, session: 0, handle: 0) }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&node)
    try fields.visit(&session)
    try fields.visit(&handle)
    try fields.visit(&released)
    try fields.visit(&restorationsAtRelease)
  }
}

extension RunRecord: ChangeRecord {
  static var blank: RunRecord { RunRecord(run: 0, restorations: 0, facts: "") }

  mutating func walk<Walk: ChangeWalk>(_ fields: inout Walk) throws(Walk.Failure) {
    try fields.visit(&run)
    try fields.visit(&restorations)
    try fields.visit(&facts)
  }
}

// MARK: Values

extension Int64: ChangeField {
  func write(to writer: inout ChangeWriter) { writer.number(self) }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) { self = try reader.number() }
}

extension Int: ChangeField {
  func write(to writer: inout ChangeWriter) { writer.number(Int64(self)) }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) { self.init(try reader.number()) }
}

/// Half of a change's id. Written as eight bytes, because it is random.
extension UInt64: ChangeField {
  func write(to writer: inout ChangeWriter) { withUnsafeBytes(of: bigEndian) { writer.content($0) } }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self = try reader.content(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension Bool: ChangeField {
  func write(to writer: inout ChangeWriter) { writer.byte(self ? 1 : 0) }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    let tag = try reader.byte()
    guard tag <= 1 else { throw reader.error("\(tag) is neither true nor false") }
    self = tag == 1
  }
}

extension NodeKind: ChangeField {
  func write(to writer: inout ChangeWriter) { writer.number(rawValue) }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    let number = try reader.number()
    guard let kind = NodeKind(rawValue: number) else { throw reader.error("a node of kind \(number) is unknown") }
    self = kind
  }
}

extension String: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.number(Int64(utf8.count))
    writer.content(utf8)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    let bytes = try reader.content(reader.number())
    guard let text = String(validating: bytes, as: UTF8.self) else { throw reader.error("a text is not UTF-8") }
    self = text
  }
}

/// The text of a state; opaque here.
extension ArraySlice<UInt8>: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.number(Int64(count))
    writer.content(self)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) { self = try reader.content(reader.number()) }
}

extension Optional: ChangeField where Wrapped: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(self != nil)
    if let self { writer.write(self) }
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    let isThere: Bool = try reader.read()
    self = isThere ? try reader.read() as Wrapped : nil
  }
}

extension Array: ChangeField where Element: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.number(Int64(count))
    for element in self { element.write(to: &writer) }
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    let count = try reader.number()
    self.init()
    // Each element takes at least a byte, so a false count fails at the end of the bytes.
    for _ in 0..<count { append(try reader.read()) }
  }
}
