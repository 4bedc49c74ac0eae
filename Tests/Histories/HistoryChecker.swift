// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationWire

/// Checks what clients see against what they did, without knowing how a broker works.
///
/// 1. What was acknowledged or read is read again, or something newer, until somebody asked for it to be removed, or its
///    owner was given what is older.
/// 2. What is read was written there, whole.
/// 3. One session owns a path.
/// 4. A generation holds what was acknowledged before it, and never changes.
/// 5. Parents are restored before what is below them.
/// 6. A state moves with its object, and a copy of an application is what it was made of.
/// 7. The head of an archive is within its limits.
package final class HistoryChecker {
  /// One state that was written, or may have been. Used from one thread, as all of this.
  package final class Push: @unchecked Sendable {
    package let value: Int
    package let state: String
    package let place: Place
    /// The order of pushes over one connection.
    package let link: Int
    /// A selected row of a view, which some states come with.
    package let row: Int?
    package var sequence: Int64?
    /// The emptying of the head that has removed it.
    package var removal: Int?

    /// What a reader gets.
    package private(set) lazy var json = try? JSONCodec.parse(Array(state.utf8))

    init(_ value: Int, _ state: String, at place: Place, over link: Int, row: Int?) {
      (self.value, self.state, self.place, self.link, self.row) = (value, state, place, link, row)
    }

    /// The member beside the state.
    package var elements: String { row.map { #","elements":[{"role":"selected","indexPath":[0,\#($0)]}]"# } ?? "" }
  }

  package struct Place: Hashable, Sendable {
    package let application: String
    package let path: Path

    package init(application: String, path: Path) { (self.application, self.path) = (application, path) }
  }

  /// What a reader must not fall behind.
  package struct Floor: Sendable {
    package var push: Push
    package var sequence: Int64
  }

  private struct Record {
    var floor: Floor?
    /// Counts what may take states away.
    var removals = 0
    var owner: Int?
    /// Counts claims that were answered.
    var claims = 0
  }

  /// What may take states away until it is over.
  private struct Removal {
    let application: String
    let isRemoved: (Path) -> Bool
    /// Whether the user may quit the application by it: then nobody owns anything of it.
    let isQuit: Bool
    let isOver: () -> Bool
  }

  /// An object that is to go to another place, with what is below it.
  package struct Move {
    fileprivate let from: Place
    fileprivate let target: Path
    fileprivate var floors: [Path: Floor] = [:]
    /// What has taken states away until it was asked for.
    fileprivate var removals: [Place: Int] = [:]
  }

  /// What was known when a read or a save was asked for.
  package struct Expectation: Sendable {
    fileprivate var floors: [Place: Floor] = [:]
    fileprivate var removals: [Place: Int] = [:]
    fileprivate var emptyings = 0
  }

  private let trace: Trace
  private var records: [Place: Record] = [:]
  private var pushes: [Int: Push] = [:]
  private var moves: [Move] = []
  /// Where an object was asked for that may have had another owner.
  private var takeovers: Set<Place> = []
  /// How often a head was emptied.
  private var emptyings = 0
  /// Whether what brings states back is over.
  private var revivals: [String: () -> Bool] = [:]
  private var lastValue = 0
  /// Asked for over connections that have ended without an answer: other connections' calls may be done before.
  private var removals: [Removal] = []
  /// Counts, of each application, when the user may have quit it.
  private var quits: [String: Int] = [:]
  /// Contents of generations as they were first read, and what they must hold.
  private var generations: [String: [Int64: [Path: Int]]] = [:]
  private var promises: [String: [Int64: Expectation]] = [:]
  package private(set) var reads = 0
  package private(set) var acknowledged = 0

  /// Whether what was read is promised to be read again.

  package init(_ trace: Trace) { self.trace = trace }

  // MARK: Writing

  package func push(
    _ path: Path,
    of application: String,
    over link: Int,
    padding: Int = 0,
    hasRows: Bool = false
  ) -> Push {
    lastValue += 1
    let text = String(decoding: repeatElement(UInt8(ascii: "x"), count: padding), as: UTF8.self)
    let state = #"{"v":\#(lastValue),"p":"\#(application)/\#(path)","t":"\#(text)"}"#
    let place = Place(application: application, path: path)
    let push = Push(lastValue, state, at: place, over: link, row: hasRows && lastValue % 3 == 0 ? lastValue % 7 : nil)
    pushes[lastValue] = push
    if records[place] == nil { records[place] = Record() }
    return push
  }

  /// - Parameter sequence: of the change; `nil` if it is unknown.
  package func acknowledge(
    _ push: Push,
    at path: Path,
    of application: String,
    _ sequence: Int64?,
    since expectation: Expectation
  ) {
    noteRemovals()
    let place = Place(application: application, path: path)
    acknowledged += 1
    push.sequence = sequence
    guard let record = records[place], record.removals == expectation.removals[place, default: 0] else { return }
    raiseFloor(to: push, at: place)
  }

  /// Somebody has asked for these states to be removed, or has an answer to that.
  package func removing(_ application: String, where isRemoved: (Path) -> Bool = { _ in true }) {
    for place in records.keys where place.application == application && isRemoved(place.path) {
      records[place]?.floor = nil
      records[place]?.removals += 1
    }
  }

  /// Somebody has asked for the head to be emptied. Returns what is to be gone: what was there, unless something that
  /// was there before is brought back at the same time.
  package func emptying(_ application: String) -> [Push] {
    noteRemovals()
    guard revivals[application] == nil else { return [] }
    return pushes.values.filter { $0.place.application == application && $0.sequence != nil }
  }

  package func emptied(_ application: String, of former: [Push]) {
    guard revivals[application] == nil else { return }
    emptyings += 1
    for push in former { push.removal = emptyings }
  }

  /// Something brings back what was there before, until `isOver`.
  package func reviving(_ application: String, until isOver: @escaping () -> Bool) {
    for push in pushes.values where push.place.application == application { push.removal = nil }
    let former = revivals[application] ?? { true }
    revivals[application] = { former() && isOver() }
  }

  /// The answer to a removal will not come, but the broker may do it until it is done with the connection.
  package func removing(
    _ application: String,
    where isRemoved: @escaping (Path) -> Bool,
    isQuit: Bool = false,
    until isOver: @escaping () -> Bool
  ) {
    removals.append(Removal(application: application, isRemoved: isRemoved, isQuit: isQuit, isOver: isOver))
  }

  /// What was known before a removal is over does not hold after it.
  private func noteRemovals() {
    for application in revivals.keys where revivals[application]?() == true { revivals[application] = nil }
    guard !removals.isEmpty else { return }
    let over = removals.map { $0.isOver() }
    for removal in removals {
      removing(removal.application, where: removal.isRemoved)
      guard removal.isQuit else { continue }
      quits[removal.application, default: 0] += 1
      for place in records.keys where place.application == removal.application { records[place]?.owner = nil }
    }
    removals = zip(removals, over).filter { !$0.1 }.map(\.0)
  }

  /// Generations of the application may go, and others get their numbers.
  package func removingGenerations(of application: String) {
    generations[application] = nil
    promises[application] = nil
  }

  // MARK: Moving

  /// Where something has been, or may be.
  package func paths(of application: String) -> [Path] {
    records.keys.filter { $0.application == application }.map(\.path).sorted()
  }

  /// Whether an object that was there, or what is above it, was ever asked to go elsewhere.
  package func mayHaveMoved(_ path: Path, of application: String) -> Bool {
    moves.contains { $0.from.application == application && path.isAtOrBelow($0.from.path) }
  }

  /// Whether its owner may have lost it without being told: after its end a broker does not know what was taken over or
  /// moved while a session had no connection, and after the user has quit nobody owns anything (R30).
  package func mayHaveLost(_ path: Path, of application: String) -> Bool {
    quits[application, default: 0] > 0 || removals.contains { $0.isQuit && $0.application == application }
      || takeovers.contains(Place(application: application, path: path)) || mayHaveMoved(path, of: application)
  }

  /// The object may be at either place, until the answer.
  package func moving(_ path: Path, of application: String, to target: Path) -> Move {
    noteRemovals()
    var move = Move(from: Place(application: application, path: path), target: target)
    for (place, record) in records where place.application == application && place.path.isAtOrBelow(path) {
      move.floors[place.path] = record.floor
      let other = Place(application: application, path: place.path.moved(from: path, to: target))
      if records[other] == nil { records[other] = Record() }
    }
    moves.append(move)
    removing(application) { $0.isAtOrBelow(path) || $0.isAtOrBelow(target) }
    for (place, record) in records where place.application == application {
      move.removals[place] = record.removals
      guard place.path.isAtOrBelow(path) || place.path.isAtOrBelow(target) else { continue }
      records[place]?.owner = nil
      records[place]?.claims += 1
    }
    return move
  }

  /// It is at its new place, with what was acknowledged before.
  package func moved(_ move: Move) {
    noteRemovals()
    let application = move.from.application
    let isUndisturbed = records.allSatisfy { place, record in
      place.application != application || record.removals == move.removals[place, default: record.removals]
    }
    removing(application) { $0.isAtOrBelow(move.from.path) || $0.isAtOrBelow(move.target) }
    guard isUndisturbed else { return }
    for (path, floor) in move.floors {
      records[Place(application: application, path: path.moved(from: move.from.path, to: move.target))]?.floor = floor
    }
  }

  /// The application is to be as it was then, but for what may have been removed since, before it was copied.
  package func replacing(_ application: String, by expectation: Expectation) -> Replacement {
    noteRemovals()
    let floors = expectation.floors.filter { records[$0.key]?.removals == expectation.removals[$0.key] }
    removing(application)
    let removals = self.expectation(application).removals
    return Replacement(application: application, floors: floors, removals: removals)
  }

  /// It is so.
  package func replaced(_ replacement: Replacement) {
    let isUndisturbed = expectation(replacement.application).removals == replacement.removals
    removing(replacement.application)
    guard isUndisturbed else { return }
    for (place, floor) in replacement.floors { records[place]?.floor = floor }
  }

  package struct Replacement {
    fileprivate let application: String
    fileprivate let floors: [Place: Floor]
    fileprivate let removals: [Place: Int]
  }

  /// Whether moves may have brought a state there. A move may have happened later than others that were asked for
  /// later.
  private func isMoved(_ push: Push, to place: Place) -> Bool {
    guard !moves.isEmpty, push.place.application == place.application else { return false }
    var paths: Set = [push.place.path]
    for move in moves + moves where move.from.application == place.application {
      for path in paths where path.isAtOrBelow(move.from.path) {
        paths.insert(path.moved(from: move.from.path, to: move.target))
      }
    }
    return paths.contains(place.path)
  }

  // MARK: Owning

  /// Somebody asks for the path. One who takes it over may have it, and leave it, before others see an answer.
  ///
  /// - Returns: how many claims were answered before, or undone.
  package func claiming(_ path: Path, of application: String, takesOver: Bool) -> Int {
    noteRemovals()
    let place = Place(application: application, path: path)
    if takesOver { takeovers.insert(place) }
    if takesOver, records[place] != nil {
      records[place]?.owner = nil
      records[place]?.claims += 1
    }
    return (records[place]?.claims ?? 0) + quits[application, default: 0]
  }

  /// - Parameter claims: answered when this one was asked for.
  package func claimed(_ path: Path, of application: String, by number: Int, takesOver: Bool, after claims: Int) {
    noteRemovals()
    let place = Place(application: application, path: path)
    var record = records[place, default: Record()]
    let isUndisturbed = record.claims + quits[application, default: 0] == claims
    if let owner = record.owner, owner != number, !takesOver, isUndisturbed {
      trace.fault("\(application)/\(path) is claimed by \(number) while \(owner) owns it")
    }
    // Which of two answers over two connections was first cannot be seen.
    record.owner = isUndisturbed ? number : nil
    record.claims += 1
    records[place] = record
  }

  package func ended(_ path: Path, of application: String, ownedBy number: Int) {
    let place = Place(application: application, path: path)
    if records[place]?.owner == number { records[place]?.owner = nil }
  }

  /// After the broker has gone, who is back first owns what it registers.
  package func brokerEnded() { for place in records.keys { records[place]?.owner = nil } }

  // MARK: Reading

  package func expectation(_ application: String) -> Expectation {
    noteRemovals()
    var expectation = Expectation()
    expectation.emptyings = emptyings
    for (place, record) in records where place.application == application {
      expectation.floors[place] = record.floor
      expectation.removals[place] = record.removals
    }
    return expectation
  }

  /// - Parameters:
  ///   - state: `nil` if the object has no state.
  ///   - isKept: What was read is found by later readers, too.
  package func read(
    _ path: Path,
    of application: String,
    _ state: JSONValue?,
    _ expectation: Expectation,
    by reader: String,
    isKept: Bool = true
  ) {
    noteRemovals()
    let place = Place(application: application, path: path)
    reads += 1
    let push = state.flatMap { check($0, at: place, reader) }
    if let push, let removal = push.removal, removal <= expectation.emptyings {
      trace.fault("\(reader) finds \(push.value) at \(application)/\(path), which was removed")
    }
    guard let record = records[place], record.removals == expectation.removals[place, default: 0] else { return }
    // What was read is on disk.
    defer { if let push, isKept, trace.faults.isEmpty { raiseFloor(to: push, at: place) } }
    guard let floor = expectation.floors[place] else { return }
    guard let push else {
      if state == nil {
        trace.fault("\(reader) finds nothing at \(application)/\(path); \(floor.push.value) was acknowledged")
      }
      return
    }
    let isOlder =
      push.link == floor.push.link && push.value < floor.push.value
      || push.sequence.map { $0 < floor.sequence } == true
    if isOlder {
      trace.fault("\(reader) finds \(push.value) at \(application)/\(path); \(floor.push.value) was acknowledged")
    }
  }

  /// This state, or a newer one, is on disk.
  private func raiseFloor(to push: Push, at place: Place) {
    let floor = records[place]?.floor
    if let floor {
      let isKnown = floor.push.link == push.link ? floor.push.value > push.value : push.sequence == nil
      if isKnown || push.sequence.map({ $0 < floor.sequence }) == true { return }
    }
    records[place]?.floor = Floor(push: push, sequence: max(push.sequence ?? 0, floor?.sequence ?? 0))
  }

  /// An archive is within its limits.
  package func measure(_ states: [Path: JSONValue], of application: String, _ limits: Limits) {
    let bytes = states.values.reduce(0) { sum, state in
      sum + (state["v"]?.integer.flatMap { pushes[Int($0)] }?.state.utf8.count ?? 0)
    }
    if bytes > limits.archiveBytesMax { trace.fault("\(application) has \(bytes) bytes of states") }
    if states.count > limits.objectsPerApplicationMax { trace.fault("\(application) has \(states.count) states") }
  }

  /// The owner is given what is saved, or asks for it. What it wrote before is dropped then (R19), at a moment that
  /// nobody sees.
  package func giving(_ path: Path, of application: String, until isOver: @escaping () -> Bool) {
    removing(application, where: { $0 == path }, until: isOver)
  }

  /// A state that the broker hands out by itself may be an older one (R19).
  package func handed(_ path: Path, of application: String, _ state: JSONValue) {
    _ = check(state, at: Place(application: application, path: path), "a restoration")
  }

  private func check(_ state: JSONValue, at place: Place, _ reader: String) -> Push? {
    guard let value = state["v"]?.integer, let push = pushes[Int(value)],
      push.place == place || isMoved(push, to: place)
    else {
      trace.fault("\(reader) finds at \(place.application)/\(place.path) what was never written there: \(state)")
      return nil
    }
    guard push.json == state else {
      trace.fault("\(reader) finds a part of \(push.value) at \(place.application)/\(place.path)")
      return nil
    }
    return push
  }

  /// Rows belong to their state. A data source that was found says where they are now.
  package func elements(_ elements: JSONValue?, of state: JSONValue?, _ reader: String) {
    guard let elements = elements?.array, let value = state?["v"]?.integer, let push = pushes[Int(value)] else {
      return
    }
    let expected = push.row.map { [[0, Int64($0)], DataSource.current([0, Int64($0)])] }
    let isExpected = elements.allSatisfy { element in
      let isResolved = element["resolved"]?.bool == true
      let identifier = element["identifier"]?.string
      return (identifier == nil || identifier == push.row.map { DataSource.identifier([0, Int64($0)]) })
        && element["indexPath"]?.array?.compactMap(\.integer) == expected?[isResolved ? 1 : 0]
    }
    if !isExpected || elements.count != (expected == nil ? 0 : 1) {
      trace.fault(
        "\(reader) finds rows \(elements) with \(push.value), which has \(push.row.map(String.init) ?? "none")"
      )
    }
  }

  /// Parents come first; what has moved since the restoration began keeps its turn (R21).
  package func order(_ paths: [Path], of application: String) {
    for (index, path) in paths.enumerated() {
      let later = paths[..<index].first { later in
        later.isBelow(path) && !moves.contains { $0.from.application == application && later.isAtOrBelow($0.target) }
      }
      if let later { trace.fault("\(later) is restored before \(path)") }
    }
  }

  // MARK: Generations

  package func saved(_ generation: Int64, of application: String, _ expectation: Expectation) {
    if promises[application]?[generation] == nil { promises[application, default: [:]][generation] = expectation }
  }

  package func read(generation: Int64, of application: String, _ states: [Path: JSONValue]) {
    noteRemovals()
    reads += 1
    var values: [Path: Int] = [:]
    for (path, state) in states.sorted(by: { $0.key < $1.key }) {
      let place = Place(application: application, path: path)
      guard let push = check(state, at: place, "generation \(generation)") else { continue }
      values[path] = push.value
    }
    if let known = generations[application]?[generation], known != values {
      trace.fault("generation \(generation) of \(application) has changed from \(known) to \(values)")
    }
    generations[application, default: [:]][generation] = values
    for (place, floor) in promises[application]?[generation]?.floors ?? [:] {
      guard promises[application]?[generation]?.removals[place] == records[place]?.removals else { continue }
      let sequence = values[place.path].flatMap { pushes[$0]?.sequence }
      if values[place.path] == nil || sequence.map({ $0 < floor.sequence }) == true {
        trace.fault("generation \(generation) lacks \(floor.push.value) of \(application)/\(place.path)")
      }
    }
  }
}

/// What all data sources say: rows have moved since they were saved.
package enum DataSource {
  package static func identifier(_ indexPath: [Int64]) -> String { "row-\(indexPath.last ?? 0)" }

  package static func current(_ indexPath: [Int64]) -> [Int64] { [0, (indexPath.last ?? 0) + 10] }

  package static func current(_ identifier: String) -> [Int64]? {
    Int64(identifier.dropFirst("row-".count)).map { current([0, $0]) }
  }
}
