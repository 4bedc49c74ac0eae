// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Reads the parameters of one call, by name or by position, and says exactly which member is wrong.
///
/// `application` and `session` are taken by name only.
package struct ParameterReader {
  private let parameters: Parameters
  private let members: [Schema.Member]

  /// - Parameter members: the method's parameters in their order, for calls by position.
  package init(_ parameters: Parameters, of members: [Schema.Member] = []) {
    self.parameters = parameters
    self.members = members
  }

  /// The member as sent, also when it is null; nil where it is absent.
  package func slice(_ name: String) -> JSONSlice? {
    switch parameters {
    case .none: nil
    case .named(let object): object[name]
    case .positional(let values):
      position(of: name).flatMap { $0 < values.count ? values[$0] : nil }
    }
  }

  /// The member; nil where it is absent or null.
  package func present(_ name: String) -> JSONSlice? {
    slice(name).flatMap { $0.isNull ? nil : $0 }
  }

  package func required(_ name: String) throws(ErrorObject) -> JSONSlice {
    guard let slice = slice(name) else {
      throw .invalidParameter(pointer(name), "\(name) is missing", hint: "Give \(name).")
    }
    return slice
  }

  /// The member; nil if it is absent or null.
  package func value<Value: WireValue>(_ name: String) throws(ErrorObject) -> Value? {
    try present(name).map { slice throws(ErrorObject) in
      do throws(Misfit) {
        return try Value(wire: slice)
      } catch {
        throw self.error(error.inside(name))
      }
    }
  }

  /// −32602 for what a walk over the parameters found.
  package func error(_ misfit: Misfit) -> ErrorObject {
    misfit.invalidParameter(at: pointer(misfit.place))
  }

  /// - Parameter expected: what it most probably is; spares making a new string.
  package func optionalString(_ name: String, expecting expected: String = "") throws(ErrorObject) -> String? {
    try present(name).map { slice throws(ErrorObject) in
      guard let text = slice.string(expecting: expected) else { throw wrong(name, "a string") }
      return text
    }
  }

  package func string(_ name: String) throws(ErrorObject) -> String {
    _ = try required(name)
    guard let text = try optionalString(name) else { throw wrong(name, "a string") }
    return text
  }

  package func optionalInteger(_ name: String, in range: ClosedRange<Int64>) throws(ErrorObject) -> Int64? {
    try present(name).map { slice throws(ErrorObject) in
      guard let value = slice.integer(), range.contains(value) else {
        throw wrong(name, "an integer from \(range.lowerBound) to \(range.upperBound)")
      }
      return value
    }
  }

  package func bool(_ name: String, default value: Bool = false) throws(ErrorObject) -> Bool {
    guard let slice = present(name) else { return value }
    guard let bool = slice.bool() else { throw wrong(name, "true or false") }
    return bool
  }

  package func reference(_ name: String) throws(ErrorObject) -> ObjectReference {
    guard let reference = ObjectReference(try required(name)) else {
      throw wrong(name, "a handle (positive integer) or a path (array of strings)")
    }
    return reference
  }

  package func optionalReference(_ name: String) throws(ErrorObject) -> ObjectReference? {
    present(name) == nil ? nil : try reference(name)
  }

  package func strings(_ name: String) throws(ErrorObject) -> [String]? {
    try present(name).map { slice throws(ErrorObject) in
      guard let elements = slice.elements else { throw wrong(name, "an array of strings") }
      var strings: [String] = []
      for element in elements {
        guard let text = element.string() else { throw wrong("\(name)/\(strings.count)", "a string") }
        strings.append(text)
      }
      return strings
    }
  }

  /// −32602 for a member of another form.
  ///
  /// - Parameter place: a parameter's name, or a place below it such as `children/2`, escaped as in a JSON pointer.
  package func wrong(_ place: String, _ expected: String) -> ErrorObject {
    .invalidParameter(pointer(place), "\(place) is not \(expected)", hint: "Give \(expected) as \(place).")
  }

  /// JSON pointer into the parameters as they were sent: by position the first token is an index.
  package func pointer(_ place: String) -> String {
    guard case .positional = parameters else { return "/\(place)" }
    let name = place.prefix { $0 != "/" }
    guard let index = position(of: name) else { return "/\(place)" }
    return "/\(index)\(place[name.endIndex...])"
  }

  private func position(of name: some StringProtocol) -> Int? {
    members.firstIndex { $0.name == name }
  }

  /// Each element of the member, an array of handles and paths.
  package func references(_ name: String) throws(ErrorObject) -> [ObjectReference] {
    guard let elements = try required(name).elements else { throw wrong(name, "an array of handles and paths") }
    var references: [ObjectReference] = []
    references.reserveCapacity(elements.count)
    for element in elements {
      guard let reference = ObjectReference(element) else {
        throw wrong("\(name)/\(references.count)", "a handle (positive integer) or a path (array of strings)")
      }
      references.append(reference)
    }
    return references
  }

  /// The member as one of the words of `Word`; nil where it is absent or null.
  package func optionalWord<Word: RawRepresentable<String> & CaseIterable>(
    _ name: String,
    as: Word.Type
  ) throws(ErrorObject) -> Word? {
    try present(name).map { slice throws(ErrorObject) in
      guard let word = slice.string().flatMap({ Word(rawValue: $0) }) else {
        throw wrong(name, "one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      return word
    }
  }

  /// The member, a class name or an array of them; empty where it is absent or null.
  package func classes(_ name: String) throws(ErrorObject) -> [String] {
    (try value(name) as ClassList?)?.names ?? []
  }

  /// The member as a text that is not empty; nil where it is absent or null.
  package func optionalName(_ name: String) throws(ErrorObject) -> String? {
    guard let text = try optionalString(name) else { return nil }
    guard (1...Bounds.nameBytesMax).contains(text.utf8.count) else {
      throw wrong(name, "a string of 1 to \(Bounds.nameBytesMax) bytes")
    }
    return text
  }
}
