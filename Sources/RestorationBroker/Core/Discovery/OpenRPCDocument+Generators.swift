// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

extension OpenRPCDocument {
  /// The clients' methods, for programs that generate clients. Each object has a name, all other schemas are inline,
  /// and optional members are null by default. Bounds are omitted.
  package init(forGeneratorsOf methods: [any RestorationMethod.Type]) {
    var shapes = NamedShapes()
    let described = methods.map { shapes.describe(DescribedMethod($0)) }
    let document: JSONValue = [
      "openrpc": "1.3.2",
      "info": ["title": "restoration", "version": .string(String(ProtocolVersion.current))],
      "methods": .array(described),
      "components": ["schemas": .object(JSONObject(shapes.sorted))],
    ]
    self.init(text: JSONText(document))
  }
}

private struct NamedShapes {
  private var shapes: [String: JSONValue] = [:]

  var sorted: [(name: String, value: JSONValue)] { shapes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }

  mutating func describe(_ method: DescribedMethod) -> JSONValue {
    let name = method.name.split(separator: ".").map { Self.capitalized(String($0)) }.joined()
    let parameters = (method.parameters + (method.isScoped ? CallScope.members : [])).map { parameter -> JSONValue in
      let schema = parameter.isRequired ? parameter.schema : .nullable(parameter.schema)
      return [
        "name": .string(parameter.name), "description": .string(parameter.summary),
        "required": .bool(parameter.isRequired), "schema": form(schema, name + Self.capitalized(parameter.name)),
      ]
    }
    return [
      "name": .string(method.name), "summary": .string(method.summary), "params": .array(parameters),
      "paramStructure": "by-name",
      "result": ["name": "result", "schema": form(method.result ?? .emptyObject, "\(name)Result")],
    ]
  }

  /// - Parameter name: for an object without a name of its own.
  private mutating func form(_ schema: Schema, _ name: String) -> JSONValue {
    switch schema {
    case .any: return [:]
    case .keywords(let object): return .object(object)
    case .boolean: return ["type": "boolean"]
    case .integer: return ["type": "integer"]
    case .text, .word(_, isOpen: true): return ["type": "string"]
    case .word(let words, isOpen: false): return ["type": "string", "enum": .array(words.map { .string($0) })]
    case .array(let element, _): return ["type": "array", "items": form(element, name)]
    case .map(.any): return ["type": "object"]
    case .map(let value): return ["type": "object", "additionalProperties": form(value, name)]
    // Generators cannot use an object without members, and some methods may return this one instead.
    case .object(let members) where members.isEmpty: return form(.done, name)
    case .object(let members): return object(members, name)
    case .tagged(let tag, let variants):
      let forms = variants.map { variant -> JSONValue in
        let members = [Schema.Member.required(tag, .constant(.string(variant.word)))] + variant.members
        return object(members, name + Self.capitalized(variant.word))
      }
      return ["anyOf": .array(forms + [object([.required(tag, .string)], "Other\(name)")])]
    case .nullable(.nullable(let value)): return form(.nullable(value), name)
    case .nullable(let value): return ["anyOf": [form(value, name), ["type": "null"]]]
    case .either(let values):
      if case .object(let members)? = values.first, members.isEmpty { return form(.done, name) }
      return ["anyOf": .array(values.enumerated().map { form($1, $0 == 0 ? name : "\(name)\($0 + 1)") })]
    case .shared(let own, let value): return form(value, own)
    }
  }

  private mutating func object(_ members: [Schema.Member], _ name: String) -> JSONValue {
    let reference: JSONValue = ["$ref": .string("#/components/schemas/\(name)")]
    guard shapes[name] == nil else { return reference }
    // A placeholder, because the object may contain itself.
    shapes[name] = .null
    let properties = members.map { member -> (name: String, value: JSONValue) in
      var property: JSONObject = [:]
      let schema = member.isRequired ? member.schema : .nullable(member.schema)
      if case .object(let form) = form(schema, name + Self.capitalized(member.name)) { property = form }
      if !member.isRequired { property["default"] = .null }
      if !member.summary.isEmpty { property["description"] = .string(member.summary) }
      return (member.name, .object(property))
    }
    shapes[name] = [
      "title": .string(name), "type": "object", "properties": .object(JSONObject(properties)),
      "required": .array(members.filter(\.isRequired).map { .string($0.name) }),
    ]
    return reference
  }

  private static func capitalized(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
}

extension Schema {
  /// The result of a method that only reports success.
  fileprivate static let done = Schema.shared(
    "Done",
    .object([.optional("discarded", .true, "The user quit the application meanwhile; nothing is stored.")])
  )
}
