// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// The sessions of an application, and the connections that name it.
///
/// Invariants:
/// 1. The number of a durable session is never reused; tokens are random.
/// 2. A session is live until it ends. Its record stays while it is the last owner of a node (R13).
package struct SessionTable {
  private var live: [SessionID: Session] = [:]
  private var ended: [SessionID: SessionRecord] = [:]
  package private(set) var last: SessionID = 0
  private var clients: Set<ClientID> = []
  private var verified: Set<SessionID> = []
  /// Probes without an answer.
  private var probes = 0
  package private(set) var lastUsed: Int64 = 0

  package init() {}

  package subscript(number: SessionID) -> Session? { live[number] }
  /// Sessions that began on another host have no token here.
  package subscript(token token: String) -> Session? {
    token.isEmpty ? nil : live.values.first { $0.token == token }
  }

  package var values: Dictionary<SessionID, Session>.Values { live.values }
  package var byNumber: [SessionID: Session] { live }
  package var inOrder: [Session] { live.values.sorted { $0.id < $1.id } }
  package var count: Int { live.count }
  package var isEmpty: Bool { live.isEmpty }
  package var held: Int {
    live.values.reduce(live.count + clients.count + verified.count + probes) { $0 + $1.polled.count + $1.objects.count }
  }
  package var allAreDiscarded: Bool { live.values.allSatisfy(\.isDiscarded) }

  package func ended(_ number: SessionID) -> SessionRecord? { ended[number] }

  // MARK: Coming and going

  /// Loads the sessions of an opened archive. They continue with what is known about them.
  package mutating func load(
    _ records: [SessionRecord],
    last: SessionID,
    former: [SessionID: Session],
    lastUsed: Int64
  ) {
    self.last = last
    ended = Dictionary(uniqueKeysWithValues: records.filter { $0.ending != nil }.map { ($0.session, $0) })
    live = [:]
    for record in records where record.ending == nil {
      live[record.session] = Session(record, former: former[record.session], lastUsed: lastUsed)
    }
  }

  func count(of process: ClientProcess) -> Int { live.values.count { $0.facts.process == process } }

  package mutating func begin(_ facts: SessionFacts, in turn: borrowing Turn) -> Session {
    last += 1
    let (high, low) = turn.settings.random()
    let session = Session(id: last, token: Self.hex(high) + Self.hex(low), facts: facts)
    let now = turn.now.monotonic
    (session.lastUsed, session.lastRegistered, session.began) = (now, now, now)
    live[last] = session
    return session
  }

  /// - Parameter restorations: the number of restorations completed by then.
  package mutating func end(_ session: Session, _ ending: SessionEnding, restorations: Int64, in turn: inout Turn) {
    var record = SessionRecord(session: session.id, token: session.token, facts: session.facts.ofEnded.stored)
    record.ending = ending.rawValue
    record.ended = turn.now.wall
    record.restorationsAtEnd = restorations
    live[session.id] = nil
    ended[session.id] = record
    turn.write(.session(record))
  }

  /// Since when the node is unclaimed, and the number of restorations completed by then (R13).
  func orphaned(_ node: Node) -> (since: Int64, restorations: Int64)? {
    guard node.isVacant, let claim = node.claimRecord else { return nil }
    if claim.released != 0 { return (claim.released, claim.restorationsAtRelease) }
    return ended[claim.session].map { ($0.ended, $0.restorationsAtEnd) }
  }

  /// How it has ended, also if only its process has; `nil` if it lives or is unknown.
  func ending(of session: SessionID) -> SessionEnding? {
    if let session = live[session] { return session.exit.map { SessionEnding($0) } }
    return ended[session]?.ending.flatMap { SessionEnding(rawValue: $0) }
  }

  package mutating func forgetEnded(besides claimed: Set<SessionID>, in turn: inout Turn) {
    let forgotten = ended.keys.filter { !claimed.contains($0) }.sorted()
    guard !forgotten.isEmpty else { return }
    for session in forgotten { ended[session] = nil }
    turn.write(.forgetSessions(forgotten))
  }

  private static func hex(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  // MARK: Connections

  package func isConnected(_ client: ClientID) -> Bool { clients.contains(client) }

  package mutating func connect(_ client: ClientID, in turn: borrowing Turn) throws(ErrorObject) {
    let max = turn.limits.connectionsPerApplicationMax
    guard clients.count < max else {
      throw .limitExceeded("connectionsPerApplicationMax", max: max, value: clients.count + 1)
    }
    clients.insert(client)
  }

  package mutating func use(in turn: borrowing Turn) { lastUsed = turn.now.monotonic }

  package mutating func disconnect(_ client: ClientID) { clients.remove(client) }

  // MARK: Processes

  /// No session is expected to do anything.
  package var isIdle: Bool {
    probes == 0 && live.values.allSatisfy { $0.client == nil && $0.poll == nil && !$0.hasExited }
  }

  /// Passes the call to `probed` once it is known which of the sessions' processes have ended.
  package mutating func probe(_ sessions: [SessionID], for call: ProbedCall, in turn: inout Turn) {
    probes += 1
    turn.ask(.probe(turn.application, sessions, call))
  }

  /// The sessions that still live count as alive while the probing call continues (R1).
  package mutating func probed(_ sessions: [SessionID]) {
    probes -= 1
    verified = Set(sessions)
  }

  package mutating func endVerification() { verified = [] }

  package func isVerified(_ session: Session) -> Bool { verified.contains(session.id) }

  package var isVerifying: Bool { !verified.isEmpty }
}
