// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Checks what becomes of one archive on several hosts, beside what `HistoryChecker` checks of any.
///
/// 8. Acknowledgements of two hosts do not interleave without a hand-over.
/// 9. An acknowledged state that the last reader does not find is in a copy that was set aside, and named. If a state is
///    acknowledged only when the replica has it, there is none.
package final class HostsChecker {
  /// What a host does from an opening of the archive to the next one.
  package final class Session {
    package let host: String
    fileprivate let number: Int
    fileprivate let opened: Int
    /// Another host has the archive, or may have it, and this one has not heard of that: until then it may go on.
    fileprivate var isDeposed: Bool
    /// Others have to hear of it before they acknowledge anything more.
    fileprivate let isOwner: Bool
    /// What was there.
    fileprivate var base: [Path: HistoryChecker.Push] = [:]
    fileprivate var written: [Path: [HistoryChecker.Push]] = [:]

    fileprivate init(_ host: String, _ number: Int, opened: Int, isDeposed: Bool) {
      (self.host, self.number, self.opened) = (host, number, opened)
      (self.isDeposed, isOwner) = (isDeposed, !isDeposed)
    }
  }

  /// One that was sent.
  package struct Write {
    package let push: HistoryChecker.Push
    fileprivate let session: Session
    fileprivate var sent: Int
    fileprivate let expectation: HistoryChecker.Expectation
  }

  /// What a host has kept of what others have replaced.
  package struct Copy {
    package let name: String
    /// Whether somebody was told.
    package let isNamed: Bool
    package let bytes: [UInt8]

    package init(name: String, isNamed: Bool, bytes: [UInt8]) {
      (self.name, self.isNamed, self.bytes) = (name, isNamed, bytes)
    }
  }

  /// What a host may answer that does not have the archive, or does not reach the replica.
  package static let refusals: Set = ["ownedElsewhere", "archiveUnreadable", "storeFailed", "fenced"]

  package let application: String
  private let waitsForReplica: Bool
  private let checker: HistoryChecker
  private let trace: Trace
  private var now = 0
  private var sessions: [Session] = []
  private var answered: [HistoryChecker.Push] = []
  package private(set) var lastSequence: Int64 = 0

  /// - Parameter waitsForReplica: A state is acknowledged when the replica has it.
  package init(_ application: String, waitsForReplica: Bool, _ trace: Trace) {
    (self.application, self.waitsForReplica, self.trace) = (application, waitsForReplica, trace)
    checker = HistoryChecker(trace)
  }

  private func next() -> Int {
    now += 1
    return now
  }

  /// How many were acknowledged.
  package var writes: Int { answered.count }
  package var reads: Int { checker.reads }

  // MARK: What happens

  /// A host has the archive.
  ///
  /// - Parameters:
  ///   - inTrouble: The one before may have something that it could not send.
  ///   - isDeposed: Another host has the archive, of which this one has not heard yet.
  package func opened(on host: String, byForce: Bool, inTrouble: Bool, isDeposed: Bool = false) -> Session {
    let session = Session(host, sessions.count, opened: next(), isDeposed: isDeposed)
    if !waitsForReplica, inTrouble || byForce { checker.removing(application) }
    if byForce { for other in sessions where other.host != host { other.isDeposed = true } }
    sessions.append(session)
    trace.add("\(host) \(isDeposed ? "believes that it has" : "has") the archive\(byForce ? " by force" : "")")
    return session
  }

  /// Another host has the archive, or will have it, before this one hears of that.
  package func deposed(_ host: String) {
    for session in sessions where session.host == host { session.isDeposed = true }
  }

  package func send(_ path: Path, by session: Session, padding: Int = 0) -> Write {
    let push = checker.push(path, of: application, over: session.number, padding: padding)
    session.written[path, default: []].append(push)
    trace.add("\(session.host) writes \(push.value) at \(path)")
    return Write(push: push, session: session, sent: next(), expectation: checker.expectation(application))
  }

  /// The host was frozen, and can read it only now.
  package func arriving(_ write: Write) -> Write {
    var write = write
    write.sent = next()
    return write
  }

  package func acknowledged(_ write: Write, _ sequence: Int64?) {
    let session = write.session
    trace.add("\(session.host) acknowledges \(write.push.value) as change \(sequence ?? 0)")
    answered.append(write.push)
    lastSequence = sequence ?? lastSequence
    checker.acknowledge(write.push, at: write.push.place.path, of: application, sequence, since: write.expectation)
    guard !session.isDeposed || waitsForReplica else { return }
    if let owner = owner(after: session, before: write.sent) {
      trace.fault("\(session.host) acknowledges \(write.push.value), which it got after \(owner.host) had the archive")
    }
  }

  /// Another host that has had the archive since, before that time.
  private func owner(after session: Session, before time: Int = .max) -> Session? {
    sessions.last { $0.isOwner && $0.host != session.host && $0.opened > session.opened && $0.opened < time }
  }

  package func expectation() -> HistoryChecker.Expectation { checker.expectation(application) }

  package func read(_ path: Path, _ state: JSONValue?, _ expectation: HistoryChecker.Expectation, by session: Session) {
    trace.add("\(session.host) reads \(state?["v"]?.integer ?? 0) at \(path)")
    if session.base[path] == nil, session.written[path] == nil { session.base[path] = push(state) }
    // Until it hears that another one has the archive, it shows what it had.
    guard !session.isDeposed, owner(after: session) == nil else { return }
    // A host shows what it has written itself, though the replica may not have it yet.
    let isOwn = push(state).map { sessions[$0.link].host == session.host } ?? false
    checker.read(path, of: application, state, expectation, by: session.host, isKept: !waitsForReplica || !isOwn)
  }

  private func push(_ state: JSONValue?) -> HistoryChecker.Push? {
    let value = state?["v"]?.integer.map { Int($0) }
    return sessions.lazy.flatMap { $0.written.values.joined() }.first { $0.value == value }
  }

  // MARK: The end

  /// Whether this has all that was acknowledged. If not, hosts that have lost the archive have not all been told yet.
  package func isComplete(_ states: [Path: JSONValue]) -> Bool {
    answered.allSatisfy { isIn(push(states[$0.place.path]), $0) }
  }

  /// Every host has opened the archive since the last fault, and this is what the last one reads.
  package func ended(_ states: [Path: JSONValue], _ copies: [Copy]) {
    for copy in copies where !copy.isNamed { trace.fault("nobody was told of \(copy.name)") }
    for push in answered where !isIn(self.push(states[push.place.path]), push) {
      if waitsForReplica {
        trace.fault("\(push.value) was acknowledged, and is lost")
      } else if !isKept(push, in: copies) {
        trace.fault("\(push.value) was acknowledged, and is lost and in no copy")
      }
    }
  }

  /// Whether whoever wrote `last` had `push` before.
  private func isIn(_ last: HistoryChecker.Push?, _ push: HistoryChecker.Push) -> Bool {
    var last = last
    while let current = last {
      let session = sessions[current.link]
      let written = session.written[current.place.path] ?? []
      if written.prefix(while: { $0.value <= current.value }).contains(where: { $0 === push }) { return true }
      last = session.base[current.place.path]
    }
    return false
  }

  private func isKept(_ push: HistoryChecker.Push, in copies: [Copy]) -> Bool {
    let later = sessions.flatMap { $0.written[push.place.path] ?? [] }.filter { isIn($0, push) }
    return copies.contains { copy in later.contains { Self.contains(copy.bytes, $0) } }
  }

  /// Whether the file has the state: texts are in it as they were sent.
  private static func contains(_ bytes: [UInt8], _ push: HistoryChecker.Push) -> Bool {
    let text = Array(push.state.utf8.prefix { $0 != UInt8(ascii: ",") }) + [UInt8(ascii: ",")]
    return !bytes.isEmpty && bytes.firstRange(of: text) != nil
  }
}
