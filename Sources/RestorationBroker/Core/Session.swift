// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Names a connection to the service that carries out the effects.
package typealias ClientID = UInt64

/// Identifies a client's process even after a restart of the broker.
package struct ClientProcess: StoredFacts, Hashable {
  package var pid: Int64 = 0
  package var uid: Int64 = 0
  /// Start time in clock ticks since boot, and the boot's id: with the pid they name the process for ever.
  package var startTicks: Int64 = 0
  package var bootID = ""

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("pid", &pid)
    try members.stored("uid", &uid)
    try members.stored("startTicks", &startTicks)
    try members.stored("bootID", &bootID)
  }
}

/// A client process's session; owns the objects that it registers.
///
/// Confined to the application that holds it.
package final class Session {
  package let id: SessionID
  package let token: String
  package var facts: SessionFacts

  /// The connection that it is bound to; `nil` while it is lost or detached.
  package var client: ClientID?
  /// Whether it fetches the broker's calls and notifications by `nextRequest`; otherwise they are sent over its
  /// connection.
  var isPolling = false
  /// Its unfetched entries, and its waiting `nextRequest`.
  var polled = PollQueue()
  var poll: Caller?
  package var objects: [ObjectHandle: Node] = [:]
  /// Objects of which it has not been told where they are.
  var moved: [Node] { objects.values.filter { $0.claim?.hasMoved == true }.sorted { $0.id < $1.id } }
  /// Handles that another session has taken over, the newest 1,024 (R8).
  package private(set) var replaced: Set<ObjectHandle> = []
  /// Their nodes, for calls that name them by path; as many.
  package private(set) var replacedNodes: Set<NodeID> = []
  /// Highest revisions of nodes that it does not claim (R15). Only the claimed ones outlive the broker: what is sent
  /// again after its end is stored again.
  var revisions: [NodeID: Int64] = [:]
  /// The application's state was emptied while it lived; its writes are answered and not stored (R30).
  package var isDiscarded: Bool {
    get { facts.isDiscarded }
    set { facts.isDiscarded = newValue }
  }
  /// Its process has ended; what it sent before is still read.
  package var hasExited: Bool { exit != nil }
  /// How its process ended, once it has.
  package var exit: ProcessEnd?
  /// The unit its process says it is of, or was seen in.
  var unitName: String?
  /// It declared its own restoration complete: its pushes are no longer early (R19).
  package var hasCompletedRestoration = false
  /// The application's own state was shown to it, or is its own (R22).
  var hasOwnState = false
  /// Monotonic milliseconds of when it began or registered its last object.
  package var lastRegistered: Int64 = 0
  /// Monotonic milliseconds of when it began, or this broker did.
  var began: Int64 = 0
  /// When a call last named its token, and whether that was ever on another connection than its own.
  package var lastUsed: Int64 = 0
  package var usedElsewhere = false
  /// A detached session whose token the client has not been told yet.
  package var isUnannounced = false

  package init(id: SessionID, token: String, facts: SessionFacts) {
    (self.id, self.token, self.facts) = (id, token, facts)
  }

  /// A session of the archive.
  ///
  /// - Parameters:
  ///   - former: what this broker knew of it before the archive was reopened.
  ///   - lastUsed: the default for when it was last used.
  convenience init(_ record: SessionRecord, former: Session?, lastUsed: Int64) {
    self.init(id: record.session, token: record.token, facts: SessionFacts(stored: record.facts))
    guard let former, former.token == token else {
      (self.lastUsed, lastRegistered, began) = (lastUsed, lastUsed, lastUsed)
      // What it was shown before is unknown, as it is of its objects.
      hasOwnState = true
      unitName = facts.storyboard ?? facts.unit
      isPolling = facts.isDetached && !facts.serves.isEmpty
      return
    }
    self.lastUsed = former.lastUsed
    // What the session did last may be what was not stored.
    if former.facts.isConfined { facts.isConfined = true }
    client = former.client
    exit = former.exit
    unitName = former.unitName
    replaced = former.replaced
    replacedNodes = former.replacedNodes
    revisions = former.revisions
    usedElsewhere = former.usedElsewhere
    hasCompletedRestoration = former.hasCompletedRestoration
    (hasOwnState, lastRegistered, began) = (former.hasOwnState, former.lastRegistered, former.began)
    isPolling = former.isPolling
    polled = former.polled
    polled.removeCalls()
    poll = former.poll
  }

  /// Another session has taken an object over: writes to it fail from now on (R8).
  package func lose(_ handle: ObjectHandle? = nil, at node: NodeID) {
    if let handle { replaced.insert(newest: handle) }
    replacedNodes.insert(newest: node)
  }

  /// - Returns: whether another session had taken the node over.
  @discardableResult
  package func regain(_ node: NodeID) -> Bool { replacedNodes.remove(node) != nil }

  /// The highest revision that it has pushed to the node (R15).
  func revision(of node: Node) -> Int64 {
    if let claim = node.claim, claim.session == id { return claim.revision }
    let stored = node.state.map { $0.session == id ? $0.revision : 0 } ?? 0
    return max(stored, revisions[node.id] ?? 0)
  }

  /// Of its two counts the higher one goes on: it may send again what it has sent to either (R15).
  func joinRevisions(of gone: Node, into: Node) {
    let revision = max(revision(of: gone), revision(of: into))
    revisions[gone.id] = nil
    guard revision > 0 else { return }
    if gone.claim?.session == id {
      gone.claim?.revision = revision
    } else if into.claim?.session == id {
      into.claim?.revision = revision
    } else {
      revisions[into.id] = revision
    }
  }

  package var record: SessionRecord { SessionRecord(session: id, token: token, facts: facts.stored) }

  /// No message is sent unasked that is larger than this, in bytes, where a client does not say what it reads.
  static let pushBytesDefault = 65_536
  /// What a message has besides its method and parameters, also where `nextRequest` gives it.
  private static let envelopeBytes = 96

  /// No message is sent to it unasked that is larger than this, in bytes.
  var pushBytesMax: Int { facts.messageBytesMax.map { Int(clamping: $0) } ?? Session.pushBytesDefault }

  /// Bytes of a batch of objects for it, and about of its answer (`Protocol/limits.md`). A message has 192 bytes around
  /// them.
  func batchBytesMax(frameBytesMax: Int) -> Int { max(0, min(pushBytesMax, frameBytesMax) - 192) / 2 }

  /// Whether a message may be sent unasked to who reads so many bytes.
  static func fits(_ method: String, _ parameters: JSONText, in bytesMax: Int) -> Bool {
    parameters.count + method.utf8.count + envelopeBytes <= bytesMax
  }

  func reads(_ method: ServedMethod, _ parameters: JSONText) -> Bool {
    Session.fits(method.rawValue, parameters, in: pushBytesMax)
  }

  /// Whether it can be called and notified. A session that polls over other connections does not need its own.
  var isReachable: Bool { client != nil || isPolling && (facts.isDetached || usedElsewhere) }

  /// Its name in answers and steps.
  var owner: ObjectOwner { facts.owner }

  package func serves(_ method: ServedMethod) -> Bool { facts.serves.contains(method) }
}

extension Set<Int64> {
  /// Numbers rise: beyond 1,024, the lowest one is the oldest.
  fileprivate mutating func insert(newest number: Int64) {
    insert(number)
    if count > 1_024, let oldest = self.min() { remove(oldest) }
  }
}

/// A session's data from `initialize`, and its process; kept in the archive until the session ends.
package struct SessionFacts: StoredFacts, Hashable {
  /// The process role, such as `editor`.
  package var role: String?
  package var process: ClientProcess?
  package var bundleVersion: String?
  package var userInterfaceIdiom: Int64 = -1
  package var storyboard: String?
  /// The unit that starts its process again, if the unit's file permits that.
  package var unit: String?
  package var isDelegate = false
  package var isDetached = false
  package var isDiscarded = false
  /// A client in a sandbox has used it: it is not told who others are.
  package var isConfined = false
  package var serves: Set<ServedMethod> = []
  package var messageBytesMax: Int64?
  package var aliases = Aliases()
  /// Its restoration classes, those of them that others may make as well, and the views of its data sources (R9).
  package var restorationClasses: Set<String> = []
  package var sharedClasses: Set<String> = []
  package var dataSources: Set<NodeID> = []
  /// Objects that it registered as new ones and has not encoded: what is saved at their paths is not theirs (R29).
  var fresh = RangeSet<NodeID>()

  /// The most bytes of the text: from `initialize`, and with later roles.
  static let initialBytesMax = 64 << 10
  static let bytesMax = 2 * initialBytesMax

  package init() {}

  /// The unit of its process, as far as it outlives the session.
  var knownUnit: String? { unit ?? storyboard }

  var owner: ObjectOwner { ObjectOwner(process: role, pid: process?.pid ?? 0) }

  /// What is needed of a session that has ended while its objects are there (R13, R22, R23).
  var ofEnded: SessionFacts {
    var facts = SessionFacts()
    (facts.role, facts.process, facts.unit) = (role, process, knownUnit)
    return facts
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("idiom", &userInterfaceIdiom)
    try members.stored("delegate", &isDelegate)
    try members.stored("detached", &isDetached)
    try members.stored("discarded", &isDiscarded)
    try members.stored("confined", &isConfined, unless: false)
    try members.stored("serves", words: &serves)
    try members.stored("aliases", &aliases)
    try members.stored("role", &role)
    try members.stored("bundleVersion", &bundleVersion)
    try members.stored("storyboard", &storyboard)
    try members.stored("unit", &unit)
    try members.stored("messageBytesMax", count: &messageBytesMax)
    var (classes, shared, views) = (restorationClasses.sorted(), sharedClasses.sorted(), dataSources.sorted())
    try members.stored("classes", &classes, unless: [])
    try members.stored("shared", &shared, unless: [])
    try members.stored("dataSources", &views, unless: [])
    (restorationClasses, sharedClasses, dataSources) = (Set(classes), Set(shared), Set(views))
    try members.stored("freshRanges", nodes: &fresh, listed: "fresh")
    try members.stored("process", &process)
  }
}

/// How a session ended, for the next one (R20, R30).
package enum SessionEnding: String, Sendable {
  case closed, userQuit, restart, logout
  /// The service manager stopped its unit, which is not a crash.
  case stopped
  /// The process ended without a goodbye.
  case crashed
  /// A detached session expired, which is never a crash.
  case expired

  package init(_ reason: GoodbyeReason) {
    switch reason {
    case .closed: self = .closed
    case .userQuit: self = .userQuit
    case .restart: self = .restart
    case .logout: self = .logout
    }
  }
}
