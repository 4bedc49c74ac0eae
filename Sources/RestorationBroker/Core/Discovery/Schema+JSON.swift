// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationWire

/// JSON Schema, draft 7. Shared shapes are references to components of an OpenRPC document.
extension Schema: JSONWritable {
  package func writeJSON(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

  /// Writes into an object that the caller has begun.
  func writeMembers(to writer: inout JSONWriter) {
    switch self {
    case .any: break
    case .keywords(let object):
      for member in object.members {
        writer.key(member.name)
        writer.value(member.value)
      }
    case .word(let words, isOpen: false): writer.member("enum", words)
    case .nullable(let schema): schema.writeNullableMembers(to: &writer)
    case .either(let schemas): writer.member("anyOf", schemas)
    case .shared(let name, _): writer.member("$ref", "#/components/schemas/\(name)")
    case .tagged(let tag, let variants): Schema.write(variants, by: tag, to: &writer)
    case .boolean, .integer, .text, .word, .array, .map, .object:
      writer.member("type", typeName)
      writeConstraints(to: &writer)
    }
  }

  private func writeNullableMembers(to writer: inout JSONWriter) {
    switch self {
    case .any, .nullable: writeMembers(to: &writer)
    case .either(let schemas): writer.member("anyOf", schemas + [Schema.null])
    case .word(let words, isOpen: false): writer.member("enum", words.map { Optional($0) } + [nil])
    case .keywords, .boolean, .integer, .text, .word, .array, .map, .object, .tagged, .shared:
      guard let typeName else {
        writer.member("anyOf", [self, Schema.null])
        return
      }
      writer.member("type", [typeName, "null"])
      writeConstraints(to: &writer)
    }
  }

  /// The type of its values, if that is a single one and suffices.
  private var typeName: String? {
    switch self {
    case .boolean: "boolean"
    case .integer: "integer"
    case .text, .word(_, isOpen: true): "string"
    case .array: "array"
    case .map, .object: "object"
    case .any, .keywords, .word, .tagged, .nullable, .either, .shared: nil
    }
  }

  private func writeConstraints(to writer: inout JSONWriter) {
    switch self {
    case .integer(let min, let max):
      writer.member("minimum", ifPresent: min)
      writer.member("maximum", ifPresent: max)
    case .text(let pattern, let length):
      writer.member("pattern", ifPresent: pattern)
      writer.member("minLength", ifPresent: length?.lowerBound)
      writer.member("maxLength", ifPresent: length?.upperBound)
    case .word(let words, _): writer.member("examples", words)
    case .array(let element, let count):
      writer.member("items", element)
      writer.member("minItems", ifPresent: count?.lowerBound)
      writer.member("maxItems", ifPresent: count.flatMap { $0.upperBound == .max ? nil : $0.upperBound })
    case .map(.any): break
    case .map(let value): writer.member("additionalProperties", value)
    case .object(let members): Schema.write(members, to: &writer)
    case .any, .keywords, .boolean, .tagged, .nullable, .either, .shared: break
    }
  }

  private static func write(_ members: [Member], to writer: inout JSONWriter) {
    guard !members.isEmpty else { return }
    writer.key("properties")
    writer.object { Member.writeEach(of: members, to: &$0) }
    let required = members.filter(\.isRequired).map(\.name)
    if !required.isEmpty { writer.member("required", required) }
  }

  /// Writes one schema for each word, and one for future words.
  private static func write(
    _ variants: [(word: String, members: [Member])],
    by tag: String,
    to writer: inout JSONWriter
  ) {
    var schemas = variants.map { variant in
      Schema.object([.required(tag, .constant(.string(variant.word)))] + variant.members)
    }
    let words = JSONValue.array(variants.map { .string($0.word) })
    schemas.append(.object([.required(tag, .keywords(["type": "string", "not": ["enum": words]]))]))
    writer.member("oneOf", schemas)
  }
}

extension Schema.Member {
  /// Writes the schemas by member name into an object that the caller has begun.
  static func writeEach(of members: [Schema.Member], to writer: inout JSONWriter) {
    for member in members {
      writer.key(member.name)
      writer.object { writer in
        member.schema.writeMembers(to: &writer)
        if !member.summary.isEmpty { writer.member("description", member.summary) }
      }
    }
  }
}

extension Schema {
  func collectShapes(into shapes: inout [String: Schema]) {
    switch self {
    case .any, .keywords, .boolean, .integer, .text, .word: break
    case .array(let inner, _), .map(let inner), .nullable(let inner): inner.collectShapes(into: &shapes)
    case .either(let inner): inner.forEach { $0.collectShapes(into: &shapes) }
    case .object(let members): members.forEach { $0.schema.collectShapes(into: &shapes) }
    case .tagged(_, let variants):
      variants.forEach { variant in variant.members.forEach { $0.schema.collectShapes(into: &shapes) } }
    case .shared(let name, let shape):
      guard shapes.updateValue(shape, forKey: name) == nil else { return }
      shape.collectShapes(into: &shapes)
    }
  }
}
