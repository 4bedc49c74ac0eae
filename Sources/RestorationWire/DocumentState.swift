// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A state in a document, with its elements and who wrote it (R25, R26, R28).
package struct DocumentState: WireObject {
  package static let sharedName: String? = "DocumentState"
  package static let isGiven = true

  /// The state with its references as paths.
  package var state = EncodedState.empty
  package var elements: Elements?
  package var writer = Writer()
  /// The references of a state that was read, in the order of the text.
  package private(set) var references: [Reference] = []

  /// A reference in the text of a state.
  package struct Reference: Hashable, Sendable {
    /// Of the whole reference, as offsets from the first byte of the text.
    package var range: Range<Int>
    /// Nil if it leads to nothing.
    package var target: IdentifierPath?
  }

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("state", &state, "The state, as text unchanged but for references.")
    try members.optional("elements", &elements, "Selected and topmost elements; `resolved` is false.")
    try members.required("writer", &writer, "Who wrote the state; there exactly where `state` is.")
    if elements?.text == .emptyArray { elements = nil }
  }

  /// The paths to which the references of a state lead that was read.
  mutating func followReferences() throws(ErrorObject) {
    references = try state.references.map { reference throws(ErrorObject) in
      let target = IdentifierPath(reference.target)
      guard target != nil || reference.target.isNull else { throw .unknownTarget(reference.target.compactText) }
      return Reference(range: reference.objectRange, target: target)
    }
  }

  /// Lets go of what the look at the text needed, which holds far more than the text.
  package mutating func releaseFrame() {
    state = EncodedState(unchecked: state.text)
  }

  /// Elements as they are stored: no data source was asked, so the raw index path is what comes back.
  package struct Elements: WireValue {
    package static let schema = Schema.elements
    package static let expected = [RestorableElement].expected

    package let text: JSONText

    package init(stored text: JSONText) {
      self.text = text
    }

    package init(wire slice: JSONSlice) throws(Misfit) {
      var elements = try [RestorableElement](wire: slice)
      for index in elements.indices { elements[index].resolved = false }
      text = elements.text
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.text(text)
    }
  }

  /// The session that wrote a state, as far as the state's coder and class tell.
  package struct Writer: WireObject, Hashable {
    package static let sharedName: String? = "DocumentWriter"
    package static let isGiven = true

    package var classes: [String] = []
    /// The process role.
    package var process: String?
    package var bundleVersion: String?
    package var userInterfaceIdiom = ReservedKeys.unspecifiedIdiom
    package var systemVersion: String?
    /// The unit of a view controller's storyboard.
    package var storyboard: String?
    package var written = Timestamp(milliseconds: 0)

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.optional("objectClass", classes: &classes, "The classes that the state's writer declared (R25).")
      try members.member("process", &process, default: nil, "Its process role.", as: .string)
      try members.optional("bundleVersion", &bundleVersion, .name, "")
      var idiom: Int64? = userInterfaceIdiom
      try members.optional("userInterfaceIdiom", &idiom, "−1 where it gave none, and where the member is absent.")
      userInterfaceIdiom = idiom ?? ReservedKeys.unspecifiedIdiom
      try members.optional("systemVersion", &systemVersion, .name, "")
      try members.optional("storyboard", unit: &storyboard, "")
      try members.required("written", &written, "When, RFC 3339, UTC, milliseconds: `2026-02-28T09:05:00.042Z`.")
    }
  }
}

extension ErrorObject {
  /// −32015 for a reference of a document that leads to none of its objects.
  package static func unknownTarget(_ target: JSONText) -> ErrorObject {
    .restoration(
      .invalidReference,
      "\(target) leads to no object of the document",
      hint: "References are paths of objects in the document, or null.",
      details: ["pointer": "/state", "reference": .text(target)]
    )
  }
}
