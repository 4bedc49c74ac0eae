// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An object in one of several forms, which a word in one of its members tells apart. Later versions add forms.
package protocol TaggedWireValue: WireValue {
  /// The member that holds the word.
  static var tag: StaticString { get }

  static var sharedName: String { get }

  /// One of each form; its members hold values that are never sent.
  static var forms: [Self] { get }

  var word: String { get }

  /// Visits the members besides the word.
  mutating func walk(_ members: inout some MemberWalk) throws(Misfit)
}

extension TaggedWireValue {
  package static var expected: String { "an object with a \(tag) that is known" }
  package static var plural: String { "objects" }

  package static var schema: Schema {
    let described = forms.map { form in
      var (form, members) = (form, MemberDescriber())
      try? form.walk(&members)
      return (word: form.word, members: members.members)
    }
    return .shared(sharedName, .tagged(by: tag.description, described))
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    let word = slice[Self.tag]?.string()
    guard var form = Self.forms.first(where: { $0.word == word }) else { throw Misfit(Self.expected) }
    var members = MemberReader(.named(slice))
    try form.walk(&members)
    self = form
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(Self.tag, word)
      var (form, members) = (self, MemberWriter())
      swap(&members.writer, &writer)
      try? form.walk(&members)
      swap(&members.writer, &writer)
    }
  }
}
