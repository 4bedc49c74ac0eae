// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A path component's syntax (R1).
package enum RestorationIdentifier {
  /// Bytes of UTF-8 an identifier may have.
  package static let bytesMax = 255
  private static let componentBytesMax = component(String(repeating: "x", count: bytesMax), position: .max).utf8.count

  /// Whether `text` may be a restoration identifier: 1–255 bytes without `/`, `#` and control characters.
  package static func isValid(_ text: String) -> Bool {
    (1...bytesMax).contains(text.utf8.count) && !text.hasControlCharacter
      && !text.utf8.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "#") }
  }

  /// `identifier`, or `identifier#position` if the container gave a position.
  package static func component(_ identifier: String, position: Int64?) -> String {
    position.map { "\(identifier)#\($0)" } ?? identifier
  }

  /// Splits a component into identifier and position; `nil` if it is neither form.
  package static func split(_ component: String) -> (identifier: String, position: Int64?)? {
    guard component.utf8.count <= componentBytesMax else { return nil }
    guard let mark = component.utf8.firstIndex(of: UInt8(ascii: "#")) else {
      return isValid(component) ? (component, nil) : nil
    }
    let identifier = String(component[..<mark])
    let digits = component[component.utf8.index(after: mark)...]
    guard isValid(identifier), let position = Int64(digits), position >= 0, String(position) == digits else {
      return nil
    }
    return (identifier, position)
  }
}

/// Components from the outermost ancestor to the object, e.g. `["Main", "Editor"]`.
///
/// Paths are equal when their bytes are: Unicode's equivalent spellings of a word are different identifiers.
public struct IdentifierPath: Hashable, Sendable, ExpressibleByArrayLiteral, CustomStringConvertible {
  public var components: [String]

  /// Components from the outermost ancestor to the object; each is an identifier or `identifier#position`.
  public init(_ components: [String]) { self.components = components }

  /// `["Main", "Editor"]`
  public init(arrayLiteral elements: String...) { self.components = elements }

  /// For people: components joined by `/`, which no identifier contains.
  public var description: String { components.joined(separator: "/") }

  package var json: JSONValue {
    .array(components.map { .string($0) })
  }

  public static func == (left: IdentifierPath, right: IdentifierPath) -> Bool {
    left.components.count == right.components.count
      && zip(left.components, right.components).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(components.count)
    for component in components {
      hasher.combine(component.utf8.count)
      for byte in component.utf8 { hasher.combine(byte) }
    }
  }

  /// Bytes the path limit counts: all components and one separator between two.
  package var bytes: Int { components.reduce(0) { $0 + $1.utf8.count } + max(0, components.count - 1) }

  /// Whether an object can have it: every component is an identifier, or one with a position.
  package var isPossible: Bool { components.allSatisfy { RestorationIdentifier.split($0) != nil } }

  /// Bytes of the path as JSON text.
  package var jsonBytes: Int {
    components.reduce(1 + max(1, components.count)) { $0 + IdentifierPath.jsonBytes(of: $1) }
  }

  /// Bytes of a component as JSON text; no identifier has control characters.
  package static func jsonBytes(of component: String) -> Int {
    // On plain memory, because a string's own view takes several steps for each byte.
    var component = component
    return component.withUTF8 { text in
      text.reduce(2) { $0 + ($1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 2 : 1) }
    }
  }

  package func writeJSON(to writer: inout JSONWriter) { components.writeJSON(to: &writer) }
}

/// Given by the broker at registration; positive, below 2^53, never given out twice.
public typealias ObjectHandle = Int64

/// Names an object in a call: by its handle or by its path.
public enum ObjectReference: Hashable, Sendable {
  case handle(ObjectHandle)
  case path(IdentifierPath)

  /// Of a message that is not filled in yet.
  package static let blank = ObjectReference.path([])

  /// Reads a reference from JSON; `nil` if it is neither a positive integer nor a non-empty array of components.
  package init?(_ slice: JSONSlice) {
    if let handle = slice.integer() {
      guard handle > 0 else { return nil }
      self = .handle(handle)
      return
    }
    guard let components = slice.strings, !components.isEmpty else { return nil }
    self = .path(IdentifierPath(components))
  }

  package func writeJSON(to writer: inout JSONWriter) {
    switch self {
    case .handle(let handle): writer.integer(handle)
    case .path(let path): path.writeJSON(to: &writer)
    }
  }
}

extension ObjectReference: ExpressibleByArrayLiteral, ExpressibleByIntegerLiteral {
  /// A path: `["Main", "Editor"]`.
  public init(arrayLiteral components: String...) { self = .path(IdentifierPath(components)) }

  public init(integerLiteral handle: ObjectHandle) { self = .handle(handle) }
}

extension ObjectReference {
  /// Whether there can be such an object.
  package var isPossible: Bool { if case .path(let path) = self { path.isPossible } else { true } }
}

extension ObjectReference: CustomStringConvertible {
  /// For people: the handle, or the components joined by `/`.
  public var description: String {
    switch self {
    case .handle(let handle): String(handle)
    case .path(let path): path.description
    }
  }
}
