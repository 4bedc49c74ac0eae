// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A row or item of a view that is selected or topmost (R28).
package struct Element: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "Element",
    .object([
      .required("role", .words(Role.self), "Why it is told of."),
      .required("indexPath", .list(.count), "Where the element is in the view."),
      .optional("identifier", .nullable(.string), "The data source's identifier of the element's model."),
      .optional("resolved", .nullable(.boolean), "On decoding, whether a data source has said where it is today."),
    ])
  )

  package enum Role: String, CaseIterable, Sendable {
    case selected
    case topVisible
  }

  package var role: Role
  /// Where the element is in the view: section and row, or as deep as the view nests; each at least 0.
  package var indexPath: [Int]
  /// The data source's identifier of the element's model; nil where nobody was asked.
  package var identifier: String?
  /// On decoding, whether `indexPath` was found from `identifier` today; nil where nobody has said.
  package var resolved: Bool?

  package init(role: Role, indexPath: [Int], identifier: String? = nil, resolved: Bool? = nil) {
    self.role = role
    self.indexPath = indexPath
    self.identifier = identifier
    self.resolved = resolved
  }

  /// Reads the member `name`, an array of elements; empty where it is absent or null.
  package static func read(from reader: ParameterReader, _ name: String) throws(ErrorObject) -> [Element] {
    guard let slice = reader.present(name) else { return [] }
    guard let slices = slice.elements else { throw reader.wrong(name, "an array of elements") }
    var elements: [Element] = []
    elements.reserveCapacity(slices.count)
    for (index, slice) in slices.enumerated() {
      elements.append(try Element(slice, at: "\(name)/\(index)", of: reader))
    }
    return elements
  }

  private static let result: [Schema.Member] = [.required("element", schema)]

  /// Reads an element of a result; nil where it has not the form of one.
  package init?(_ slice: JSONSlice) {
    let reader = ParameterReader(.positional([slice]), of: Self.result)
    guard let element = try? Element(slice, at: "element", of: reader) else { return nil }
    self = element
  }

  /// Writes the array of `elements`.
  package static func write(_ elements: [Element], to writer: inout JSONWriter) {
    elements.writeJSON(to: &writer)
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("role", role.rawValue)
      writer.member("indexPath", indexPath)
      writer.member("identifier", ifPresent: identifier)
      writer.member("resolved", ifPresent: resolved)
    }
  }

  private init(_ slice: JSONSlice, at place: String, of reader: ParameterReader) throws(ErrorObject) {
    guard slice.kind == .object else { throw reader.wrong(place, "an object") }
    guard let role = slice["role"]?.string().flatMap({ Role(rawValue: $0) }) else {
      throw reader.wrong("\(place)/role", "\"selected\" or \"topVisible\"")
    }
    guard let indices = slice["indexPath"]?.elements else {
      throw reader.wrong("\(place)/indexPath", "an array of integers")
    }
    var indexPath: [Int] = []
    indexPath.reserveCapacity(indices.count)
    for index in indices {
      guard let value = index.integer().flatMap({ Int(exactly: $0) }), value >= 0 else {
        throw reader.wrong("\(place)/indexPath/\(indexPath.count)", "an integer of at least 0")
      }
      indexPath.append(value)
    }
    self.init(role: role, indexPath: indexPath)
    if let member = slice["identifier"], !member.isNull {
      guard let identifier = member.string() else { throw reader.wrong("\(place)/identifier", "a string") }
      self.identifier = identifier
    }
    if let member = slice["resolved"], !member.isNull {
      guard let resolved = member.bool() else { throw reader.wrong("\(place)/resolved", "true or false") }
      self.resolved = resolved
    }
  }
}
