// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// Everything there is to say of one object, in the head or in a generation.
struct ObjectFacts {
  let application: String
  /// `nil` for the head.
  let generation: Int64?
  /// The newest generation; `nil` if none has been sealed, or it was not asked for.
  var newestGeneration: Int64?
  let path: IdentifierPath
  let object: Int64?
  let kind: ObjectKind
  let classes: [String]
  let process: String?
  /// `nil` if unclaimed, and for a generation.
  var pid: Int64?
  /// `nil` for a generation.
  var included: Bool?
  let orphaned: Bool
  let confidential: Bool
  /// Its state is withheld from its owner.
  var quarantined = false
  /// Its state and elements are left out, because it is confidential.
  var redacted = false
  let status: String
  var revision: Int64?
  let bytes: Int
  let modified: Timestamp?
  let origin: ReservedKeys?
  let elements: [RestorableElement]
  let state: RestorableState?

  /// An object of the head.
  init(
    _ object: ObjectDescription,
    at path: IdentifierPath,
    _ decoded: DecodedState,
    reveal: Bool,
    of application: ApplicationDescription
  ) {
    self.application = application.application.description
    generation = nil
    newestGeneration = application.generation
    self.path = path
    self.object = object.object
    kind = object.kind
    classes = object.classes
    process = object.process
    pid = object.pid
    included = object.included
    orphaned = object.orphaned
    confidential = object.confidential
    quarantined = object.quarantined
    redacted = confidential && !reveal && decoded.state != nil
    status = decoded.status.rawValue
    revision = object.revision
    bytes = object.bytes
    modified = object.modified
    origin = decoded.origin
    elements = redacted ? [] : decoded.elements
    state = redacted ? nil : decoded.state
  }

  /// An object of a generation.
  init(_ saved: ArchivedObject, generation: Int64, of application: String) {
    (self.application, self.generation) = (application, generation)
    path = saved.path
    object = saved.object
    kind = saved.kind
    classes = saved.classes
    process = saved.process
    orphaned = saved.orphaned
    confidential = saved.confidential
    redacted = saved.redacted
    status = saved.status.rawValue
    bytes = saved.bytes
    modified = saved.modified
    origin = saved.origin
    elements = saved.elements
    state = saved.state
  }
}

// For people
extension ObjectFacts {
  /// A fact a line, below them the state.
  func text(now: Int64) -> String {
    var table = TextTable([TextTable.Column("", .right), TextTable.Column("")])
    func add(_ name: String, _ value: String?, _ colour: Colour? = nil) {
      if let value { table.add([TextTable.Cell(name + ":"), TextTable.Cell(value, colour)]) }
    }
    add("Path", path.description, .bold)
    add("Class", classes.isEmpty ? nil : classes.joined(separator: " < "))
    add("Kind", kind.rawValue)
    add("Owner", owner)
    add("Marks", marks.isEmpty ? nil : marks.joined(separator: ", "))
    add("Generation", generation.map { "\($0)" } ?? newestGeneration.map { "head, after \($0)" } ?? "head")
    add("Revision", revision.map { "\($0)" })
    if let modified {
      add("Modified", "\(modified.local) (\(Quantity.age(now - modified.milliseconds)) ago)")
      add("Size", Quantity.bytes(bytes))
    }
    add("Bundle", origin?.bundleVersion)
    add("System", origin?.systemVersion)
    add("Storyboard", origin?.storyboard)
    for element in elements { add(element.role == .selected ? "Selected" : "Topmost", Self.text(element)) }
    add("State", stateless, .yellow)
    let facts = table.text(header: false, width: nil)
    return state.map { "\(facts)\n\(PrettyJSON.lay(out: $0.jsonText).printableJSON)\n" } ?? facts
  }

  private var owner: String {
    let role = process ?? "a process without a role"
    if generation != nil { return process.map { "written by \($0)" } ?? "unknown" }
    if let pid { return "\(role), process \(pid)" }
    return "unowned" + (process.map { "; written by \($0)" } ?? "")
  }

  private var marks: [String] {
    var marks: [String] = []
    if orphaned { marks.append("orphaned") }
    if included == false { marks.append("excluded") }
    if confidential { marks.append("confidential") }
    if quarantined { marks.append("quarantined") }
    return marks
  }

  /// Why no state is shown; `nil` if one is.
  private var stateless: String? {
    if redacted { return "confidential; --reveal shows it" }
    if state != nil { return nil }
    return status == RestorationState.none.rawValue ? "none" : status
  }

  private static func text(_ element: RestorableElement) -> String {
    let index = element.indexPath.map { String($0) }.joined(separator: ", ")
    return "[\(index)]" + (element.identifier.map { " \($0)" } ?? "")
  }
}

// For programs
extension ObjectFacts: JSONWritable {
  /// As `Protocol/restorationctl.md` has it.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application)
      writer.member("generation", generation)
      writer.member("path", path)
      writer.member("object", object)
      writer.member("kind", kind)
      writer.member("classes", classes)
      writer.member("process", process)
      writer.member("pid", pid)
      writer.member("vacant", object == nil)
      writer.member("orphaned", orphaned)
      writer.member("included", included)
      writer.member("confidential", confidential)
      writer.member("redacted", redacted)
      writer.member("quarantined", ifTrue: quarantined)
      writer.member("status", status)
      writer.member("bytes", bytes)
      writer.member("modified", modified)
      writer.member("revision", revision)
      writer.member("coder", origin)
      writer.member("elements", elements.map { $0.with { $0.resolved = nil } })
      writer.member("state", state.map { JSONText(compact: $0.jsonText) })
    }
  }
}
