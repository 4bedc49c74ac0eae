// SPDX-License-Identifier: Apache-2.0

/// Compares a message with a vector's expectation, and keeps the values that the vector binds
/// (`Protocol/vectors/README.md`).
struct VectorMatch {
  private(set) var bound: [String: VectorValue] = [:]

  private static let directives: Set<String> = [
    "$any", "$bind", "$use", "$exact", "$absent", "$match", "$unordered", "$not", "$repeat",
  ]

  /// Name and argument of a value that is a directive.
  static func directive(_ value: VectorValue) -> (name: String, argument: VectorValue)? {
    guard let members = value.members, members.count == 1, let member = members.first else { return nil }
    return directives.contains(member.name) ? (member.name, member.value) : nil
  }

  /// The message to send, with bound values and repetitions in place.
  func filled(_ value: VectorValue) throws -> VectorValue {
    if let (name, argument) = Self.directive(value) {
      if name == "$use" {
        guard let bound = bound[argument.string ?? ""] else {
          throw TestFailure("nothing is bound to \(argument.text)")
        }
        return bound
      }
      if name == "$repeat" {
        guard let parts = argument.array, parts.count == 2, let unit = parts[0].string,
          case .number(let text) = parts[1],
          let count = Int(text)
        else { throw TestFailure("$repeat has a string and a number, not \(argument.text)") }
        return .string(String(repeating: unit, count: count))
      }
    }
    switch value {
    case .array(let elements): return .array(try elements.map(filled))
    case .object(let members): return .object(try members.map { ($0.name, try filled($0.value)) })
    default: return value
    }
  }

  /// Throws with the place of the first difference.
  mutating func match(_ expected: VectorValue, _ actual: VectorValue, exact: Bool = false, at place: String = "$")
    throws
  {
    guard let (name, argument) = Self.directive(expected) else {
      return try matchValue(expected, actual, exact, place)
    }
    switch name {
    case "$any": return
    case "$bind": bound[argument.string ?? ""] = actual
    case "$exact": try match(argument, actual, exact: true, at: place)
    case "$not":
      var trial = self
      guard (try? trial.match(argument, actual, exact: exact, at: place)) == nil else {
        throw TestFailure("\(place): is \(actual.shown), which it must not be")
      }
    case "$match":
      let pattern = argument.string ?? ""
      guard let text = actual.string, try Regex(pattern).wholeMatch(in: text) != nil else {
        throw TestFailure("\(place): \(actual.shown) does not match \(pattern)")
      }
    case "$unordered": try matchUnordered(argument, actual, exact, place)
    default: try matchValue(try filled(expected), actual, exact, place)
    }
  }

  private mutating func matchValue(
    _ expected: VectorValue,
    _ actual: VectorValue,
    _ exact: Bool,
    _ place: String
  ) throws {
    if let members = expected.members { return try matchObject(members, actual, exact, place) }
    if let elements = expected.array {
      guard let found = actual.array, found.count == elements.count else {
        throw TestFailure("\(place): \(actual.shown) is not an array of \(elements.count)")
      }
      for (index, pair) in zip(elements, found).enumerated() {
        try match(pair.0, pair.1, exact: exact, at: "\(place)[\(index)]")
      }
    } else if !expected.isSameScalar(as: actual) {
      throw TestFailure("\(place): is \(actual.shown), expected \(expected.shown)")
    }
  }

  private mutating func matchObject(
    _ expected: [(name: String, value: VectorValue)],
    _ actual: VectorValue,
    _ exact: Bool,
    _ place: String
  ) throws {
    guard let members = actual.members else { throw TestFailure("\(place): \(actual.shown) is not an object") }
    for (name, value) in expected {
      let found = members.first { $0.name == name }?.value
      if Self.directive(value)?.name == "$absent" {
        if let found { throw TestFailure("\(place).\(name): is \(found.shown), expected no such member") }
      } else if let found {
        try match(value, found, exact: exact, at: "\(place).\(name)")
      } else {
        throw TestFailure("\(place).\(name): is missing in \(actual.shown)")
      }
    }
    if exact, let surplus = members.first(where: { member in !expected.contains { $0.name == member.name } }) {
      throw TestFailure("\(place): has a member \(surplus.name), which is not expected")
    }
  }

  private mutating func matchUnordered(
    _ expected: VectorValue,
    _ actual: VectorValue,
    _ exact: Bool,
    _ place: String
  ) throws {
    let wanted = expected.array ?? []
    guard var left = actual.array, left.count == wanted.count else {
      throw TestFailure("\(place): \(actual.shown) is not an array of \(wanted.count)")
    }
    for want in wanted {
      var found: Int?
      for (index, have) in left.enumerated() where found == nil {
        var trial = self
        guard (try? trial.match(want, have, exact: exact, at: place)) != nil else { continue }
        self = trial
        found = index
      }
      guard let found else { throw TestFailure("\(place): no element is \(want.shown) in \(actual.shown)") }
      left.remove(at: found)
    }
  }
}
