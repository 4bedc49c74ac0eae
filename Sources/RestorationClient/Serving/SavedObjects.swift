// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// One object of an archive with its state.
public struct SavedObject: Hashable, Sendable {
  /// Its handle now; nil where nobody claims it.
  public let object: Int64?
  /// Its path in what was read.
  public let path: [String]
  /// What the object is to its application.
  public let kind: ObjectKind
  /// The class and superclasses that the archive recorded; empty where none was given.
  public let classes: [String]
  /// Role of the process that owns it or wrote it last.
  public let process: String?
  /// Whether its owner left without closing it (R13).
  public let orphaned: Bool
  /// Whether there is a state, and if so whether it can be read and is handed out.
  public let status: StateAvailability
  /// Nil unless available or quarantined, and where it is redacted.
  public let state: RestorableState?
  /// Who wrote the state; nil where there is none.
  public let origin: StateOrigin?
  /// Selected and topmost elements written with the state.
  public let elements: [RestorableElement]
  /// Bytes of the state as stored.
  public let bytes: Int
  /// When the state was written; nil where there is none.
  public let modified: SavedTime?
  /// Whether its state is shown only when asked for.
  public let confidential: Bool
  /// Whether that is why the state is left out.
  public let redacted: Bool

  /// Nil where a member has another form than the protocol gives it.
  init?(_ wire: ArchivedObject) {
    guard let elements = RestorableElement.read(wire.elements) else { return nil }
    object = wire.object
    path = wire.path.components
    kind = ObjectKind(wire.kind)
    classes = wire.classes
    process = wire.process
    orphaned = wire.orphaned
    status = StateAvailability(wire.status)
    state = wire.state.map(RestorableState.init)
    origin = wire.coder.flatMap(StateOrigin.init)
    self.elements = elements
    bytes = wire.bytes
    modified = wire.modified.map(SavedTime.init)
    confidential = wire.confidential
    redacted = wire.redacted
  }
}

/// The objects of an archive, read page by page as they are asked for.
///
/// All of one iteration are of the same moment, whatever is written meanwhile. Each iteration reads anew.
public struct SavedObjects: AsyncSequence, Sendable {
  /// One object of the archive.
  public typealias Element = SavedObject

  let connection: BrokerConnection
  let generation: Int64?
  let reveal: Bool
  let application: String?

  /// Begins to read.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(objects: self)
  }

  /// Reads the objects one after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let objects: SavedObjects
    private var page: [SavedObject] = []
    private var index = 0
    private var cursor: String?
    private var hasEnded = false

    init(objects: SavedObjects) {
      self.objects = objects
    }

    /// The next object; nil after the last one. Throws what a call throws.
    public mutating func next() async throws -> SavedObject? {
      while index == page.count {
        if hasEnded { return nil }
        try await turnPage()
      }
      defer { index += 1 }
      return page[index]
    }

    private mutating func turnPage() async throws {
      let call = ReadArchive().with {
        $0.generation = objects.generation
        $0.cursor = cursor
        $0.reveal = objects.reveal
      }
      let reply = try await objects.connection.perform(call, application: objects.application)
      page = reply.objects.compactMap(SavedObject.init)
      guard page.count == reply.objects.count else {
        throw objects.connection.unexpectedAnswer(to: ReadArchive.method)
      }
      index = 0
      cursor = reply.cursor
      hasEnded = cursor == nil
    }
  }
}
