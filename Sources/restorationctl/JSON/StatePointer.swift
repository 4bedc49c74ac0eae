// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// A place in a state: a JSON pointer (RFC 6901). An edit leaves the rest of the text unchanged.
struct StatePointer: CustomStringConvertible {
  let description: String
  private let tokens: [String]

  static let whole = StatePointer(description: "", tokens: [])

  var isWhole: Bool { tokens.isEmpty }

  private init(description: String, tokens: [String]) { (self.description, self.tokens) = (description, tokens) }

  static func read(_ text: String) throws -> StatePointer {
    guard text.isEmpty || text.hasPrefix("/") else { throw invalid(text) }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    return StatePointer(description: text, tokens: try parts.map { try unescaped($0, in: text) })
  }

  private static func unescaped(_ part: Substring, in text: String) throws -> String {
    let pieces = part.split(separator: "~", omittingEmptySubsequences: false)
    return try pieces.dropFirst().reduce(into: String(pieces.first ?? "")) { name, piece in
      switch piece.first {
      case "0": name += "~"
      case "1": name += "/"
      default: throw invalid(text)
      }
      name += piece.dropFirst()
    }
  }

  /// For a command that needs one value, an empty pointer is more likely a mistake than the whole state.
  static var superfluous: ValidationError { ValidationError("the pointer '' means the state: leave it out") }

  private static func invalid(_ text: String) -> ValidationError {
    ValidationError(
      "invalid pointer '\(text)': a pointer is keys or indices, each after a slash: /scroll, /tabs/0; ~1 is / in a key"
    )
  }

  /// The pointers to the parts of the value at this place; behind one that has parts itself, a slash.
  func parts(in state: JSONSlice) -> [String] {
    (value(in: state)?.children ?? []).enumerated().map { index, child in
      let token = child.name.map { JSONPointer.escaped($0) } ?? String(index)
      return "\(description)/\(token)" + (child.value.children.isEmpty ? "" : "/")
    }
  }

  /// A state with everything around this place.
  var surroundings: JSONText {
    let last: JSONValue = tokens.last == "-" ? [] : [:]
    return JSONText(tokens.dropLast().reversed().reduce(last) { inner, token in .object(JSONObject([(token, inner)])) })
  }

  /// `nil` if the place does not exist.
  func value(in state: JSONSlice) -> JSONSlice? {
    tokens.reduce(state) { slice, token in
      slice.flatMap { slice in slice.place(of: token).map { slice.children[$0].value } }
    }
  }

  /// The state with another value at this place, or without the place if `value` is `nil`; `nil` if the place does not
  /// exist. The last key may be new, and `-` appends to an array.
  func edit(_ state: JSONSlice, _ value: JSONText?) -> JSONText? {
    var writer = JSONWriter()
    return Self.write(state, tokens[...], value, to: &writer) ? JSONText(validated: writer.bytes) : nil
  }

  private static func write(
    _ slice: JSONSlice,
    _ tokens: ArraySlice<String>,
    _ value: JSONText?,
    to writer: inout JSONWriter
  ) -> Bool {
    guard let token = tokens.first else {
      if let value { writer.text(value) }
      return value != nil
    }
    let isLast = tokens.count == 1
    let place = slice.place(of: token)
    let isNew =
      place == nil && isLast && value != nil && (slice.kind == .object || slice.kind == .array && token == "-")
    guard place != nil || isNew else { return false }
    if slice.kind == .object { writer.beginObject() } else { writer.beginArray() }
    for (index, child) in slice.children.enumerated() where index != place || !isLast || value != nil {
      if let name = child.name { writer.key(name) }
      if index != place {
        writer.text(child.value.compactText)
      } else if !write(child.value, tokens.dropFirst(), value, to: &writer) {
        return false
      }
    }
    if isNew, let value {
      if slice.kind == .object { writer.key(token) }
      writer.text(value)
    }
    if slice.kind == .object { writer.endObject() } else { writer.endArray() }
    return true
  }

  /// The failure for a missing place: names the part that exists and, unless keys are secret, its members.
  func notFound(in state: JSONSlice, of path: IdentifierPath, namesKeys: Bool) -> Failure {
    var known = state
    var count = 0
    while count < tokens.count, let place = known.place(of: tokens[count]) {
      known = known.children[place].value
      count += 1
    }
    let parent = count == 0 ? "The state" : tokens[..<count].map { "/\(JSONPointer.escaped($0))" }.joined()
    var failure = Failure(ExitStatus.notThere, kind: "noValue", "the state of \(path) has no value at \(description)")
    failure.path = path
    switch known.kind {
    case .array: failure.hint = "\(parent) is an array with \(Quantity.count(known.children.count, "element"))."
    case .object where namesKeys:
      let names = known.children.compactMap(\.name)
      let near = tokens.indices.contains(count) ? Suggestion.nearest(to: tokens[count], in: names) : nil
      failure.hint = "\(parent) has \(Suggestion.list(names))" + (near.map { "; did you mean \($0)?" } ?? "")
    case .object: break
    case .string, .integer, .real, .bool, .null: failure.hint = "\(parent) is neither an object nor an array."
    }
    return failure
  }
}

extension JSONSlice {
  /// Members or elements; empty for a scalar.
  fileprivate var children: [(name: String?, value: JSONSlice)] {
    members?.map { ($0.name, $0.value) } ?? elements?.map { (nil, $0) } ?? []
  }

  /// The index of the child that a token names; `nil` if there is none.
  fileprivate func place(of token: String) -> Int? {
    if kind == .object { return children.firstIndex { $0.name?.utf8.elementsEqual(token.utf8) == true } }
    // An index has no sign and no leading zeros.
    guard let index = Int(token), String(index) == token, children.indices.contains(index) else { return nil }
    return index
  }
}
