// SPDX-License-Identifier: Apache-2.0

/// The members of a JSON object in their order. Names are compared by their Unicode scalars.
package struct JSONObject: Sendable {
  package private(set) var members: [(name: String, value: JSONValue)]

  package init() { members = [] }

  /// Takes the members unchanged; of two with one name, look-up finds the first.
  package init(_ members: [(name: String, value: JSONValue)]) { self.members = members }

  package var count: Int { members.count }
  package var isEmpty: Bool { members.isEmpty }

  /// The member of that name, or `nil`. Setting replaces in place or appends; setting `nil` removes.
  package subscript(name: String) -> JSONValue? {
    get {
      index(of: name).map { members[$0].value }
    }
    set {
      switch (index(of: name), newValue) {
      case (let index?, let value?): members[index].value = value
      case (nil, let value?): members.append((name, value))
      case (let index?, nil): members.remove(at: index)
      case (nil, nil): break
      }
    }
  }

  /// Adds a member at the end without a search for the same name.
  package mutating func append(_ name: String, _ value: JSONValue) { members.append((name, value)) }

  private func index(of name: String) -> Int? { members.firstIndex { $0.name.utf8.elementsEqual(name.utf8) } }
}

extension JSONObject: Equatable {
  /// Objects are equal if they have equal members in any order.
  package static func == (left: JSONObject, right: JSONObject) -> Bool {
    left.count == right.count && left.members.allSatisfy { right[$0.name] == $0.value }
  }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self.init(elements.map { (name: $0.0, value: $0.1) })
  }
}
