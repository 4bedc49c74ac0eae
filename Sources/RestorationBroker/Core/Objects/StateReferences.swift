// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// References in the text of a state: by archive id as they are stored, with a table of where they are, so that no move
/// ever rewrites it (R6, R14); by path as they are given out (R14).
extension Application {
  /// The text as stored, if all its references lead somewhere, and it can be given out again.
  ///
  /// - Parameter elements: bytes of the elements that come with it.
  func resolveReferences(
    of state: EncodedState,
    besides elements: Int,
    path: @autoclosure () -> IdentifierPath?
  ) throws(ErrorObject) -> (text: ArraySlice<UInt8>, table: String?) {
    let text = state.text.bytes
    guard !state.references.isEmpty else { return (text, nil) }
    let references = try state.references.map { reference throws(ErrorObject) -> (range: Range<Int>, target: NodeID?) in
      if reference.target.isNull { return (reference.objectRange, nil) }
      let target = ObjectReference(reference.target)
      let node = target.flatMap { self.node($0) }
      guard node != nil || target != nil && reference.object["optional"]?.bool() == true else {
        throw .invalidReference(reference.target)
      }
      // What has no identifier cannot be found again.
      return (reference.objectRange, node?.record.component == nil ? nil : node?.id)
    }
    let (stored, table) = ArchiveReferences.store(references, in: text)
    try turn.limits.requireReadable(stored.count + elements, table, references.count, in: tree, path: path())
    return (stored, table)
  }
}

extension NodeTree {
  /// The text of a state as given out: references name today's paths, and the handle if the target is live.
  ///
  /// Inline: called, it would get a copy of the tree, and nearly all states refer to nothing.
  @inline(__always)
  func splice(_ record: StateRecord) -> JSONText {
    guard record.references != nil else { return JSONText(validated: record.text) }
    return record.spliced { target, writer in
      let node = node(target)
      ArchiveReferences.write(node.flatMap { path(of: $0) }, node?.claim?.handle, to: &writer)
    }
  }
}

/// References as documents have them, by path or to nothing, and as they are stored.
enum ArchiveReferences {
  /// The text with these references, in its order, as it is stored, and their table; what stands beside a reference is
  /// dropped. One without target stays a reference to nothing and is not in the table.
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

  /// As clients get it.
  fileprivate static func write(_ path: IdentifierPath?, _ handle: ObjectHandle?, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("$restorable")
    if let path { path.writeJSON(to: &writer) } else { writer.null() }
    writer.key("object")
    if let handle { writer.integer(handle) } else { writer.null() }
    writer.endObject()
  }

  /// As documents have it.
  static func write(_ path: IdentifierPath?, to writer: inout JSONWriter) {
    if let path {
      writer.object { $0.member("$restorable", path) }
    } else {
      writer.text(nothing)
    }
  }

  /// A reference to nothing, as it is stored and given out.
  static let nothing = JSONText(validated: Array("{\"$restorable\":null,\"object\":null}".utf8))

  /// The numbers of a table, flat: offset, length and node of each reference.
  static func numbers(inTable table: String) -> [Int64] {
    var numbers: [Int64] = []
    visitNumbers(inTable: table) { numbers.append($0) }
    return numbers
  }

  /// The nodes that the references of a table lead to; empty without a table.
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

  /// A save may read a million of them.
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
        // One that is too long is none of ours; it stays too large for any text and any node, and sums do not overflow.
        if number ?? 0 < 1 << 56 { number = 10 * (number ?? 0) + Int64(digit) }
      }
    }
  }
}

extension StateRecord {
  /// The text as given out, with references as `write` has them; it is given the node that one names.
  func spliced(_ write: (NodeID, inout JSONWriter) -> Void) -> JSONText {
    guard let table = references else { return JSONText(validated: text) }
    let numbers = ArchiveReferences.numbers(inTable: table)
    var out: [UInt8] = []
    var copied = text.startIndex
    for index in stride(from: 0, to: numbers.count - 2, by: 3) {
      let begin = text.startIndex + Int(numbers[index])
      let end = begin + Int(numbers[index + 1])
      // The table is of our own making and covered by the row's checksum; a bad one would trap below.
      guard copied <= begin, begin <= end, end <= text.endIndex else { break }
      out.append(contentsOf: text[copied..<begin])
      JSONWriter.append(to: &out) { write(numbers[index + 2], &$0) }
      copied = end
    }
    out.append(contentsOf: text[copied...])
    return JSONText(validated: out)
  }

  /// The text as a generation has it: references name the paths of that time, and no handle.
  func spliced(to targets: [NodeID: IdentifierPath]) -> JSONText {
    spliced { target, writer in ArchiveReferences.write(targets[target], nil, to: &writer) }
  }

  /// The nodes its references lead to.
  var referencedNodes: [NodeID] { ArchiveReferences.targets(ofTable: references) }
}

extension StateSummary {
  /// The nodes its references lead to.
  var referencedNodes: [NodeID] { ArchiveReferences.targets(ofTable: references) }
}

extension ErrorObject {
  fileprivate static func invalidReference(_ target: JSONSlice) -> Self {
    .restoration(
      .invalidReference,
      "\(target) is not an object of the application",
      hint: "Register the target first, write \"optional\": true beside it, or write {\"$literal\": …} if it is none.",
      details: ["pointer": "/state", "reference": .text(target.compactText)]
    )
  }
}
