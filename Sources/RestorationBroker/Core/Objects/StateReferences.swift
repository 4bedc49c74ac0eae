// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// References in states. They are stored by node id with a table of their places, so that no move rewrites a text (R6);
/// they are given out by path (R14).
extension Application {
  /// The text as stored, with its table. Throws if a reference leads nowhere, or the text would be too long to be read
  /// (R14).
  ///
  /// - Parameter elements: bytes of the elements that belong to the state.
  func resolveReferences(
    of state: EncodedState,
    besides elements: Int,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) -> (text: ArraySlice<UInt8>, table: String?) {
    let text = state.text.bytes
    guard !state.references.isEmpty else { return (text, nil) }
    let references = try state.references.map { reference throws(ErrorObject) -> (range: Range<Int>, target: NodeID?) in
      let optional = reference.object["optional"]
      guard optional.map({ $0.isNull || $0.bool() != nil }) ?? true else {
        throw .invalidReference(reference.target, "stands beside an optional that is no boolean", path: path())
      }
      if reference.target.isNull { return (reference.objectRange, nil) }
      let target = ObjectReference(reference.target)
      let node = target.flatMap { self.node($0) }
      guard node != nil || target != nil && optional?.bool() == true else {
        throw .invalidReference(reference.target, "is not an object of the application", path: path())
      }
      // An object without an identifier cannot be found again.
      return (reference.objectRange, node?.record.component == nil ? nil : node?.id)
    }
    let (stored, table) = ArchiveReferences.store(references, in: text)
    try turn.limits.requireReadable(stored.count + elements, table, references.count, in: tree, path: path())
    return (stored, table)
  }
}

extension NodeTree {
  /// The text as given out: references name present paths, and the handles of live targets.
  ///
  /// Inline, because a call would copy the tree, and few states have references.
  @inline(__always)
  func splice(_ record: StateRecord) -> JSONText {
    guard record.references != nil else { return JSONText(validated: record.text) }
    return record.spliced { target, writer in
      let node = node(target)
      ArchiveReferences.write(node.flatMap { path(of: $0) }, node?.claim?.handle, to: &writer)
    }
  }
}

/// References as clients, documents and the archive have them.
enum ArchiveReferences {
  /// The text with its references as stored, in order, and their table. Anything beside a reference is dropped. A
  /// reference without target stays in the text, but not in the table.
  static func store(
    _ references: [(range: Range<Int>, target: NodeID?)],
    in text: ArraySlice<UInt8>
  ) -> (text: ArraySlice<UInt8>, table: String) {
    var stored: [UInt8] = []
    stored.reserveCapacity(text.count)
    var table = JSONWriter()
    table.beginArray()
    var copied = text.startIndex
    for (range, target) in references {
      stored += text[copied..<(text.startIndex + range.lowerBound)]
      copied = text.startIndex + range.upperBound
      guard let target else {
        stored += nothing.bytes
        continue
      }
      let offset = stored.count
      stored += "{\"$restorable\":\(target)}".utf8
      table.beginArray()
      table.integer(offset)
      table.integer(stored.count - offset)
      table.integer(target)
      table.endArray()
    }
    stored += text[copied...]
    table.endArray()
    return (stored[...], String(decoding: table.bytes, as: UTF8.self))
  }

  fileprivate static func write(_ path: IdentifierPath?, _ handle: ObjectHandle?, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("$restorable")
    if let path { path.writeJSON(to: &writer) } else { writer.null() }
    writer.key("object")
    if let handle { writer.integer(handle) } else { writer.null() }
    writer.endObject()
  }

  /// For documents.
  static func write(_ path: IdentifierPath?, to writer: inout JSONWriter) {
    if let path {
      writer.object { $0.member("$restorable", path) }
    } else {
      writer.text(nothing)
    }
  }

  static let nothing = JSONText(validated: Array("{\"$restorable\":null,\"object\":null}".utf8))

  /// The numbers of a table: offset, length and node of each reference in turn.
  static func numbers(inTable table: String) -> [Int64] {
    var numbers: [Int64] = []
    visitNumbers(inTable: table) { numbers.append($0) }
    return numbers
  }

  static func targets(ofTable table: String?) -> [NodeID] {
    guard let table else { return [] }
    var targets: [NodeID] = []
    var place = 0
    visitNumbers(inTable: table) { number in
      place += 1
      if place.isMultiple(of: 3) { targets.append(number) }
    }
    return targets
  }

  /// Without allocation: a save may visit a million numbers.
  private static func visitNumbers(inTable table: String, _ visit: (Int64) -> Void) {
    var table = table
    table.withUTF8 { text in
      var number: Int64?
      for byte in text {
        guard case let digit = byte &- UInt8(ascii: "0"), digit < 10 else {
          if let complete = number { visit(complete) }
          number = nil
          continue
        }
        // A foreign table may have longer numbers. The cut value exceeds any text and any node, and sums cannot
        // overflow.
        if number ?? 0 < 1 << 56 { number = 10 * (number ?? 0) + Int64(digit) }
      }
    }
  }
}

extension StateRecord {
  /// The text with references as `write` makes them from the nodes they name.
  func spliced(_ write: (NodeID, inout JSONWriter) -> Void) -> JSONText {
    guard let table = references else { return JSONText(validated: text) }
    let numbers = ArchiveReferences.numbers(inTable: table)
    var out: [UInt8] = []
    var copied = text.startIndex
    for index in stride(from: 0, to: numbers.count - 2, by: 3) {
      let begin = text.startIndex + Int(numbers[index])
      let end = begin + Int(numbers[index + 1])
      // The broker made the table, and the row's checksum covers it. A bad one would trap below.
      guard copied <= begin, begin <= end, end <= text.endIndex else { break }
      out.append(contentsOf: text[copied..<begin])
      JSONWriter.append(to: &out) { write(numbers[index + 2], &$0) }
      copied = end
    }
    out.append(contentsOf: text[copied...])
    return JSONText(validated: out)
  }

  /// The text as in a generation: references name the paths of that time, and no handles.
  func spliced(to targets: [NodeID: IdentifierPath]) -> JSONText {
    spliced { target, writer in ArchiveReferences.write(targets[target], nil, to: &writer) }
  }

  var referencedNodes: [NodeID] { ArchiveReferences.targets(ofTable: references) }
}

extension StateSummary {
  var referencedNodes: [NodeID] { ArchiveReferences.targets(ofTable: references) }
}

extension ErrorObject {
  fileprivate static func invalidReference(_ target: JSONSlice, _ fault: String, path: IdentifierPath?) -> Self {
    .restoration(
      .invalidReference,
      "\(target) \(fault)",
      hint: "Register the target first, write \"optional\": true beside it, or write {\"$literal\": …} if it is none.",
      path: path,
      details: ["pointer": "/state", "reference": .text(target.compactText)]
    )
  }
}
