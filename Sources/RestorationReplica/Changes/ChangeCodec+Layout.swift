// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

// The fields of each part of a batch: one function writes them, one reads them.

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

extension NodeRecord: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(node)
    writer.write(parent)
    writer.write(component)
    writer.write(kind)
    writer.write(classes)
    writer.write(restorationClass)
    writer.write(storyboard)
    writer.write(keepsForever)
    writer.write(isConfidential)
    writer.write(isRemoved)
    writer.write(successor)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(
      node: try reader.read(),
      parent: try reader.read(),
      component: try reader.read(),
      kind: try reader.read(),
      classes: try reader.read(),
      restorationClass: try reader.read(),
      storyboard: try reader.read(),
      keepsForever: try reader.read(),
      isConfidential: try reader.read(),
      isRemoved: try reader.read(),
      successor: try reader.read()
    )
  }
}

extension StateRecord: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(node)
    writer.write(context)
    writer.write(session)
    writer.write(revision)
    writer.write(isEarly)
    writer.write(written)
    writer.write(text)
    writer.write(references)
    writer.write(elements)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(
      node: try reader.read(),
      context: try reader.read(),
      session: try reader.read(),
      revision: try reader.read(),
      isEarly: try reader.read(),
      written: try reader.read(),
      text: try reader.read(),
      references: try reader.read(),
      elements: try reader.read()
    )
  }
}

extension StateRow: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(node)
    writer.write(sequence)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(node: try reader.read(), sequence: try reader.read())
  }
}

extension GenerationRecord: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(generation)
    writer.write(kind)
    writer.write(committed)
    writer.write(objects)
    writer.write(bytes)
    writer.write(omitted)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(
      generation: try reader.read(),
      kind: try reader.read(),
      committed: try reader.read(),
      objects: try reader.read(),
      bytes: try reader.read(),
      omitted: try reader.read()
    )
  }
}

extension SessionRecord: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(session)
    writer.write(token)
    writer.write(facts)
    writer.write(ending)
    writer.write(ended)
    writer.write(restorationsAtEnd)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(
      session: try reader.read(),
      token: try reader.read(),
      facts: try reader.read(),
      ending: try reader.read(),
      ended: try reader.read(),
      restorationsAtEnd: try reader.read()
    )
  }
}

extension ClaimRecord: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(node)
    writer.write(session)
    writer.write(handle)
    writer.write(released)
    writer.write(restorationsAtRelease)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(
      node: try reader.read(),
      session: try reader.read(),
      handle: try reader.read(),
      released: try reader.read(),
      restorationsAtRelease: try reader.read()
    )
  }
}

extension RunRecord: ChangeField {
  func write(to writer: inout ChangeWriter) {
    writer.write(run)
    writer.write(restorations)
    writer.write(facts)
  }

  init(from reader: inout ChangeReader) throws(ChangeBatchError) {
    self.init(run: try reader.read(), restorations: try reader.read(), facts: try reader.read())
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
