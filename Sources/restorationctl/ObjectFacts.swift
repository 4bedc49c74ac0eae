// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// All details of one object, in the head or in a generation.
struct ObjectFacts {
  let application: String
  /// `nil` for the head.
  let generation: Int64?
  /// `nil` if none was sealed, and for a generation.
  let newestGeneration: Int64?
  let path: IdentifierPath
  let object: any DescribedObject
  /// Details of objects of the head only.
  let head: ObjectDescription?
  /// State and elements are left out, because the object is confidential.
  let redacted: Bool
  let status: String
  let origin: ReservedKeys?
  let elements: [RestorableElement]
  let state: RestorableState?
  /// The change that stored the state; `nil` for a generation.
  let sequence: Int64?

  init(
    _ object: ObjectDescription,
    at path: IdentifierPath,
    _ decoded: DecodedState,
    reveal: Bool,
    of application: ApplicationDescription
  ) {
    (self.application, generation) = (application.application.description, nil)
    newestGeneration = application.generation
    (self.path, self.object, head) = (path, object, object)
    redacted = object.confidential && !reveal && decoded.state != nil
    (status, origin, sequence) = (decoded.status.rawValue, decoded.origin, decoded.sequence)
    elements = redacted ? [] : decoded.elements
    state = redacted ? nil : decoded.state
  }

  init(_ saved: ArchivedObject, generation: Int64, of application: String) {
    (self.application, self.generation, newestGeneration) = (application, generation, nil)
    (path, object, head) = (saved.path, saved, nil)
    (redacted, status, origin, sequence) = (saved.redacted, saved.status.rawValue, saved.origin, nil)
    (elements, state) = (saved.elements, saved.state)
  }
}

/// The details that `describeApplication` and `readArchive` share.
protocol DescribedObject {
  var object: ObjectHandle? { get }
  var kind: ObjectKind { get }
  var classes: [String] { get }
  var process: String? { get }
  var orphaned: Bool { get }
  var confidential: Bool { get }
  var bytes: Int { get }
  var modified: Timestamp? { get }
}

extension ObjectDescription: DescribedObject {}
extension ArchivedObject: DescribedObject {}

// For people
extension ObjectFacts {
  /// One fact a line, then the state.
  func text(now: Int64) -> String {
    var table = TextTable([TextTable.Column("", .right), TextTable.Column("")])
    func add(_ name: String, _ value: String?, _ colour: Colour? = nil) {
      if let value { table.add([TextTable.Cell(name + ":"), TextTable.Cell(value, colour)]) }
    }
    add("Path", path.description, .bold)
    add("Class", object.classes.isEmpty ? nil : object.classes.joined(separator: " < "))
    add("Kind", object.kind.rawValue)
    add("Owner", owner)
    add("Marks", marks.isEmpty ? nil : marks.joined(separator: ", "))
    add("Generation", generation.map { "\($0)" } ?? newestGeneration.map { "head, after \($0)" } ?? "head")
    add("Revision", head?.revision.map { "\($0)" })
    if let modified = object.modified {
      add("Modified", "\(modified.local) (\(Quantity.age(now - modified.milliseconds)) ago)")
      add("Size", Quantity.bytes(object.bytes))
    }
    add("Bundle version", origin?.bundleVersion)
    add("System version", origin?.systemVersion)
    add("Storyboard", origin?.storyboard)
    for element in elements { add(element.role == .selected ? "Selected" : "Topmost", Self.text(element)) }
    add("State", stateless, .yellow)
    let facts = table.text(header: false, width: nil)
    return state.map { "\(facts)\n\(PrettyJSON.lay(out: $0.jsonText).printableJSON)\n" } ?? facts
  }

  private var owner: String {
    let role = object.process ?? "a process without a role"
    if generation != nil { return object.process.map { "written by \($0)" } ?? "unknown" }
    if let pid = head?.pid { return "\(role), process \(pid)" }
    return "unowned" + (object.process.map { "; written by \($0)" } ?? "")
  }

  private var marks: [String] {
    var marks: [String] = []
    if object.orphaned { marks.append("orphaned") }
    if head?.included == false { marks.append("excluded") }
    if object.confidential { marks.append("confidential") }
    if head?.quarantined == true { marks.append("quarantined") }
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
  /// As described in `Protocol/restorationctl.md`.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application)
      writer.member("generation", generation)
      writer.member("path", path)
      writer.member("object", object.object)
      writer.member("kind", object.kind)
      writer.member("classes", object.classes)
      writer.member("process", object.process)
      writer.member("pid", head?.pid)
      writer.member("vacant", object.object == nil)
      writer.member("orphaned", object.orphaned)
      writer.member("included", head?.included)
      writer.member("confidential", object.confidential)
      writer.member("redacted", redacted)
      writer.member("quarantined", ifTrue: head?.quarantined ?? false)
      writer.member("status", status)
      writer.member("bytes", object.bytes)
      writer.member("modified", object.modified)
      writer.member("revision", head?.revision)
      writer.member("sequence", sequence)
      writer.member("coder", origin)
      writer.member("elements", elements.map { $0.with { ($0.resolved, $0.unresolved) = (nil, nil) } })
      writer.member("state", state.map { JSONText(compact: $0.jsonText) })
    }
  }
}
