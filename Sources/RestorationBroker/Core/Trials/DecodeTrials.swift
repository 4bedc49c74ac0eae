// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// What sessions were handed and have not answered for: a crash counts against it, and the end of a restoration waits
/// for it (R19, R21, R31).
///
/// Invariants:
/// 1. A window closes once: when its owner answers for the state or loses the object, when its time is over, or by a
///    crash, which breaks it.
/// 2. The timer of windows is set while a window is open, and while a session holds the end back.
/// 3. A decode that waits is a parked call.
/// 4. While a claimed node has an early state, the timer of early marks is set for when the first is to be cleared.
package struct DecodeTrials {
  /// A decode that waits until the states handed out before it are proven (R31).
  package struct WaitingDecode {
    package let caller: Caller
    package let session: SessionID
    package let request: DecodeRestorableState
  }

  /// What the failure of a process says about the states it was handed (R31).
  package struct Failure {
    /// States after which it showed no sign of life, and the others.
    package var unproven: Set<NodeID>
    package var proven: Set<NodeID>
    /// How many there were in all.
    package var objects: Int
    /// Whether the system said how the process ended.
    package var isCertain = true
    /// Processes that fail together have failed once.
    package var isAnother = true

    package init(unproven: Set<NodeID>, proven: Set<NodeID> = []) {
      (self.unproven, self.proven, objects) = (unproven, proven, unproven.count + proven.count)
    }

    /// The state that alone can have caused it.
    package var only: NodeID? { unproven.count == 1 ? unproven.first : nil }

    /// The same, if only these states can have caused it.
    func blaming(where mayHaveCausedIt: (NodeID) -> Bool) -> Failure {
      var failure = self
      failure.unproven = unproven.filter(mayHaveCausedIt)
      return failure
    }
  }

  private struct Standing {
    var windows: [NodeID: DecodeWindow] = [:]
    /// How many failures there had been when it was last handed a state.
    var failuresBefore = 0
    /// Nodes whose state it fetched since the last finish callback; it is told of them with the next one (R21).
    var unfinished: Set<NodeID> = []
    /// How often it holds back the end of the restoration, and until when at the longest (R21, R22).
    var extensions = 0
    var extensionEnd: Int64 = 0

    var isRestoring: Bool { !windows.isEmpty || extensions > 0 }

    mutating func open(_ node: NodeID, _ window: DecodeWindow, failures: Int) {
      failuresBefore = failures
      windows[node] = window
    }

    /// What it was handed and has shown no sign of life since.
    ///
    /// - Parameter isStrict: only a sign that came a while after the state counts.
    func unproven(since last: SignOfLife?, isStrict: Bool) -> [NodeID] {
      windows.compactMap { node, window in
        let isHeard =
          last.map {
            window.number <= $0.handedOut && (!isStrict || $0.time >= window.opened + DecodeWindow.trialMilliseconds)
          } ?? false
        return window.isProven || !window.isByCall && isHeard ? nil : node
      }
    }
  }

  /// When a session was last heard of, and how many states had been handed out before. It is noted with each message.
  private struct SignOfLife {
    let handedOut: Int
    let time: Int64
  }

  private var standings: [SessionID: Standing] = [:]
  /// Apart from the standings, which take longer to change.
  private var signs: [SessionID: SignOfLife] = [:]
  /// How many states sessions were handed.
  private var handedOut = 0
  /// Nodes whose window was open when their session crashed; the restoration is not complete without them (R19).
  private var broken: Set<NodeID> = []
  private var hasOpened = false
  private var hasTimer = false
  /// Monotonic milliseconds at which the timer of early marks fires; nil while it is not set.
  private var earlyDue: Int64?
  /// Failures of processes with open windows since the archive was opened.
  private var failures = 0
  /// In arrival order.
  private var waiting: [WaitingDecode] = []

  package init() {}

  package var isIdle: Bool { waiting.isEmpty && !standings.values.contains(where: \.isRestoring) }
  /// Zero when every client has left and nothing is under way.
  package var held: Int { waiting.count + standings.count + signs.count + (hasTimer ? 1 : 0) }
  package var hasOpenWindows: Bool { standings.values.contains { !$0.windows.isEmpty } }
  /// Something was handed out, and nothing that a crash broke is still to be answered for.
  package var isRestored: Bool { hasOpened && broken.isEmpty }
  /// Sessions that are still restoring.
  package var restoringCount: Int { standings.values.count(where: \.isRestoring) }

  package func isOpen(_ node: NodeID, for session: SessionID) -> Bool { standings[session]?.windows[node] != nil }

  // MARK: Coming and going

  /// There is nothing to be handed out.
  package mutating func beginRestored() { hasOpened = true }

  package mutating func beginRun() { (broken, hasOpened) = ([], false) }

  /// What was handed out has been removed. The restoration completes when the timer fires, or something else closes.
  package mutating func empty() {
    broken = []
    for session in standings.keys { standings[session]?.windows = [:] }
  }

  /// The archive was opened anew: windows and extensions are over, and what sessions are to be told stays.
  package mutating func resume(_ former: DecodeTrials, where isThere: (SessionID) -> Bool) {
    (broken, hasOpened) = (former.broken, former.hasOpened)
    standings = former.standings.filter { isThere($0.key) }.mapValues { Standing(unfinished: $0.unfinished) }
    signs = [:]
  }

  package mutating func sessionEnded(_ session: SessionID) { (standings[session], signs[session]) = (nil, nil) }

  // MARK: Windows

  /// A state was handed to its owner: what happens next tells whether it was good (R31).
  ///
  /// - Parameters:
  ///   - byCall: in a call of the broker, whose answer `acknowledge` is told of.
  ///   - toFactory: to make the object, which is not restored by that yet.
  package mutating func open(
    _ node: NodeID,
    for session: SessionID,
    byCall: Bool = false,
    toFactory: Bool = false,
    isPart: Bool = false,
    in turn: inout Turn
  ) {
    if !hasTimer { setTimer(DecodeWindow.milliseconds, in: &turn) }
    if !toFactory, !isPart { hasOpened = true }
    handedOut += 1
    let now = turn.now.monotonic
    let window = DecodeWindow(opened: now, number: handedOut, isByCall: byCall, isOfFactory: toFactory)
    standings[session, default: Standing()].open(node, window, failures: failures)
  }

  /// The owner has answered for the state. Returns whether that closed a window, or mended one that a crash broke.
  package mutating func close(_ node: NodeID, of session: SessionID) -> Bool {
    if standings.isEmpty, broken.isEmpty { return false }
    let wasOpen = standings[session]?.windows.removeValue(forKey: node) != nil
    return broken.remove(node) != nil || wasOpen
  }

  /// All windows of a session close without a crash; these are returned.
  package mutating func closeAll(of session: SessionID) -> [NodeID] {
    let nodes = (standings[session]?.windows.keys).map(Array.init) ?? []
    standings[session]?.windows = [:]
    broken.subtract(nodes)
    return nodes
  }

  /// A factory has outlived the state: it has made the object, which is still to take the state in.
  package mutating func closeFactory(_ node: NodeID, of session: SessionID) -> Bool {
    standings[session]?.windows[node]?.isOfFactory == true && forget(node, of: session)
  }

  /// The node's state no longer says anything about the session. Returns whether its window was open.
  @discardableResult
  package mutating func forget(_ node: NodeID, of session: SessionID) -> Bool {
    standings[session]?.windows.removeValue(forKey: node) != nil
  }

  /// The session no longer has the object. Returns whether its window was open.
  @discardableResult
  package mutating func release(_ node: NodeID, of session: SessionID) -> Bool {
    standings[session]?.unfinished.remove(node)
    return forget(node, of: session)
  }

  /// Another node takes the place of one.
  package mutating func move(_ gone: NodeID, to into: NodeID, of session: SessionID) {
    if let window = standings[session]?.windows.removeValue(forKey: gone) { standings[session]?.windows[into] = window }
    if standings[session]?.unfinished.remove(gone) != nil { standings[session]?.unfinished.insert(into) }
  }

  // MARK: Signs of life

  /// Something has come from the session, and what it was handed before has been written.
  package mutating func heard(from session: SessionID, at now: Int64) {
    if handedOut > 0 { signs[session] = SignOfLife(handedOut: handedOut, time: now) }
  }

  /// The owner has answered the call in which these states were handed to it: none of them is what it crashes of.
  package mutating func acknowledge(_ nodes: [NodeID], by session: SessionID) {
    for node in nodes { standings[session]?.windows[node]?.isProven = true }
  }

  /// The session's process has ended without a goodbye, which breaks its windows.
  ///
  /// - Parameter isStrict: suspects are being tried: only a sign of life beyond doubt counts, else the wrong one would
  ///   be found guilty.
  /// - Returns: what that says about the states; nil if it says nothing.
  package mutating func ended(
    _ session: SessionID,
    _ ending: ProcessEnding,
    isStrict: Bool,
    at now: Int64
  ) -> Failure? {
    guard let standing = standings[session], !standing.windows.isEmpty else { return nil }
    standings[session]?.windows = [:]
    broken.formUnion(standing.windows.keys)
    let unproven = Set(standing.unproven(since: signs[session], isStrict: isStrict))
    var failure = Failure(unproven: unproven, proven: Set(standing.windows.keys).subtracting(unproven))
    switch ending.isFailure {
    case true?: break
    case false?: return nil
    case nil:
      // Only what it did not live with for a while may have ended it.
      failure.unproven = unproven.filter { standing.windows[$0]?.isOnTrial(at: now) ?? false }
      guard !failure.unproven.isEmpty else { return nil }
      failure.isCertain = false
    }
    failure.isAnother = standing.failuresBefore == failures
    if failure.isAnother { failures += 1 }
    return failure
  }

  // MARK: Suspects

  /// Whether a state may be handed to its owner now: a suspect travels alone.
  package func mayHandOut(_ node: NodeID, to session: SessionID, _ blame: Blame, at now: Int64) -> Bool {
    let suspects = blame.suspects
    guard !suspects.isEmpty, let windows = standings[session]?.windows else { return true }
    let isSuspect = suspects[node] != nil
    return !windows.contains { other, window in
      other != node && window.isOnTrial(at: now) && (isSuspect || suspects[other] != nil)
    }
  }

  package mutating func wait(
    _ request: DecodeRestorableState,
    by session: SessionID,
    for caller: Caller,
    in turn: inout Turn
  ) throws(ErrorObject) {
    let client = caller.client
    try turn.requireRoom(toWaitBeside: waiting.count { $0.caller.client == client }, of: client)
    waiting.append(WaitingDecode(caller: caller, session: session, request: request))
    turn.ask(.park(caller))
    watch(in: &turn)
  }

  /// Ends the wait of the first decode that may be done now; nil if there is none.
  package mutating func next(_ blame: Blame, in turn: inout Turn, find: (ObjectReference) -> NodeID?) -> WaitingDecode?
  {
    guard !waiting.isEmpty else { return nil }
    let now = turn.now.monotonic
    let ready = waiting.firstIndex { decode in
      find(decode.request.object).map { mayHandOut($0, to: decode.session, blame, at: now) } ?? true
    }
    guard let ready else {
      watch(in: &turn)
      return nil
    }
    let decode = waiting.remove(at: ready)
    turn.ask(.unpark(decode.caller))
    // The client waits for the next state, has had its time with those before, and lives.
    for (node, window) in standings[decode.session]?.windows ?? [:]
    where !window.isByCall && !window.isOnTrial(at: now) {
      standings[decode.session]?.windows[node]?.isProven = true
    }
    return decode
  }

  /// Sets the timer, so that what waits continues when the first trial in its way is over.
  ///
  /// Whichever of all it is: there is one timer, which must not be put off for another session that waits. It is not
  /// cancelled when no decode waits: firing then changes nothing.
  package func watch(in turn: inout Turn) {
    let now = turn.now.monotonic
    let ends = standings.values.flatMap { standing in
      standing.windows.values.filter { $0.isOnTrial(at: now) }.map { $0.opened + DecodeWindow.trialMilliseconds }
    }
    guard let end = ends.min() else { return }
    turn.ask(.setTimer(.trial(turn.application), milliseconds: max(1, end - now)))
  }

  /// Refuses decodes that will not wait any longer, because their session, client or archive has gone.
  package mutating func abandon(
    for error: ErrorObject = .sessionEnded(),
    in turn: inout Turn,
    where isOver: (WaitingDecode) -> Bool
  ) {
    let over = waiting.filter(isOver)
    waiting.removeAll(where: isOver)
    for decode in over { turn.refuse(parked: decode.caller, error) }
  }

  /// Nothing is handed out. Returns whether the caller was waiting; it is answered elsewhere.
  package mutating func cancel(_ caller: Caller, in turn: inout Turn) -> Bool {
    guard let index = waiting.firstIndex(where: { $0.caller == caller }) else { return false }
    waiting.remove(at: index)
    turn.ask(.unpark(caller))
    return true
  }

  // MARK: The end of a restoration

  /// A session holds back the end for so long at the most if the broker does not drive the restoration.
  package static let extensionMilliseconds: Int64 = 10_000

  package func isExtended(_ session: SessionID) -> Bool { standings[session].map { $0.extensions > 0 } ?? false }

  /// - Parameter deadline: of the restoration under way.
  package mutating func extend(_ session: SessionID, until deadline: Int64?, in turn: inout Turn) {
    let end = turn.now.monotonic + Self.extensionMilliseconds
    standings[session, default: Standing()].extensions += 1
    standings[session]?.extensionEnd = max(end, deadline ?? end)
    if !hasTimer { setTimer(Self.extensionMilliseconds, in: &turn) }
  }

  /// A restoration began: sessions that hold the end back may do so until its deadline.
  package mutating func prolong(until deadline: Int64) {
    for (session, standing) in standings where standing.extensions > 0 {
      standings[session]?.extensionEnd = max(standing.extensionEnd, deadline)
    }
  }

  /// The session says that it is restored, as often as it held the end back. Returns whether this was the last time.
  package mutating func endExtension(of session: SessionID) -> Bool {
    guard let extensions = standings[session]?.extensions, extensions > 0 else { return true }
    standings[session]?.extensions -= 1
    return extensions == 1
  }

  /// A restoration is over: sessions that still hold it back have had their time.
  package mutating func endExtensions(of sessions: Set<SessionID>) {
    for session in sessions { standings[session]?.extensions = 0 }
  }

  /// The session has fetched a state by itself.
  package mutating func fetched(_ node: NodeID, by session: SessionID) {
    standings[session, default: Standing()].unfinished.insert(node)
  }

  /// What a session fetched by itself it is told of once.
  package mutating func finished(_ nodes: [NodeID], of session: SessionID) {
    standings[session]?.unfinished.subtract(nodes)
  }

  /// What sessions have fetched by themselves, once no session is restoring; they are told of it now.
  package mutating func takeUnfinished() -> [(session: SessionID, nodes: [NodeID])] {
    guard !standings.values.contains(where: \.isRestoring) else { return [] }
    let unfinished = standings.filter { !$0.value.unfinished.isEmpty }.sorted { $0.key < $1.key }
    for (session, _) in unfinished { standings[session]?.unfinished = [] }
    return unfinished.map { (session: $0.key, nodes: $0.value.unfinished.sorted()) }
  }

  // MARK: The timer

  /// Sees to it that early marks of a node claimed then are cleared in time (R19).
  package mutating func watchEarly(since: Int64, in turn: inout Turn) {
    let next = since + EarlyMarks.milliseconds
    if let earlyDue, earlyDue <= next { return }
    earlyDue = next
    turn.ask(.setTimer(.early(turn.application), milliseconds: max(1, next - turn.now.monotonic)))
  }

  /// Clears early marks whose time is over; the parameters are those of `EarlyMarks.clearRipe`.
  package mutating func earlyTimerFired(
    _ nodes: some Sequence<Node>,
    since began: Int64? = nil,
    unless isHeld: (Node) -> Bool = { _ in false },
    in turn: inout Turn
  ) {
    earlyDue = nil
    let next = EarlyMarks.clearRipe(nodes, since: began, unless: isHeld, in: &turn)
    if let next { watchEarly(since: next, in: &turn) }
  }

  /// Ends what has had its time. Returns the nodes whose windows closed.
  package mutating func timerFired(in turn: inout Turn) -> [NodeID] {
    let now = turn.now.monotonic
    var closed: [NodeID] = []
    for (session, standing) in standings {
      let over = standing.windows.filter { $0.value.closes <= now }.keys
      for node in over { standings[session]?.windows[node] = nil }
      closed += over
      if standing.extensionEnd <= now { standings[session]?.extensions = 0 }
    }
    broken.subtract(closed)
    hasTimer = false
    let ends = standings.values.flatMap {
      $0.windows.values.map(\.closes) + ($0.extensions > 0 ? [$0.extensionEnd] : [])
    }
    if let end = ends.min() { setTimer(max(1, end - now), in: &turn) }
    return closed
  }

  private mutating func setTimer(_ milliseconds: Int64, in turn: inout Turn) {
    hasTimer = true
    turn.ask(.setTimer(.windows(turn.application), milliseconds: milliseconds))
  }

  package mutating func stopTimerIfIdle(in turn: inout Turn) {
    guard hasTimer, !standings.values.contains(where: \.isRestoring) else { return }
    hasTimer = false
    turn.ask(.cancelTimer(.windows(turn.application)))
  }
}

/// The time after a state was handed to its owner in which a failure of the owner counts against it (R31).
package struct DecodeWindow {
  /// Milliseconds of the monotonic clock.
  fileprivate let opened: Int64
  /// Counts what was handed out.
  fileprivate let number: Int
  /// It was handed in a call of the broker: only the answer to that call is a sign of life.
  fileprivate let isByCall: Bool
  /// It was given to the factory that makes the object, and closes with the factory's answer.
  fileprivate let isOfFactory: Bool
  /// The owner was heard of after it had taken the state in.
  fileprivate var isProven = false

  /// It closes by itself after so long.
  package static let milliseconds: Int64 = 10_000
  /// A suspect is on trial for so long, if no better sign of life comes before.
  ///
  /// Clients send calls without waiting for answers: what comes right behind a state may have been sent before the
  /// state was read, and says nothing about it. A process that dies of a state does so at once.
  package static let trialMilliseconds: Int64 = 250

  fileprivate var closes: Int64 { opened + Self.milliseconds }

  fileprivate func isOnTrial(at now: Int64) -> Bool { !isProven && now < opened + Self.trialMilliseconds }
}
