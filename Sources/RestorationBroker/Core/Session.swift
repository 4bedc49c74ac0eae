// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

package typealias ClientID = UInt64

package struct ClientProcess: StoredFacts, Hashable {
  package var pid: Int64 = 0
  package var uid: Int64 = 0
  /// Start time in clock ticks since boot, and the boot's id: together with the pid they are unique.
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

/// A session of a client process. It owns the objects that it registers, and belongs to one application.
package final class Session {
  package let id: SessionID
  package let token: String
  package var facts: SessionFacts

  /// The connection it is bound to; `nil` while it is lost or detached.
  package var client: ClientID?
  /// Whether it fetches the broker's calls and notifications by `nextRequest` instead of getting them over its
  /// connection.
  var isPolling = false
  var polled = PollQueue()
  var poll: Caller?
  package var objects: [ObjectHandle: Node] = [:]
  /// Objects that have moved without its knowledge.
  var moved: [Node] { objects.values.filter { $0.claim?.hasMoved == true }.sorted { $0.id < $1.id } }
  /// Handles that other sessions have taken over, the newest 1,024 (R8).
  package private(set) var replaced: Set<ObjectHandle> = []
  /// Their nodes, for calls by path; as many.
  package private(set) var replacedNodes: Set<NodeID> = []
  /// Highest revisions for nodes that it does not claim (R15). Only those of claimed nodes outlive the broker: later
  /// repetitions of the others are stored again.
  var revisions: [NodeID: Int64] = [:]
  /// Where its objects were before others moved them, for a push that names them so.
  private(set) var formerPaths: [IdentifierPath: NodeID] = [:]
  /// The application's state was emptied during the session: its writes are answered but not stored (R30).
  package var isDiscarded: Bool {
    get { facts.isDiscarded }
    set { facts.isDiscarded = newValue }
  }
  /// Its process has ended; messages sent before are still handled.
  package var hasExited: Bool { exit != nil }
  package var exit: ProcessEnd?
  /// The unit that its process has named, or was seen in.
  var unitName: String?
  /// It declared its own restoration complete, so its states are no longer provisional (R19).
  package var hasCompletedRestoration = false
  /// The application's own state was shown to it, or comes from it (R22).
  var hasOwnState = false
  /// Monotonic milliseconds when it began or registered its last object.
  package var lastRegistered: Int64 = 0
  /// Monotonic milliseconds when the session began, or this broker.
  var began: Int64 = 0
  /// When a call last named its token, and whether one ever came over another connection.
  package var lastUsed: Int64 = 0
  package var usedElsewhere = false
  /// A detached session whose client has not learned its token yet.
  package var isUnannounced = false

  package init(id: SessionID, token: String, facts: SessionFacts) {
    (self.id, self.token, self.facts) = (id, token, facts)
  }

  /// A session from the archive. `former` is the session as it was before the archive was reopened, `lastUsed` the
  /// default for its last use.
  convenience init(_ record: SessionRecord, former: Session?, lastUsed: Int64) {
    self.init(id: record.session, token: record.token, facts: SessionFacts(stored: record.facts))
    guard let former, former.token == token else {
      (self.lastUsed, lastRegistered, began) = (lastUsed, lastUsed, lastUsed)
      // Deliveries by a former broker are unknown, as they are for its objects.
      hasOwnState = true
      unitName = facts.storyboard ?? facts.unit
      isPolling = facts.isDetached && !facts.serves.isEmpty
      return
    }
    self.lastUsed = former.lastUsed
    // The last change of the session may be the one that was not stored.
    if former.facts.isConfined { facts.isConfined = true }
    client = former.client
    exit = former.exit
    unitName = former.unitName
    replaced = former.replaced
    replacedNodes = former.replacedNodes
    (revisions, formerPaths) = (former.revisions, former.formerPaths)
    usedElsewhere = former.usedElsewhere
    hasCompletedRestoration = former.hasCompletedRestoration
    (hasOwnState, lastRegistered, began) = (former.hasOwnState, former.lastRegistered, former.began)
    isPolling = former.isPolling
    polled = former.polled
    polled.removeCalls()
    poll = former.poll
  }

  /// Another session has taken over an object: later writes to it fail with `replaced` (R8).
  package func lose(_ handle: ObjectHandle? = nil, at node: NodeID) {
    if let handle { replaced.insert(newest: handle) }
    replacedNodes.insert(newest: node)
  }

  /// - Returns: whether another session had taken over the node.
  @discardableResult
  package func regain(_ node: NodeID) -> Bool { replacedNodes.remove(node) != nil }

  /// Another session has moved its object.
  func noteMove(of node: NodeID, from path: IdentifierPath) {
    if formerPaths.count >= Self.formerPathsMax { formerPaths = [:] }
    formerPaths[path] = node
  }

  private static let formerPathsMax = 1_024

  /// The highest revision that it has pushed to the node (R15).
  func revision(of node: Node) -> Int64 {
    if let claim = node.claim, claim.session == id { return claim.revision }
    let stored = node.state.map { $0.session == id ? $0.revision : 0 } ?? 0
    return max(stored, revisions[node.id] ?? 0)
  }

  /// Merges the revisions of two nodes to the higher one: the session may repeat a push to either (R15).
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

  /// The most bytes of an unrequested message, unless the client says what it reads.
  static let pushBytesDefault = 65_536
  /// Bytes of a message besides its method and parameters, including those that `nextRequest` adds.
  private static let envelopeBytes = 96

  var pushBytesMax: Int { facts.messageBytesMax.map { Int(clamping: $0) } ?? Session.pushBytesDefault }

  /// Bytes of one batch of objects, and roughly of its answer (`Protocol/limits.md`). The message adds 192 bytes.
  func batchBytesMax(frameBytesMax: Int) -> Int { max(0, min(pushBytesMax, frameBytesMax) - 192) / 2 }

  /// Whether an unrequested message fits into what a client reads.
  static func fits(_ method: String, _ parameters: JSONText, in bytesMax: Int) -> Bool {
    parameters.count + method.utf8.count + envelopeBytes <= bytesMax
  }

  func reads(_ method: ServedMethod, _ parameters: JSONText) -> Bool {
    Session.fits(method.rawValue, parameters, in: pushBytesMax)
  }

  /// Whether it can be called and notified. A session that polls over other connections does not need its own.
  var isReachable: Bool { client != nil || isPolling && (facts.isDetached || usedElsewhere) }

  var owner: ObjectOwner { facts.owner }

  /// What was refused is told in any case.
  package func serves(_ method: ServedMethod) -> Bool { method == .encodeFailed || facts.serves.contains(method) }
}

extension Set<Int64> {
  /// Numbers rise, so the lowest of more than 1,024 is the oldest.
  fileprivate mutating func insert(newest number: Int64) {
    insert(number)
    if count > 1_024, let oldest = self.min() { remove(oldest) }
  }
}

/// The data of a session from `initialize`, and its process. The archive retains it until the session ends.
package struct SessionFacts: StoredFacts, Hashable {
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
  /// A client in a sandbox has used it: it is not told about other clients.
  package var isConfined = false
  package var serves: Set<ServedMethod> = []
  package var messageBytesMax: Int64?
  package var aliases = Aliases()
  /// Its restoration classes, the shared ones among them, and the views of its data sources (R9).
  package var restorationClasses: Set<String> = []
  package var sharedClasses: Set<String> = []
  package var dataSources: Set<NodeID> = []
  /// Objects that it registered as `fresh` and has not encoded: states saved at their paths are not theirs (R29).
  var fresh = RangeSet<NodeID>()

  /// The most bytes of the text as `initialize` gives it, and with later roles.
  static let initialBytesMax = 64 << 10
  static let bytesMax = 2 * initialBytesMax

  package init() {}

  /// The unit of its process, as far as it outlives the session.
  var knownUnit: String? { unit ?? storyboard }

  var owner: ObjectOwner { ObjectOwner(process: role, pid: process?.pid ?? 0) }

  /// Facts about an ended session that its vacant objects still need (R13, R22, R23).
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

/// How a session ended; the next one learns of it (R20, R30).
package enum SessionEnding: String, Sendable {
  case closed, userQuit, restart, logout
  /// The service manager stopped its unit, which is not a crash.
  case stopped
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
