// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The syntax of a path component (R1).
package enum RestorationIdentifier {
  /// In UTF-8.
  package static let bytesMax = 255
  private static let componentBytesMax = component(String(repeating: "x", count: bytesMax), position: .max).utf8.count

  /// Whether `text` has 1–255 bytes without `/`, `#` and control characters.
  package static func isValid(_ text: String) -> Bool {
    (1...bytesMax).contains(text.utf8.count) && !text.hasControlCharacter
      && !text.utf8.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "#") }
  }

  /// `identifier`, or `identifier#position` if the container gave a position.
  package static func component(_ identifier: String, position: Int64?) -> String {
    position.map { "\(identifier)#\($0)" } ?? identifier
  }

  /// `nil` if the component is invalid.
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

/// The identifiers from the outermost ancestor to the object, e.g. `["Main", "Editor"]`.
///
/// Paths are compared byte by byte: Unicode's equivalent spellings of a word are different identifiers.
public struct IdentifierPath: Hashable, Sendable, ExpressibleByArrayLiteral, CustomStringConvertible {
  public var components: [String]

  /// Each component is an identifier or `identifier#position`.
  public init(_ components: [String]) { self.components = components }

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

  /// The bytes that the path limit counts: all components and one separator between two.
  package var bytes: Int { components.reduce(0) { $0 + $1.utf8.count } + max(0, components.count - 1) }

  /// Whether every component is valid.
  package var isPossible: Bool { components.allSatisfy { RestorationIdentifier.split($0) != nil } }

  package var jsonBytes: Int {
    components.reduce(1 + max(1, components.count)) { $0 + IdentifierPath.jsonBytes(of: $1) }
  }

  /// No identifier has control characters.
  package static func jsonBytes(of component: String) -> Int {
    // On plain memory, because a string's own view takes several steps for each byte.
    var component = component
    return component.withUTF8 { text in
      text.reduce(2) { $0 + ($1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 2 : 1) }
    }
  }

  package func writeJSON(to writer: inout JSONWriter) { components.writeJSON(to: &writer) }
}

/// Given by the broker at registration; positive, below 2^53, never reused.
public typealias ObjectHandle = Int64

public enum ObjectReference: Hashable, Sendable {
  case handle(ObjectHandle)
  case path(IdentifierPath)

  /// A placeholder in messages that are not filled in yet.
  package static let blank = ObjectReference.path([])

  /// `nil` if the value is neither a positive integer nor a non-empty array of components.
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
  /// Whether such an object can exist.
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
