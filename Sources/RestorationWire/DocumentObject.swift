// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One object of a document: its description and its state (`Protocol/export-format.md`).
package struct DocumentObject: Sendable {
  package static let schema = Schema.shared(
    "DocumentObject",
    .object([
      .required("path", .nullable(.path), "Its path; null where the object's own identifier is null (R4)."),
      .optional("parent", .nullable(.count), "Place of its parent in `objects`, from 0, over all parts."),
      .required(
        "kind",
        .word(ObjectKind.allCases.map(\.rawValue) + [applicationKind], isOpen: false),
        "`object`, `viewController` or `view`."
      ),
      .optional("objectClass", .nullable(.objectClass), "As registered; absent where it was not given."),
      .optional("restorationClass", .nullable(.name), "As registered."),
      .optional("storyboard", .nullable(Storyboard.schema), "`{\"unit\": string}` as registered."),
      .optional("keep", .nullable(.words(Keep.self)), "`\"forever\"` (R13)."),
      .optional("confidential", .nullable(.boolean), "Absent is false."),
      .optional(
        "missing",
        .nullable(.words(Missing.self)),
        "Why a state that there was is not here: `redacted`, or `unreadable` where it was damaged (R32)."
      ),
      .optional("state", .nullable(.state), "The state, as text unchanged but for references."),
      .optional("elements", .nullable(.elements), "Selected and topmost elements; `resolved` is false."),
      .optional(
        "writer",
        .nullable(DocumentState.Writer.schema),
        "Who wrote the state; there exactly where `state` is."
      ),
      .optional("early", .nullable(.boolean), "The state is early (R19)."),
      .optional(
        "beforeClaim",
        .nullable(DocumentState.schema),
        "`{state, elements?, writer}`: what an owner that decodes gets instead of an early state."
      ),
    ])
  )

  /// Why a state that there is does not stand in the document.
  package enum Missing: String, WireWord {
    /// It is confidential and `reveal` was not said.
    case redacted
    /// It could not be read (R32).
    case unreadable
  }

  /// Nil where the object's own identifier is null (R4).
  package var path: IdentifierPath?
  /// The parent's place in `objects`, where the path does not tell which object it is.
  package var parent: Int?
  package var kind: ObjectKind
  /// It holds the application's own state, and is no object of it.
  package var isApplication = false
  /// The class and superclasses as registered; empty where none was given.
  package var classes: [String]
  package var restorationClass: String?
  /// The unit of the storyboard.
  package var storyboard: String?
  /// `keep: "forever"` (R13).
  package var keepsForever: Bool
  package var confidential: Bool
  package var missing: Missing?
  package var state: DocumentState?
  /// Whether the state is early: an owner that decodes gets `beforeClaim` (R19).
  package var isEarly: Bool
  package var beforeClaim: DocumentState?

  package init(path: IdentifierPath?, parent: Int? = nil, kind: ObjectKind) {
    self.path = path
    self.parent = parent
    self.kind = kind
    classes = []
    keepsForever = false
    confidential = false
    isEarly = false
  }

  /// Reads an object; all of it is copied, so that the frame it came in need not be kept.
  ///
  /// What is wrong is named by a JSON pointer from the object on.
  package init(_ slice: JSONSlice) throws(ErrorObject) {
    let reader = try Self.reader(of: slice)
    let path: IdentifierPath? = try reader.required("path")
    let isApplication = reader.present("kind")?.string() == Self.applicationKind
    self.init(path: path, kind: isApplication ? .object : try reader.required("kind"))
    self.isApplication = isApplication
    self.parent = (try reader.optional("parent", .range(0...Int64(Int32.max))) as Int64?).map { Int($0) }
    self.classes = (try reader.optional("objectClass") as ClassList?)?.names ?? []
    self.restorationClass = try reader.optional("restorationClass", .name)
    self.storyboard = (try reader.optional("storyboard") as Storyboard?)?.unit
    self.keepsForever = try reader.optional("keep") == Keep.forever
    self.confidential = try reader.optional("confidential") ?? false
    self.missing = try reader.optional("missing")
    self.state = try DocumentState.read(from: reader)
    self.isEarly = try reader.optional("early") ?? false
    if let before = reader.present("beforeClaim") {
      do throws(ErrorObject) {
        guard before.kind == .object else {
          throw .invalidParameter("", "beforeClaim is no object", hint: "Give an object with state and writer.")
        }
        try before.requireDistinctNames()
        self.beforeClaim = try DocumentState.read(from: ObjectReader(before))
        guard beforeClaim != nil else { throw .missing("/state", "state") }
      } catch {
        throw error.below("/beforeClaim")
      }
    }
    try check()
  }

  /// Members that belong together.
  private func check() throws(ErrorObject) {
    func refuse(_ name: String, _ message: String, _ hint: String) throws(ErrorObject) {
      throw .invalidParameter("/\(name)", message, hint: hint)
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
      try refuse("early", "early is said where there is no state", "Give the state, or take early away.")
    }
    if !isEarly, beforeClaim != nil {
      let message = "beforeClaim is given for a state that is not early"
      try refuse("beforeClaim", message, "Take beforeClaim away, or say early: true.")
    }
  }

  /// The word of `kind` for the application itself.
  private static let applicationKind = "application"

  /// Looks at the object's text by itself: what is above it then cannot hide references in it.
  private static func reader(of slice: JSONSlice) throws(ErrorObject) -> ObjectReader {
    let bytes = Array(slice.compactText.bytes)
    let limits = FrameLimits(
      frameBytesMax: Int(Int32.max) - 16,
      depthMax: 64,
      valuesPerFrameMax: .max,
      keysPerObjectMax: Int(Int32.max)
    )
    guard slice.kind == .object,
      let own = try? JSONSlice.scan(bytes, vocabulary: EncodedState.vocabulary, limits: limits)
    else {
      throw .invalidParameter("", "this is not an object", hint: "Give objects as exportArchive does.")
    }
    for name in [EncodedState.vocabulary.referenceKey, EncodedState.vocabulary.literalKey] where own[name] != nil {
      throw .invalidParameter("/\(name)", "\(name) stands outside of a state", hint: "Take it away.")
    }
    try own.requireDistinctNames()
    return ObjectReader(own)
  }

  /// Values of `keep`.
  private enum Keep: String, WireWord {
    case forever
  }

  /// The object as it stands in a document.
  package var text: JSONText {
    var writer = JSONWriter(reserving: 256 + (state?.text.count ?? 0) + (beforeClaim?.text.count ?? 0))
    writer.object { writer in
      writer.member("path", path)
      writer.member("parent", ifPresent: parent)
      writer.member("kind", isApplication ? Self.applicationKind : kind.rawValue)
      if !classes.isEmpty {
        writer.key("objectClass")
        ClassList.write(classes, to: &writer)
      }
      writer.member("restorationClass", ifPresent: restorationClass)
      writer.member("storyboard", ifPresent: storyboard.map { Storyboard(unit: $0) })
      if keepsForever { writer.member("keep", Keep.forever) }
      writer.member("confidential", ifTrue: confidential)
      writer.member("missing", ifPresent: missing)
      state?.writeMembers(to: &writer)
      writer.member("early", ifTrue: isEarly)
      if let beforeClaim {
        writer.key("beforeClaim")
        writer.object { beforeClaim.writeMembers(to: &$0) }
      }
    }
    return JSONText(validated: writer.bytes)
  }
}

extension ErrorObject {
  /// −32602 for a member that has to be there.
  static func missing(_ pointer: String, _ name: String) -> ErrorObject {
    .invalidParameter(pointer, "\(name) is missing", hint: "Give \(name).")
  }
}

extension JSONSlice {
  /// Refuses an object that gives a member twice.
  func requireDistinctNames() throws(ErrorObject) {
    guard let name = duplicateName else { return }
    let pointer = "/\(JSONPointer.escaped(name))"
    throw .invalidParameter(pointer, "\(name) is given twice", hint: "Give each member once.")
  }
}
