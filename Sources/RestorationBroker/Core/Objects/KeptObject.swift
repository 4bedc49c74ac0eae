// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// What the next broker is told of an object whose state is kept off the disk.
struct KeptObject: StoredFacts, Equatable {
  var object: ObjectHandle = 0
  /// The oldest first.
  var states: [KeptText] = []

  init() {}

  init(object: ObjectHandle, states: [KeptText]) { (self.object, self.states) = (object, states) }

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("object", count: &object)
    try members.stored("states", &states)
  }
}

struct KeptText: StoredFacts, Equatable {
  private var text = ""
  private var references: String?
  private var elements: String?
  private(set) var origin = StateOrigin()
  private var revision: Int64 = 0
  private var written: Int64 = 0
  private var isEarly = false

  init() {}

  init(_ record: StateRecord, _ origin: StateOrigin) {
    text = String(decoding: record.text, as: UTF8.self)
    (references, elements, self.origin) = (record.references, record.elements, origin)
    (revision, written, isEarly) = (record.revision, record.written, record.isEarly)
  }

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("text", &text)
    try members.stored("references", &references)
    try members.stored("elements", &elements)
    try members.stored("origin", &origin)
    try members.stored("revision", someCount: &revision)
    try members.stored("written", count: &written)
    try members.stored("early", &isEarly, unless: false)
  }

  func record(of node: NodeID, by session: SessionID) -> StateRecord {
    StateRecord(
      node: node,
      context: 0,
      session: session,
      revision: revision,
      isEarly: isEarly,
      written: written,
      text: ArraySlice(text.utf8),
      references: references,
      elements: elements
    )
  }
}
