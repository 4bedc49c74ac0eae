// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object of a document: its description and its state (`Protocol/export-format.md`).
package struct DocumentObject: WireObject {
  package static let sharedName: String? = "DocumentObject"
  package static let isGiven = true

  private enum Kind: String, WireWord {
    case object, viewController, view, application
  }

  /// Why a state that there is does not stand in the document.
  package enum Missing: String, WireWord {
    /// It is confidential and `reveal` was not said.
    case redacted
    /// It could not be read (R32).
    case unreadable
  }

  package var path: IdentifierPath?
  package var parent: Int?
  package var kind = ObjectKind.object
  /// It holds the application's own state, and is no object of it.
  package var isApplication = false
  package var classes: [String] = []
  package var restorationClass: String?
  /// The unit of the storyboard.
  package var storyboard: String?
  package var keep: RegisterObjectForStateRestoration.Keep?
  package var confidential = false
  package var missing: Missing?
  package var state: DocumentState?
  /// Whether the state is early: an owner that decodes gets `beforeClaim` (R19).
  package var isEarly = false
  package var beforeClaim: DocumentState?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("path", &path, "Its path; null where the object's own identifier is null (R4).")
    try members.optional("parent", &parent, "Place of its parent in `objects`, from 0, over all parts.")
    var word = isApplication ? Kind.application : Kind(rawValue: kind.rawValue) ?? .object
    try members.required("kind", &word, "`object`, `viewController` or `view`.")
    (kind, isApplication) = (ObjectKind(rawValue: word.rawValue) ?? .object, word == .application)
    try members.optional("objectClass", classes: &classes, "As registered; absent where it was not given.")
    try members.optional("restorationClass", &restorationClass, .name, "As registered.")
    try members.optional("storyboard", unit: &storyboard, "`{\"unit\": string}` as registered.")
    try members.optional("keep", &keep, "`\"forever\"` (R13).")
    try members.flag("confidential", &confidential, "Absent is false.")
    try members.optional(
      "missing",
      &missing,
      "Why a state that there was is not here: `redacted`, or `unreadable` where it was damaged (R32)."
    )
    try walkState(&members)
    try members.flag("early", &isEarly, "The state is early (R19).")
    try members.optional(
      "beforeClaim",
      &beforeClaim,
      "`{state, elements?, writer}`: what an owner that decodes gets instead of an early state."
    )
  }

  /// The members of the state stand among those of the object.
  private mutating func walkState(_ members: inout some MemberWalk) throws(Misfit) {
    var (encoded, elements, writer) = (state?.state, state?.elements, state?.writer)
    try members.optional("state", &encoded, "The state, as text unchanged but for references.")
    try members.optional("elements", &elements, "Selected and topmost elements; `resolved` is false.")
    try members.optional("writer", &writer, "Who wrote the state; there exactly where `state` is.")
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

  /// Reads an object; all of it is copied, so that the frame it came in need not be kept.
  ///
  /// What is wrong is named by a JSON pointer from the object on.
  package init(_ text: JSONText) throws(ErrorObject) {
    let object = try Self.scan(text)
    do throws(Misfit) {
      try self.init(wire: object)
    } catch {
      throw error.invalidParameter(at: "/\(error.place)")
    }
    try check()
    try state?.followReferences()
    do throws(ErrorObject) {
      try beforeClaim?.followReferences()
    } catch {
      throw error.below("/beforeClaim")
    }
  }

  /// Members that belong together.
  private func check() throws(ErrorObject) {
    func refuse(_ name: String, _ message: String, _ hint: String) throws(ErrorObject) {
      throw .invalidParameter("/\(name)", message, hint: hint)
    }
    for (place, role) in [
      ("writer/process", state?.writer.process), ("beforeClaim/writer/process", beforeClaim?.writer.process),
    ] where role?.fits(.role) == false {
      let expected = String.expected(within: .role)
      try refuse(place, "\(place) is not \(expected)", "Give \(expected) as \(place).")
    }
    if isApplication {
      if path != nil { try refuse("path", "the application has a path", "Give null, or another kind.") }
      if parent != nil { try refuse("parent", "the application has a parent", "Take parent away.") }
      return
    }
    if path == nil, kind == .object {
      try refuse("path", "a plain object has no path", "Give the path, or another kind.")
    }
    if path == nil, state != nil {
      try refuse("state", "an object without path has a state", "Take the state away, or give the path.")
    }
    if state != nil, missing != nil {
      try refuse("missing", "missing is said of a state that is there", "Take missing or the state away.")
    }
    if state == nil, isEarly {
      try refuse("early", "early is said although there is no state", "Give the state, or take early away.")
    }
    if !isEarly, beforeClaim != nil {
      let message = "beforeClaim is given for a state that is not early"
      try refuse("beforeClaim", message, "Take beforeClaim away, or say early: true.")
    }
  }

  /// Looks at the object's text by itself: what is above it then cannot hide references in it.
  private static func scan(_ text: JSONText) throws(ErrorObject) -> JSONSlice {
    let object = try? JSONSlice.scan(Array(text.bytes), vocabulary: EncodedState.vocabulary, limits: .unframed)
    guard let object, object.kind == .object else {
      throw .invalidParameter("", "this is not an object", hint: "Give objects as exportArchive does.")
    }
    for name in [EncodedState.vocabulary.referenceKey, EncodedState.vocabulary.literalKey] where object[name] != nil {
      throw .invalidParameter("/\(name)", "\(name) stands outside of a state", hint: "Take it away.")
    }
    for place in ["", "/state", "/writer", "/beforeClaim", "/beforeClaim/state", "/beforeClaim/writer"] {
      let value = place.split(separator: "/").reduce(object as JSONSlice?) { $0?[String($1)] }
      guard let name = value?.duplicateName else { continue }
      let pointer = "\(place)/\(JSONPointer.escaped(name))"
      throw .invalidParameter(pointer, "\(name) is given twice", hint: "Give each member once.")
    }
    return object
  }
}
