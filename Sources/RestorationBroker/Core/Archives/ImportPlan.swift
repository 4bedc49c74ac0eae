// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A checked document. It is made in pieces, so that the turn that writes it does nothing else.
struct ImportPlan {
  struct State {
    var text: ArraySlice<UInt8>
    var references: String?
    var elements: String?
    var writer: StateOrigin
    var written: Int64

    fileprivate var bytes: Int { text.count + (references?.utf8.count ?? 0) + (elements?.utf8.count ?? 0) }
  }

  struct Object {
    var record: NodeRecord
    var isEarly: Bool
    var state: State?
    var beforeClaim: State?
  }

  /// Its nodes have the ids that follow this one.
  let last: NodeID
  private(set) var objects: [Object] = []
  /// Its nodes, without states.
  private(set) var tree = NodeTree()
  /// Bytes of the head that it makes.
  private(set) var headBytes = 0
  private(set) var stateBytes = 0
  private(set) var states = 0
  private var places: [PathText: Int] = [:]
  private var writers: Set<StateOrigin> = []
  /// Objects whose states are planned.
  private var planned = 0

  init(after last: NodeID) { self.last = last }

  /// Checks the tree of the objects first, then the targets of references. Returns whether the plan is complete.
  mutating func goOn(_ uploaded: [UploadedObject], _ piece: inout ArchiveUpload.Piece) throws(ErrorObject) -> Bool {
    while planned < uploaded.count {
      if piece.isOver { return false }
      let isNew = objects.count < uploaded.count
      let place = isNew ? objects.count : planned
      let object = uploaded[place]
      piece.use(object.overhead + (isNew ? 0 : object.stateBytes))
      do throws(ErrorObject) {
        if isNew { try add(object) } else { try planStates(of: object) }
      } catch {
        throw error.below("/document/objects/\(place)")
      }
    }
    return true
  }

  // MARK: The tree

  private mutating func add(_ object: UploadedObject) throws(ErrorObject) {
    let (document, path) = (object.document, object.path?.path)
    let parent = try parent(of: object)
    if document.isApplication, tree.applicationNode != nil {
      throw .invalidParameter("/kind", "the application is given twice", hint: "Give it once.")
    }
    if let path, let text = object.path, places.updateValue(objects.count, forKey: text) != nil {
      throw .restoration(
        .duplicatePath,
        "two objects of the document have the path \(path)",
        hint: "Give each path once in a document.",
        path: path,
        details: ["pointer": "/path", "owners": []]
      )
    }
    let record = NodeRecord(
      node: node(at: objects.count),
      parent: parent.map(node(at:)),
      component: path?.components.last,
      kind: document.isApplication ? .application : NodeKind(document.kind),
      classes: StateOrigin.text(ofClasses: document.classes),
      restorationClass: document.restorationClass,
      storyboard: document.storyboard,
      keepsForever: document.keep == .forever,
      isConfidential: document.confidential
    )
    // Kind and parent must give the object the path that it states (R4).
    let actual = tree.path(of: tree.insert(record))
    guard actual == path else {
      throw .invalidParameter(
        "/path",
        "by its parent and kind, the object's path is \(actual?.description ?? "none")",
        hint: "Give that path, or another parent."
      )
    }
    objects.append(Object(record: record, isEarly: document.isEarly))
  }

  private func node(at place: Int) -> NodeID { last + 1 + NodeID(place) }

  /// The place of the parent: the given one, otherwise that of the path.
  private func parent(of object: UploadedObject) throws(ErrorObject) -> Int? {
    if let parent = object.document.parent {
      guard parent < objects.count else {
        throw .restoration(
          .unknownParent,
          "the document has no object \(parent) before this one",
          hint: "Put parents before children.",
          details: ["pointer": "/parent"]
        )
      }
      return parent
    }
    guard let above = object.path?.parent else { return nil }
    guard let parent = places[above] else {
      throw .restoration(
        .unknownParent,
        "the document has no object \(above.path) before this one",
        hint: "Put parents before children, even parents without state.",
        path: above.path,
        details: ["pointer": "/path"]
      )
    }
    return parent
  }

  // MARK: States

  private mutating func planStates(of object: UploadedObject) throws(ErrorObject) {
    if let given = object.document.state {
      let state = try stored(given, object.targets)
      stateBytes += state.bytes
      headBytes += state.bytes + (writers.insert(state.writer).inserted ? state.writer.stored.utf8.count : 0)
      objects[planned].state = state
      states += 1
    }
    if let given = object.document.beforeClaim {
      do throws(ErrorObject) {
        objects[planned].beforeClaim = try stored(given, object.targetsBeforeClaim)
      } catch {
        throw error.below("/beforeClaim")
      }
    }
    headBytes += objects[planned].record.textBytes
    planned += 1
  }

  /// The state with node ids in its references (R6, R14), copied here to spare the turn that writes it.
  private func stored(_ document: DocumentState, _ targets: [PathText?]) throws(ErrorObject) -> State {
    var references: [(range: Range<Int>, target: NodeID?)] = []
    for (reference, target) in zip(document.references, targets) {
      let place = target.flatMap { places[$0] }
      if let target, place == nil { throw .unknownTarget(JSONText(target.path.json)) }
      references.append((reference.range, place.map(node(at:))))
    }
    let given = document.state.text.bytes
    let (text, table) = references.isEmpty ? (Array(given)[...], nil) : ArchiveReferences.store(references, in: given)
    return State(
      text: text,
      references: table,
      elements: document.elements?.text.string,
      writer: StateOrigin(document.writer),
      written: document.writer.written.milliseconds
    )
  }
}

extension StateOrigin {
  fileprivate init(_ writer: DocumentState.Writer) {
    self.init()
    (classes, role, bundleVersion) = (writer.classes, writer.process, writer.bundleVersion)
    (userInterfaceIdiom, systemVersion, storyboard) =
      (writer.userInterfaceIdiom, writer.systemVersion, writer.storyboard)
  }
}
