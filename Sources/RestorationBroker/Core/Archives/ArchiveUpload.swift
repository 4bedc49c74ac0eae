// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A document being imported, checked object by object in pieces, so that others are served in between. Pointers of
/// errors are into the whole document, even if it comes in parts.
struct ArchiveUpload {
  /// The limit of one piece, in bytes of the document: some milliseconds' work.
  struct Piece {
    private var bytesLeft = 256 << 10

    var isOver: Bool { bytesLeft <= 0 }

    mutating func use(_ bytes: Int) { bytesLeft -= bytes }
  }

  enum Progress {
    case paused
    /// The part was read, and others follow.
    case read
    case planned(ImportPlan)
  }

  /// An import is dropped if its next part does not come within this time.
  static let idleMilliseconds: Int64 = 60_000
  /// The pause between two pieces, in which other input is read.
  static let pauseMilliseconds: Int64 = 1

  let token: String
  let application: ApplicationName
  private(set) var objects: [UploadedObject] = []
  private(set) var states = 0
  /// Whether states are missing that existed when the document was made.
  private(set) var isIncomplete = false
  /// Its approximate memory.
  private(set) var charge = 0
  /// Whether the call with the last part that came has yet to be answered.
  private(set) var isUnderWay = false
  /// Objects of that part.
  private var unread: ArraySlice<JSONText> = []
  private var plan: ImportPlan?

  init(token: String, application: ApplicationName) { (self.token, self.application) = (token, application) }

  /// Does a piece of the call. `roomLeft`: bytes that all imports may still read; `last`: the newest node there.
  mutating func goOn(
    _ request: ImportArchive,
    _ limits: Limits,
    roomLeft: Int,
    above last: NodeID
  ) throws(ErrorObject) -> Progress {
    var piece = Piece()
    if !isUnderWay {
      if let document = request.document { try begin(document, at: "/document", limits, &piece) }
      if let part = request.part { try begin(part, at: "/part", limits, &piece) }
    }
    guard try read(limits, roomLeft: roomLeft, &piece) else { return .paused }
    if isIncomplete, !request.force {
      throw .restoration(
        .needsForce,
        "states are missing in the document: it was exported without confidential ones, or some could not be read",
        hint: "Export it with reveal: true, or use force: true to import the rest."
      )
    }
    if request.more {
      (unread, isUnderWay) = ([], false)
      return .read
    }
    guard let plan = try makePlan(above: last, &piece) else { return .paused }
    guard plan.headBytes <= limits.archiveBytesMax else {
      throw .limitExceeded("archiveBytesMax", max: limits.archiveBytesMax, value: plan.headBytes)
    }
    return .planned(plan)
  }

  // MARK: Pieces

  /// Takes a document or its next part; `place` is its JSON pointer in the parameters.
  private mutating func begin(
    _ part: JSONSlice,
    at place: String,
    _ limits: Limits,
    _ piece: inout Piece
  ) throws(ErrorObject) {
    let document = try ArchiveDocument(part, at: place)
    if document.redacted { isIncomplete = true }
    let count = objects.count + document.objects.count
    guard count <= limits.objectsPerApplicationMax else {
      throw .limitExceeded("objectsPerApplicationMax", max: limits.objectsPerApplicationMax, value: count)
    }
    objects.reserveCapacity(count)
    (unread, isUnderWay) = (document.objects[...], true)
    // Finding the objects takes a fraction of the time of reading them.
    piece.use(part.text.count / 8)
  }

  /// Reads objects and checks each by itself. Returns whether the whole part was read.
  private mutating func read(_ limits: Limits, roomLeft: Int, _ piece: inout Piece) throws(ErrorObject) -> Bool {
    let before = charge
    while !piece.isOver, let text = unread.popFirst() {
      do throws(ErrorObject) {
        let document = try DocumentObject(text)
        try Self.check(document, limits)
        let object = try UploadedObject(document)
        let bytes = text.count + object.overhead
        charge += bytes
        piece.use(bytes)
        if document.state != nil { states += 1 }
        if document.missing != nil { isIncomplete = true }
        objects.append(object)
      } catch {
        throw error.below("/document/objects/\(objects.count)")
      }
      guard charge - before <= roomLeft else {
        let max = 2 * limits.archiveBytesMax
        throw .limitExceeded("archiveBytesMax", max: max, value: max - roomLeft + charge - before)
      }
    }
    return unread.isEmpty
  }

  /// Continues the plan of the whole document; `nil` while there is more to do. If other nodes have taken its ids
  /// meanwhile, it starts again, with room for more.
  private mutating func makePlan(above last: NodeID, _ piece: inout Piece) throws(ErrorObject) -> ImportPlan? {
    var plan = self.plan.take() ?? ImportPlan(after: last)
    if plan.last < last { plan = ImportPlan(after: last + NodeID(objects.count)) }
    let isComplete = try plan.goOn(objects, &piece)
    self.plan = plan
    return isComplete ? plan : nil
  }

  // MARK: One object

  private static func check(_ object: DocumentObject, _ limits: Limits) throws(ErrorObject) {
    if let path = object.path {
      for (index, component) in path.components.enumerated() where RestorationIdentifier.split(component) == nil {
        throw .invalidComponent(of: path, "/path/\(index)")
      }
      guard path.bytes <= limits.pathBytesMax else {
        let error = ErrorObject.limitExceeded("pathBytesMax", max: limits.pathBytesMax, value: path.bytes, path: path)
        throw error.below("/path")
      }
    }
    if let state = object.state { try check(state, path: object.path, limits) }
    if let state = object.beforeClaim {
      do throws(ErrorObject) {
        try check(state, path: object.path, limits)
      } catch {
        throw error.below("/beforeClaim")
      }
    }
  }

  private static func check(_ state: DocumentState, path: IdentifierPath?, _ limits: Limits) throws(ErrorObject) {
    let encoded = state.state
    try encoded.checkKeys(path: path)
    // References by path are longer than encoded ones, so each counts as much as the shortest.
    let references = encoded.references
    let referenceBytes = references.reduce(0) { $0 + $1.objectRange.count }
    let elements = state.elements?.text.count ?? 0
    let bytes = encoded.text.count - referenceBytes + 20 * references.count + elements
    // For the same reason one may be a level deeper.
    let depth = encoded.depth - (references.isEmpty ? 0 : 1)
    let given = state.references.reduce(encoded.text.count + elements) { bytes, reference in
      bytes + ArchiveReferences.bytes(pathBytes: reference.target?.jsonBytes ?? 0) - reference.range.count
    }
    do throws(ErrorObject) {
      try encoded.checkSize(bytes: bytes, depth: depth, path: path, limits)
      try limits.requireReadable(bytes: given, path: path)
    } catch {
      throw error.below("/state")
    }
  }
}
