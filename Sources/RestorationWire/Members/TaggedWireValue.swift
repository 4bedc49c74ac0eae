// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An enumeration whose cases are JSON objects; one member holds the name of the case. Later versions may add cases.
package protocol TaggedWireValue: WireValue, Equatable {
  static var tag: StaticString { get }

  static var sharedName: String { get }

  /// A placeholder of each case, by its name; its members are never sent.
  static var forms: KeyValuePairs<String, Self> { get }

  var word: String { get }

  /// Visits the members besides the name.
  mutating func walk(_ members: inout some MemberWalk) throws(Misfit)
}

extension TaggedWireValue {
  /// A mirror names a case with members; a case without members equals its placeholder.
  package var nameOfCase: String {
    Mirror(reflecting: self).children.first?.label ?? Self.forms.first { $0.value == self }?.key ?? ""
  }

  package static var expected: String { "an object with a known \(tag)" }
  package static var plural: String { "objects" }

  package static var schema: Schema { schema(with: []) }

  /// - Parameter more: members of every case.
  static func schema(with more: [Schema.Member]) -> Schema {
    let described = forms.map { word, form in
      var (form, members) = (form, MemberDescriber())
      try? form.walk(&members)
      return (word: word, members: members.members + more)
    }
    return .shared(sharedName, .tagged(by: tag.description, described))
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    let word = slice[Self.tag]?.string()
    guard var form = Self.forms.first(where: { $0.key == word })?.value else { throw Misfit(Self.expected) }
    var members = MemberReader(.named(slice))
    try form.walk(&members)
    self = form
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

  /// Writes the members of an object that the caller has begun.
  func writeMembers(to writer: inout JSONWriter) {
    writer.member(Self.tag, word)
    var form = self
    MemberWriter.write(to: &writer) { (members) throws(Misfit) in try form.walk(&members) }
  }
}
