// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// States that sessions have received and not confirmed. A crash counts against them, and the end of a restoration
/// waits for them (R19, R21, R31).
///
/// Invariants:
/// 1. A window closes once: its owner confirms the state, loses the object or crashes, or the time is over. A crash
///    breaks the window.
/// 2. The timer of windows is set while a window is open or a session extends the restoration.
/// 3. A waiting decode is a parked call.
/// 4. While a claimed node has a provisional state, the timer that confirms the first of them is set.
package struct DecodeTrials {
  /// A decode that waits until the states before it are proven (R31).
  package struct WaitingDecode {
    package let caller: Caller
    package let session: SessionID
    package let request: DecodeRestorableState
  }

  /// The failure of a process, as evidence about the states it had received (R31).
  package struct Failure {
    /// The states without a later sign of life, and the others.
    package var unproven: Set<NodeID>
    package var proven: Set<NodeID>
    package var objects: Int
    /// Whether the system reported how the process ended.
    package var isCertain = true
    /// False if the process failed together with another one: they count once.
    package var isAnother = true

    package init(unproven: Set<NodeID>, proven: Set<NodeID> = []) {
      (self.unproven, self.proven, objects) = (unproven, proven, unproven.count + proven.count)
    }

    /// The only state that can have caused it, if there is only one.
    package var only: NodeID? { unproven.count == 1 ? unproven.first : nil }

    /// The failure, if no other state than these can have caused it.
    func blaming(where mayHaveCausedIt: (NodeID) -> Bool) -> Failure {
      var failure = self
      failure.unproven = unproven.filter(mayHaveCausedIt)
      return failure
    }
  }

  private struct Standing {
    var windows: [NodeID: DecodeWindow] = [:]
    /// Total failures when it received a state last.
    var failuresBefore = 0
    /// Nodes whose states it has fetched since its last finish callback; the next one reports them (R21).
    var unfinished: Set<NodeID> = []
    /// Its open extensions of the restoration, and their deadline (R21, R22).
    var extensions = 0
    var extensionEnd: Int64 = 0

    var isRestoring: Bool { !windows.isEmpty || extensions > 0 }

    mutating func open(_ node: NodeID, _ window: DecodeWindow, failures: Int) {
      failuresBefore = failures
      windows[node] = window
    }

    /// The received states without a later sign of life.
    ///
    /// - Parameter isStrict: only a sign a while after the state counts.
    func unproven(since last: SignOfLife?, isStrict: Bool) -> [NodeID] {
      windows.compactMap { node, window in
        let isHeard =
          last.map {
            window.number <= $0.deliveries && (!isStrict || $0.time >= window.opened + DecodeWindow.trialMilliseconds)
          } ?? false
        return window.isProven || !window.isByCall && isHeard ? nil : node
      }
    }
  }

  /// The last message of a session, and the number of states delivered before.
  private struct SignOfLife {
    let deliveries: Int
    let time: Int64
  }

  private var standings: [SessionID: Standing] = [:]
  /// Separate from the standings, because every message changes them.
  private var signs: [SessionID: SignOfLife] = [:]
  private var deliveries = 0
  /// Nodes whose windows a crash has broken. The restoration is incomplete without them (R19).
  private var broken: Set<NodeID> = []
  private var hasOpened = false
  private var hasTimer = false
  /// When the timer for provisional states fires, in monotonic milliseconds; `nil` if it is not set.
  private var earlyDue: Int64?
  /// Failures of processes with open windows since the opening of the archive.
  private var failures = 0
  private var waiting: [WaitingDecode] = []

  package init() {}

  package var isIdle: Bool { waiting.isEmpty && !standings.values.contains(where: \.isRestoring) }
  package var held: Int { waiting.count + standings.count + signs.count + (hasTimer ? 1 : 0) }
  package var hasOpenWindows: Bool { standings.values.contains { !$0.windows.isEmpty } }
  /// Something was delivered, and every window that a crash broke was closed since.
  package var isRestored: Bool { hasOpened && broken.isEmpty }
  package var restoringCount: Int { standings.values.count(where: \.isRestoring) }

  package func isOpen(_ node: NodeID, for session: SessionID) -> Bool { standings[session]?.windows[node] != nil }

  // MARK: Coming and going

  /// Nothing is to be delivered, so the restoration is complete.
  package mutating func beginRestored() { hasOpened = true }

  package mutating func beginRun() { (broken, hasOpened) = ([], false) }

  /// The delivered states were removed. The restoration completes when the timer fires or another window closes.
  package mutating func empty() {
    broken = []
    for session in standings.keys { standings[session]?.windows = [:] }
  }

  /// The archive was reopened. Windows and extensions end; finish callbacks are still due.
  package mutating func resume(_ former: DecodeTrials, where isThere: (SessionID) -> Bool) {
    (broken, hasOpened) = (former.broken, former.hasOpened)
    standings = former.standings.filter { isThere($0.key) }.mapValues { Standing(unfinished: $0.unfinished) }
    signs = [:]
  }

  package mutating func sessionEnded(_ session: SessionID) { (standings[session], signs[session]) = (nil, nil) }

  // MARK: Windows

  /// A state was given to its owner: the owner's fate tells whether it is good (R31).
  ///
  /// - Parameters:
  ///   - byCall: whether a call of the broker has delivered it; its answer leads to `acknowledge`.
  ///   - toFactory: whether it was given to make the object, which is not restored by that yet.
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
    deliveries += 1
    let now = turn.now.monotonic
    let window = DecodeWindow(opened: now, number: deliveries, isByCall: byCall, isOfFactory: toFactory)
    standings[session, default: Standing()].open(node, window, failures: failures)
  }

  /// The owner has confirmed the state. Returns whether this closed a window, or mended one that a crash had broken.
  package mutating func close(_ node: NodeID, of session: SessionID) -> Bool {
    if standings.isEmpty, broken.isEmpty { return false }
    let wasOpen = standings[session]?.windows.removeValue(forKey: node) != nil
    return broken.remove(node) != nil || wasOpen
  }

  /// Closes all windows of a session without a crash, and returns their nodes.
  package mutating func closeAll(of session: SessionID) -> [NodeID] {
    let nodes = (standings[session]?.windows.keys).map(Array.init) ?? []
    standings[session]?.windows = [:]
    broken.subtract(nodes)
    return nodes
  }

  /// The factory has survived the state: it has made the object, which has yet to take the state in.
  package mutating func closeFactory(_ node: NodeID, of session: SessionID) -> Bool {
    standings[session]?.windows[node]?.isOfFactory == true && forget(node, of: session)
  }

  /// The state proves nothing about the session any longer. Returns whether its window was open.
  @discardableResult
  package mutating func forget(_ node: NodeID, of session: SessionID) -> Bool {
    standings[session]?.windows.removeValue(forKey: node) != nil
  }

  /// The session has lost the object. Returns whether its window was open.
  @discardableResult
  package mutating func release(_ node: NodeID, of session: SessionID) -> Bool {
    standings[session]?.unfinished.remove(node)
    return forget(node, of: session)
  }

  package mutating func move(_ gone: NodeID, to into: NodeID, of session: SessionID) {
    if let window = standings[session]?.windows.removeValue(forKey: gone) { standings[session]?.windows[into] = window }
    if standings[session]?.unfinished.remove(gone) != nil { standings[session]?.unfinished.insert(into) }
  }

  // MARK: Signs of life

  /// The session has sent a message, and all deliveries before were written.
  package mutating func heard(from session: SessionID, at now: Int64) {
    if deliveries > 0 { signs[session] = SignOfLife(deliveries: deliveries, time: now) }
  }

  /// The owner has answered the call that delivered these states, so none of them crashes it.
  package mutating func acknowledge(_ nodes: [NodeID], by session: SessionID) {
    for node in nodes { standings[session]?.windows[node]?.isProven = true }
  }

  /// The session's process has ended without a goodbye, which breaks its windows.
  ///
  /// - Parameter isStrict: whether suspects are on trial. Then only a sign of life beyond doubt counts, to avoid a
  ///   wrong verdict.
  /// - Returns: the failure; `nil` if the end says nothing about the states.
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
      // Only a state that it had received just before may have ended it.
      failure.unproven = unproven.filter { standing.windows[$0]?.isOnTrial(at: now) ?? false }
      guard !failure.unproven.isEmpty else { return nil }
      failure.isCertain = false
    }
    failure.isAnother = standing.failuresBefore == failures
    if failure.isAnother { failures += 1 }
    return failure
  }

  // MARK: Suspects

  /// Whether a state may be delivered to its owner now. A suspect is delivered alone.
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

  /// Ends the wait of the first decode that may continue.
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
    // The client waits for its next state, so it has survived those before for a whole trial.
    for (node, window) in standings[decode.session]?.windows ?? [:]
    where !window.isByCall && !window.isOnTrial(at: now) {
      standings[decode.session]?.windows[node]?.isProven = true
    }
    return decode
  }

  /// Sets the timer to the end of the next trial, so that waiting decodes continue.
  ///
  /// The timer is shared, so the earliest end counts, of any session. It is not cancelled when no decode waits: firing
  /// then changes nothing.
  package func watch(in turn: inout Turn) {
    let now = turn.now.monotonic
    let ends = standings.values.flatMap { standing in
      standing.windows.values.filter { $0.isOnTrial(at: now) }.map { $0.opened + DecodeWindow.trialMilliseconds }
    }
    guard let end = ends.min() else { return }
    turn.ask(.setTimer(.trial(turn.application), milliseconds: max(1, end - now)))
  }

  /// Refuses decodes whose session, client or archive has gone.
  package mutating func abandon(
    for error: ErrorObject = .sessionEnded(),
    in turn: inout Turn,
    where isOver: (WaitingDecode) -> Bool
  ) {
    let over = waiting.filter(isOver)
    waiting.removeAll(where: isOver)
    for decode in over { turn.refuse(parked: decode.caller, error) }
  }

  /// - Returns: whether the caller was waiting. It is answered elsewhere.
  package mutating func cancel(_ caller: Caller, in turn: inout Turn) -> Bool {
    guard let index = waiting.firstIndex(where: { $0.caller == caller }) else { return false }
    waiting.remove(at: index)
    turn.ask(.unpark(caller))
    return true
  }

  // MARK: The end of a restoration

  /// Maximum time of an extension while no restoration is under way.
  package static let extensionMilliseconds: Int64 = 10_000

  package func isExtended(_ session: SessionID) -> Bool { standings[session].map { $0.extensions > 0 } ?? false }

  package mutating func extend(_ session: SessionID, until deadline: Int64?, in turn: inout Turn) {
    let end = turn.now.monotonic + Self.extensionMilliseconds
    standings[session, default: Standing()].extensions += 1
    standings[session]?.extensionEnd = max(end, deadline ?? end)
    if !hasTimer { setTimer(Self.extensionMilliseconds, in: &turn) }
  }

  /// A restoration has begun: extensions last until its deadline.
  package mutating func prolong(until deadline: Int64) {
    for (session, standing) in standings where standing.extensions > 0 {
      standings[session]?.extensionEnd = max(standing.extensionEnd, deadline)
    }
  }

  /// The session ends one of its extensions. Returns whether this was the last one.
  package mutating func endExtension(of session: SessionID) -> Bool {
    guard let extensions = standings[session]?.extensions, extensions > 0 else { return true }
    standings[session]?.extensions -= 1
    return extensions == 1
  }

  package mutating func endExtensions(of sessions: Set<SessionID>) {
    for session in sessions { standings[session]?.extensions = 0 }
  }

  package mutating func fetched(_ node: NodeID, by session: SessionID) {
    standings[session, default: Standing()].unfinished.insert(node)
  }

  package mutating func finished(_ nodes: [NodeID], of session: SessionID) {
    standings[session]?.unfinished.subtract(nodes)
  }

  /// The nodes whose states sessions have fetched themselves, unless a session is restoring. The caller tells them.
  package mutating func takeUnfinished() -> [(session: SessionID, nodes: [NodeID])] {
    guard !standings.values.contains(where: \.isRestoring) else { return [] }
    let unfinished = standings.filter { !$0.value.unfinished.isEmpty }.sorted { $0.key < $1.key }
    for (session, _) in unfinished { standings[session]?.unfinished = [] }
    return unfinished.map { (session: $0.key, nodes: $0.value.unfinished.sorted()) }
  }

  // MARK: The timer

  /// Ensures that provisional states of a node claimed at this time are confirmed in time (R19).
  package mutating func watchEarly(since: Int64, in turn: inout Turn) {
    let next = since + EarlyMarks.milliseconds
    if let earlyDue, earlyDue <= next { return }
    earlyDue = next
    turn.ask(.setTimer(.early(turn.application), milliseconds: max(1, next - turn.now.monotonic)))
  }

  /// Confirms provisional states after their timeout. For the parameters see `EarlyMarks.clearRipe`.
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

  /// Closes the windows whose time is over, and returns their nodes.
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

/// The time after a delivery in which a failure of the owner counts against the state (R31).
package struct DecodeWindow {
  /// Monotonic milliseconds.
  fileprivate let opened: Int64
  /// The number of the delivery.
  fileprivate let number: Int
  /// A call of the broker has delivered it: only the answer to that call is a sign of life.
  fileprivate let isByCall: Bool
  /// It was given to the object's factory, and closes with the factory's answer.
  fileprivate let isOfFactory: Bool
  /// The owner has shown a sign of life since it took the state in.
  fileprivate var isProven = false

  package static let milliseconds: Int64 = 10_000
  /// Duration of a trial, unless a better sign of life ends it.
  ///
  /// Clients send calls without waiting for answers, so a message right after a delivery may have been sent before the
  /// state was read. A process that a state crashes dies at once.
  package static let trialMilliseconds: Int64 = 250

  fileprivate var closes: Int64 { opened + Self.milliseconds }

  fileprivate func isOnTrial(at now: Int64) -> Bool { !isProven && now < opened + Self.trialMilliseconds }
}
