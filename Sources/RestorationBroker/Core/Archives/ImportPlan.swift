// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A checked document: what will be written, with places in the document instead of node ids.
struct ImportPlan {
  /// A state whose references are places.
  struct State {
    var text: ArraySlice<UInt8>
    var references: [Reference]
    var elements: String?
    var writer: StateOrigin
    var written: Int64
  }

  /// A reference in a state's text; `nil` leads to nothing.
  struct Reference {
    var range: Range<Int>
    var target: Int?
  }

  struct Object {
    /// Node and parent are places plus one.
    var record: NodeRecord
    var state: State?
    var isEarly: Bool
    var beforeClaim: State?
  }

  private(set) var objects: [Object] = []

  /// Checks that the objects are a tree, and the targets of references.
  init(_ upload: ArchiveUpload) throws(ErrorObject) {
    var places: [IdentifierPath: Int] = [:]
    for (place, object) in upload.objects.enumerated() {
      do throws(ErrorObject) {
        let parent = try Self.parent(of: object, at: place, places)
        if object.isApplication, objects.contains(where: { $0.record.kind == .application }) {
          throw .invalidParameter("/kind", "the application is given twice", hint: "Give it once.")
        }
        objects.append(Object(record: Self.record(of: object, at: place, below: parent), isEarly: object.isEarly))
        guard let path = object.path else { continue }
        guard places.updateValue(place, forKey: path) == nil else {
          throw .restoration(
            .duplicatePath,
            "two objects of the document have the path \(path)",
            hint: "Give each path once in a document.",
            path: path,
            details: ["pointer": "/path", "owners": []]
          )
        }
      } catch {
        throw error.below("/document/objects/\(place)")
      }
    }
    try checkPaths(upload.objects)
    for (place, object) in upload.objects.enumerated() {
      do throws(ErrorObject) {
        objects[place].state = try object.state.map { state throws(ErrorObject) in try Self.state(state, places) }
        objects[place].beforeClaim = try object.beforeClaim.map { state throws(ErrorObject) in
          do throws(ErrorObject) {
            return try Self.state(state, places)
          } catch {
            throw error.below("/beforeClaim")
          }
        }
      } catch {
        throw error.below("/document/objects/\(place)")
      }
    }
  }

  /// The place of the parent: the given one, otherwise that of the path.
  private static func parent(
    of object: DocumentObject,
    at place: Int,
    _ places: [IdentifierPath: Int]
  ) throws(ErrorObject) -> Int? {
    if let parent = object.parent {
      guard parent < place else {
        throw .restoration(
          .unknownParent,
          "the document has no object \(parent) before this one",
          hint: "Put parents before children.",
          details: ["pointer": "/parent"]
        )
      }
      return parent
    }
    guard let path = object.path, path.components.count > 1 else { return nil }
    let above = IdentifierPath(path.components.dropLast())
    guard let parent = places[above] else {
      throw .restoration(
        .unknownParent,
        "the document has no object \(above) before this one",
        hint: "Put parents before children, even parents without state.",
        path: above,
        details: ["pointer": "/path"]
      )
    }
    return parent
  }

  private static func record(of object: DocumentObject, at place: Int, below parent: Int?) -> NodeRecord {
    NodeRecord(
      node: NodeID(place) + 1,
      parent: parent.map { NodeID($0) + 1 },
      component: object.path?.components.last,
      kind: object.isApplication ? .application : NodeKind(object.kind),
      classes: StateOrigin.text(ofClasses: object.classes),
      restorationClass: object.restorationClass,
      storyboard: object.storyboard,
      keepsForever: object.keep == .forever,
      isConfidential: object.confidential
    )
  }

  /// Kinds and parents must give each object the path that it states (R4).
  private func checkPaths(_ documents: [DocumentObject]) throws(ErrorObject) {
    let tree = makeTree(after: 0)
    for (place, document) in documents.enumerated() {
      let path = tree.nodes[NodeID(place) + 1].flatMap { tree.path(of: $0) }
      guard path == document.path else {
        throw .invalidParameter(
          "/document/objects/\(place)/path",
          "by its parent and kind, the object's path is \(path?.description ?? "none")",
          hint: "Give that path, or another parent."
        )
      }
    }
  }

  /// Bytes of the head that it makes, with node ids that follow `last`.
  func headBytes(after last: NodeID) -> Int {
    let writers = Set(objects.compactMap { $0.state?.writer })
    return objects.reduce(writers.reduce(0) { $0 + $1.stored.utf8.count }) { sum, object in
      sum + (object.state?.bytes(after: last) ?? 0) + object.record.textBytes
    }
  }

  /// The tree of the document, with ids that follow `last`.
  func makeTree(after last: NodeID) -> NodeTree {
    var tree = NodeTree()
    for object in objects { tree.load(object.record(after: last)) }
    tree.indexAll()
    return tree
  }

  private static func state(_ document: DocumentState, _ places: [IdentifierPath: Int]) throws(ErrorObject) -> State {
    var references: [Reference] = []
    for reference in document.references {
      let place = reference.target.flatMap { places[$0] }
      if let target = reference.target, place == nil { throw .unknownTarget(JSONText(target.json)) }
      references.append(Reference(range: reference.range, target: place))
    }
    return State(
      text: document.state.text.bytes,
      references: references,
      elements: document.elements?.text.string,
      writer: StateOrigin(document.writer),
      written: document.writer.written.milliseconds
    )
  }
}

extension ImportPlan.Object {
  func record(after last: NodeID) -> NodeRecord {
    var record = record
    record.node += last
    record.parent = record.parent.map { $0 + last }
    return record
  }
}

extension ImportPlan.State {
  /// The text as it is stored and its table of references, with node ids that follow `last` (R6, R14).
  func stored(after last: NodeID) -> (text: ArraySlice<UInt8>, table: String?) {
    guard !references.isEmpty else { return (text, nil) }
    return ArchiveReferences.store(references.map { ($0.range, $0.target.map { NodeID($0) + 1 + last }) }, in: text)
  }

  /// Bytes the archive limit counts for it.
  func bytes(after last: NodeID) -> Int {
    let stored = stored(after: last)
    return stored.text.count + (stored.table?.utf8.count ?? 0) + (elements?.utf8.count ?? 0)
  }
}
