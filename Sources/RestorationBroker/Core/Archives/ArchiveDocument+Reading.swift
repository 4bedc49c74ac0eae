// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationWire

extension ArchiveDocument {
  /// Reads a document or a part. `place` is its JSON pointer in the parameters, such as `/document`.
  package init(_ slice: JSONSlice, at place: String) throws(ErrorObject) {
    let hint = "Give a document from exportArchive."
    guard slice.kind == .object else {
      throw .invalidParameter(place, "the document is not an object", hint: hint)
    }
    do throws(Misfit) {
      try self.init(wire: slice)
    } catch {
      // Comes first, and no other JSON has it.
      if error.place == "format" {
        let message = "the document's format is not \"restorationd.archive\""
        throw .invalidParameter("\(place)/format", message, hint: hint)
      }
      throw error.invalidParameter(at: "\(place)/\(error.place)")
    }
  }
}

extension DocumentObject {
  /// Copies the object, so that its frame can be freed. Pointers of errors begin at the object.
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

  /// Members that must be given together.
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
      if parent != nil { try refuse("parent", "the application has a parent", "Remove parent.") }
      return
    }
    if path == nil, kind == .object {
      try refuse("path", "a plain object needs a path", "Give the path, or another kind.")
    }
    if path == nil, state != nil {
      try refuse("state", "an object without path cannot have a state", "Remove the state, or give the path.")
    }
    if state != nil, missing != nil {
      try refuse("missing", "missing is given although there is a state", "Remove missing or the state.")
    }
    if state == nil, isEarly {
      try refuse("early", "early is given although there is no state", "Give the state, or remove early.")
    }
    if !isEarly, beforeClaim != nil {
      let message = "beforeClaim is given for a state that is not early"
      try refuse("beforeClaim", message, "Remove beforeClaim, or give early: true.")
    }
  }

  /// Scans the object's text separately, so that nothing above it can hide its references.
  private static func scan(_ text: JSONText) throws(ErrorObject) -> JSONSlice {
    let object = try? JSONSlice.scan(Array(text.bytes), vocabulary: EncodedState.vocabulary, limits: .unframed)
    guard let object, object.kind == .object else {
      throw .invalidParameter("", "the element is not an object", hint: "Give objects as exportArchive does.")
    }
    for name in [EncodedState.vocabulary.referenceKey, EncodedState.vocabulary.literalKey] where object[name] != nil {
      throw .invalidParameter("/\(name)", "\(name) is allowed only in a state", hint: "Remove it.")
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

extension DocumentState {
  mutating func followReferences() throws(ErrorObject) {
    references = try state.references.map { reference throws(ErrorObject) in
      let target = IdentifierPath(reference.target)
      guard target != nil || reference.target.isNull else { throw .unknownTarget(reference.target.compactText) }
      return Reference(range: reference.objectRange, target: target)
    }
  }

  /// Releases the scan of the text, which is far larger than the text.
  package mutating func releaseFrame() { state = EncodedState(unchecked: state.text) }
}

extension ErrorObject {
  /// The error with `place` before its pointer.
  package func below(_ place: String) -> ErrorObject {
    guard case .object(var data) = data else { return self }
    data["pointer"] = .string(place + (data["pointer"]?.string ?? ""))
    return ErrorObject(code: code, message: message, data: .object(data))
  }

  /// −32015 for a reference that leads to no object of the document.
  package static func unknownTarget(_ target: JSONText) -> ErrorObject {
    .restoration(
      .invalidReference,
      "\(target.brief) is not the path of an object in the document",
      hint: "Give the path of an object in the document, or null.",
      details: ["pointer": "/state", "reference": .text(target)]
    )
  }
}
