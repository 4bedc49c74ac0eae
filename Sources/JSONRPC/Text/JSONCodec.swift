// SPDX-License-Identifier: Apache-2.0

internal import CJansson

/// Converts JSON text to trees and back by jansson: for configuration, administration and documents, not for payloads.
///
/// Three traps of jansson 2.14 are avoided: it swallows a raw NUL after a number, recurses without a limit in
/// everything but parsing, and prints 0.1 as 0.10000000000000001. So text is scanned before it is parsed, trees deeper
/// than `depthMax` are not passed to it, and it never prints a number.
package enum JSONCodec {
  package enum Style: Sendable {
    case compact
    /// Two columns a level, one member a line.
    case pretty
  }

  /// Nesting of text that is parsed, and of values that are formatted prettily.
  package static let depthMax = 64

  /// Reads one JSON value of any kind, up to 2 GiB long.
  ///
  /// Besides invalid JSON, refuses a name given twice in one object, a NUL in a name, integers beyond 64 bits and
  /// numbers beyond a double.
  package static func parse(_ bytes: some Collection<UInt8>) throws(JSONError) -> JSONValue {
    try parse(scanned: JSONSlice.scan(Array(bytes), vocabulary: .empty, limits: documentLimits))
  }

  static func parse(scanned slice: JSONSlice) throws(JSONError) -> JSONValue {
    guard slice.depth <= depthMax else {
      throw JSONError(message: "the text nests deeper than \(depthMax)", position: 0)
    }
    seed
    var error = json_error_t()
    let flags = size_t(JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL)
    let tree = slice.text.withUnsafeBytes { text in
      json_loadb(text.baseAddress?.assumingMemoryBound(to: CChar.self), text.count, flags, &error)
    }
    guard let tree else {
      throw JSONError(message: String(cString: cjansson_error_text(&error)), position: max(0, Int(error.position)))
    }
    defer { json_decref(tree) }
    return value(of: tree)
  }

  /// Writes a value. Members keep their order unless `sortKeys`; of two with one name the last is written. Reals are
  /// the shortest text that reads back the same, and `.text` is laid out like the rest with its numbers unchanged.
  package static func format(_ value: JSONValue, style: Style, sortKeys: Bool) -> [UInt8] {
    seed
    var formatter = JanssonFormatter()
    var flags = size_t(JSON_ENCODE_ANY)
    flags |= style == .pretty ? cjansson_indent(2) : size_t(JSON_COMPACT)
    if sortKeys { flags |= size_t(JSON_SORT_KEYS) }
    return formatter.format(value, flags: flags) ?? JSONText(value).bytes + []
  }

  /// Makes hashing unpredictable; jansson requires it once, before its first object.
  private static let seed: Void = json_object_seed(0)

  private static let documentLimits = FrameLimits(
    frameBytesMax: Int(Int32.max) - 1,
    depthMax: depthMax,
    valuesPerFrameMax: .max,
    keysPerObjectMax: Int(Int32.max)
  )

  private static func value(of tree: UnsafeMutablePointer<json_t>) -> JSONValue {
    switch cjansson_typeof(tree) {
    case JSON_OBJECT: .object(object(of: tree))
    case JSON_ARRAY: .array((0..<json_array_size(tree)).compactMap { json_array_get(tree, $0).map(value(of:)) })
    case JSON_STRING: .string(string(json_string_value(tree), length: json_string_length(tree)))
    case JSON_INTEGER: .integer(json_integer_value(tree))
    case JSON_REAL: .real(json_real_value(tree))
    case JSON_TRUE: .bool(true)
    case JSON_FALSE: .bool(false)
    default: .null
    }
  }

  private static func object(of tree: UnsafeMutablePointer<json_t>) -> JSONObject {
    var object = JSONObject()
    var iterator = json_object_iter(tree)
    while let member = iterator {
      if let value = json_object_iter_value(member) {
        object.append(
          string(json_object_iter_key(member), length: json_object_iter_key_len(member)),
          self.value(of: value)
        )
      }
      iterator = json_object_iter_next(tree, member)
    }
    return object
  }

  private static func string(_ bytes: UnsafePointer<CChar>?, length: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: bytes, count: length), as: UTF8.self)
  }
}

/// Lays a value out by jansson. In the tree, numbers are indices into a table and are inserted afterwards.
private struct JanssonFormatter {
  private var numbers: [ArraySlice<UInt8>] = []

  /// `nil` if jansson runs out of memory.
  mutating func format(_ value: JSONValue, flags: size_t) -> [UInt8]? {
    guard let tree = tree(of: value, depth: 0) else { return nil }
    defer { json_decref(tree) }
    let length = json_dumpb(tree, nil, 0, flags)
    guard length > 0 else { return nil }
    let layout = [CChar](unsafeUninitializedCapacity: length) { buffer, count in
      count = min(length, json_dumpb(tree, buffer.baseAddress, length, flags))
    }
    return fill(layout.map { UInt8(bitPattern: $0) })
  }

  private mutating func tree(of value: JSONValue, depth: Int) -> UnsafeMutablePointer<json_t>? {
    switch value {
    case .null: json_null()
    case .bool(let value): value ? json_true() : json_false()
    case .integer, .real: number(JSONText(value).bytes)
    case .string(let string): Self.string(string)
    case .array, .object:
      // jansson would recurse, so deeper values stay on one line.
      depth < JSONCodec.depthMax ? container(of: value, depth: depth) : number(JSONText(value).bytes)
    case .text(let text): self.text(text, depth: depth)
    }
  }

  private mutating func container(of value: JSONValue, depth: Int) -> UnsafeMutablePointer<json_t>? {
    if case .array(let elements) = value {
      let array = json_array()
      for element in elements {
        guard json_array_append_new(array, tree(of: element, depth: depth + 1)) == 0 else { return Self.drop(array) }
      }
      return array
    }
    let object = json_object()
    for member in value.object?.members ?? [] {
      let inner = tree(of: member.value, depth: depth + 1)
      guard Self.set(object, member.name, inner) else { return Self.drop(object) }
    }
    return object
  }

  /// Lays out text without reading its numbers.
  private mutating func text(_ text: JSONText, depth: Int) -> UnsafeMutablePointer<json_t>? {
    guard let slice = try? JSONSlice.scan(Array(text.bytes), vocabulary: .empty),
      slice.depth + depth <= JSONCodec.depthMax
    else { return number(text.bytes) }
    return tree(of: slice)
  }

  private mutating func tree(of slice: JSONSlice) -> UnsafeMutablePointer<json_t>? {
    switch slice.kind {
    case .null: return json_null()
    case .bool: return slice.bool() == true ? json_true() : json_false()
    case .integer, .real: return number(slice.text)
    case .string: return Self.string(slice.string() ?? "")
    case .array:
      let array = json_array()
      for element in slice.elements ?? [] {
        guard json_array_append_new(array, tree(of: element)) == 0 else { return Self.drop(array) }
      }
      return array
    case .object:
      let object = json_object()
      for member in slice.members ?? [] {
        guard Self.set(object, member.name, tree(of: member.value)) else { return Self.drop(object) }
      }
      return object
    }
  }

  private mutating func number(_ text: ArraySlice<UInt8>) -> UnsafeMutablePointer<json_t>? {
    numbers.append(text)
    return json_integer(json_int_t(numbers.count - 1))
  }

  /// Replaces the indices by their numbers.
  private func fill(_ layout: [UInt8]) -> [UInt8] {
    var walk = JSONWalk(bytes: layout, index: 0)
    var text: [UInt8] = []
    text.reserveCapacity(layout.count)
    while walk.index < layout.count {
      let start = walk.index
      switch layout[start] {
      case UInt8(ascii: "\""):
        _ = walk.skipString()
        text += layout[start..<walk.index]
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        _ = walk.skipValue()
        let index = layout[start..<walk.index].reduce(0) { $0 * 10 + Int($1 & 15) }
        text += numbers[index]
      default:
        text.append(layout[start])
        walk.index += 1
      }
    }
    return text
  }

  private static func string(_ string: String) -> UnsafeMutablePointer<json_t>? {
    if string.isEmpty { return json_stringn_nocheck("", 0) }
    var string = string
    return string.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { json_stringn_nocheck($0.baseAddress, $0.count) }
    }
  }

  private static func set(
    _ object: UnsafeMutablePointer<json_t>?,
    _ name: String,
    _ value: UnsafeMutablePointer<json_t>?
  ) -> Bool {
    if name.isEmpty { return json_object_setn_new_nocheck(object, "", 0, value) == 0 }
    var name = name
    return name.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { json_object_setn_new_nocheck(object, $0.baseAddress, $0.count, value) }
    } == 0
  }

  private static func drop(_ tree: UnsafeMutablePointer<json_t>?) -> UnsafeMutablePointer<json_t>? {
    json_decref(tree)
    return nil
  }
}

extension ScanVocabulary {
  static let empty = ScanVocabulary(referenceKey: "", literalKey: "")
}
