// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A document of `exportArchive`, or a part of one (`Protocol/export-format.md`). Objects stay as received.
package struct ArchiveDocument: WireObject {
  package static let sharedName: String? = "ArchiveDocument"
  package static let isGiven = true

  private enum Format: String, WireWord {
    case archive = "restorationd.archive"

    static let schema = Schema.constant(.string(archive.rawValue))
    static let expected = "\"\(archive.rawValue)\""
  }

  private struct Version: WireValue {
    static let only: Int64 = 1
    static let schema = Schema.constant(.integer(only))
    static let expected = "\(only)"

    init() {}

    init(wire slice: JSONSlice) throws(Misfit) {
      let version = try Int64(wire: slice)
      guard version == Self.only else {
        let message = "the document is of version \(version), this broker reads only \(Self.only)"
        let hint = "Export it with a broker of this version, or import it with a later one."
        throw Misfit(.unsuited(message, hint: hint), at: "")
      }
    }

    func writeJSON(to writer: inout JSONWriter) { writer.integer(Self.only) }
  }

  /// Whether confidential states were left out.
  package var redacted = false
  /// Read and written by `DocumentObject`.
  package var objects: [JSONText] = []
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    var (format, version) = (Format.archive, Version())
    try members.required("format", &format, "`\"restorationd.archive\"`.")
    try members.required("version", &version, "1.")
    var isRedacted: Bool? = redacted
    try members.optional("redacted", &isRedacted, "Confidential states were left out.")
    redacted = isRedacted ?? false
    try members.required(
      "objects",
      &objects,
      .text(of: DocumentObject.self),
      "The objects, parents before their children."
    )
  }
}

package struct DocumentObject: WireObject {
  package static let sharedName: String? = "DocumentObject"
  package static let isGiven = true

  private enum Kind: String, WireWord {
    case object, viewController, view, application
  }

  /// Why the document lacks an existing state.
  package enum Missing: String, WireWord {
    /// It is confidential and `reveal` was false.
    case redacted
    /// It could not be read (R32: damage).
    case unreadable
  }

  package var path: IdentifierPath?
  package var parent: Int?
  package var kind = ObjectKind.object
  /// Whether this is the application's own state instead of an object.
  package var isApplication = false
  package var classes: [String] = []
  package var restorationClass: String?
  package var storyboard: String?
  package var keep: RegisterObjectForStateRestoration.Keep?
  package var confidential = false
  package var missing: Missing?
  package var state: DocumentState?
  /// A provisional state: an owner that decodes gets it as `beforeClaim` (R19).
  package var isEarly = false
  package var beforeClaim: DocumentState?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "Its path; null if the object's own identifier is null (R4).")
    try members.optional("parent", &parent, "Index of its parent in `objects`, from 0, over all parts.")
    var word = isApplication ? Kind.application : Kind(rawValue: kind.rawValue) ?? .object
    try members.required("kind", &word, "`object`, `viewController` or `view`.")
    (kind, isApplication) = (ObjectKind(rawValue: word.rawValue) ?? .object, word == .application)
    try members.optional("objectClass", classes: &classes, "As registered; absent if none was given.")
    try members.optional("restorationClass", &restorationClass, .name, "As registered.")
    try members.optional("storyboard", unit: &storyboard, "`{\"unit\": string}` as registered.")
    try members.optional("keep", &keep, "`\"forever\"` (R13).")
    try members.flag("confidential", &confidential, "Absent is false.")
    try members.optional(
      "missing",
      &missing,
      "Why the object's state was left out: `redacted`, or `unreadable` if it was damaged (R32)."
    )
    try walkState(&members)
    try members.flag("early", &isEarly, "The state is early (R19).")
    try members.optional(
      "beforeClaim",
      &beforeClaim,
      "`{state, elements?, writer}`: what an owner that decodes gets instead of an early state."
    )
  }

  /// The state's members are members of the object itself.
  private mutating func walkState(_ members: inout some MemberWalk) throws(Misfit) {
    var (encoded, elements, writer) = (state?.state, state?.elements, state?.writer)
    try members.optional("state", &encoded, "The state; its text is unchanged except for references.")
    try members.optional("elements", &elements, "Selected and topmost elements; `resolved` is false.")
    try members.optional("writer", &writer, "Who wrote the state; present exactly when `state` is.")
    state = encoded.map { encoded in
      DocumentState().with {
        $0.state = encoded
        $0.elements = elements?.text == .emptyArray ? nil : elements
        $0.writer = writer ?? DocumentState.Writer()
      }
    }
    if encoded != nil, writer == nil { throw Misfit(.missing, at: "writer") }
    for (name, isGiven) in [("elements", elements != nil), ("writer", writer != nil)] where encoded == nil && isGiven {
      throw Misfit(.unsuited("\(name) is given without a state", hint: "Give the state as well."), at: name)
    }
  }
}

/// A state with its elements and its writer, which give its reserved keys and class (R10, R25, R28).
package struct DocumentState: WireObject {
  package static let sharedName: String? = "DocumentState"
  package static let isGiven = true

  /// The state with its references as paths.
  package var state = EncodedState.empty
  package var elements: Elements?
  package var writer = Writer()
  /// The references found by reading, in the order of the text.
  package var references: [Reference] = []

  package struct Reference: Hashable, Sendable {
    /// The whole reference, as offsets from the first byte of the text.
    package var range: Range<Int>
    /// `nil` if the target does not exist.
    package var target: IdentifierPath?

    package init(range: Range<Int>, target: IdentifierPath?) { (self.range, self.target) = (range, target) }
  }

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("state", &state, "The state; its text is unchanged except for references.")
    try members.optional("elements", &elements, "Selected and topmost elements; `resolved` is false.")
    try members.required("writer", &writer, "Who wrote the state; present exactly when `state` is.")
    if elements?.text == .emptyArray { elements = nil }
  }

  /// Elements as stored: the raw index path is written, because no data source was asked.
  package struct Elements: WireValue {
    package static let schema = Schema.elements
    package static let expected = [RestorableElement].expected

    package let text: JSONText

    package init(stored text: JSONText) { self.text = text }

    package init(wire slice: JSONSlice) throws(Misfit) {
      var elements = try [RestorableElement](wire: slice)
      for index in elements.indices { elements[index].resolved = false }
      text = elements.text
    }

    package func writeJSON(to writer: inout JSONWriter) { writer.text(text) }
  }

  package struct Writer: WireObject, Hashable {
    package static let sharedName: String? = "DocumentWriter"
    package static let isGiven = true

    package var classes: [String] = []
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
      try members.optional("userInterfaceIdiom", &idiom, "−1 if it gave none; absent means −1.")
      userInterfaceIdiom = idiom ?? ReservedKeys.unspecifiedIdiom
      try members.optional("systemVersion", &systemVersion, .name, "")
      try members.optional("storyboard", unit: &storyboard, "")
      try members.required("written", &written, "When, RFC 3339, UTC, milliseconds: `2026-02-28T09:05:00.042Z`.")
    }
  }
}
