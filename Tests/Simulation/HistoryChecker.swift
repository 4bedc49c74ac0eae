// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Checks what clients see against what they did, without knowing how a broker works.
///
/// 1. What was acknowledged or read is read again, or something newer, until somebody asked for it to be removed.
/// 2. What is read was written there, whole.
/// 3. One session owns a path.
/// 4. A generation holds what was acknowledged before it, and never changes.
/// 5. Parents are restored before what is below them.
final class HistoryChecker {
  /// One state that was written, or may have been.
  final class Push {
    let value: Int
    let state: String
    /// The order of pushes over one connection.
    let link: Int
    var sequence: Int64?

    init(_ value: Int, _ state: String, _ link: Int) { (self.value, self.state, self.link) = (value, state, link) }
  }

  struct Place: Hashable {
    let application: String
    let path: Path
  }

  /// What a reader must not fall behind.
  struct Floor {
    var push: Push
    var sequence: Int64
  }

  private struct Record {
    var pushes: [Int: Push] = [:]
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
    let isOver: () -> Bool
  }

  /// What was known when a read or a save was asked for.
  struct Expectation {
    fileprivate var floors: [Place: Floor] = [:]
    fileprivate var removals: [Place: Int] = [:]
  }

  private let trace: Trace
  private var records: [Place: Record] = [:]
  private var lastValue = 0
  /// Asked for over connections that have ended without an answer: other connections' calls may be done before.
  private var removals: [Removal] = []
  /// Contents of generations as they were first read, and what they must hold.
  private var generations: [String: [Int64: [Path: Int]]] = [:]
  private var promises: [String: [Int64: Expectation]] = [:]
  private(set) var reads = 0
  private(set) var acknowledged = 0

  init(_ trace: Trace) { self.trace = trace }

  // MARK: Writing

  func push(
    _ path: Path,
    of application: String,
    by client: SimulatedClient?,
    isInRound: Bool = false,
    padding: Int = 0
  ) -> Push {
    lastValue += 1
    let text = String(repeating: "x", count: padding)
    let state = #"{"v":\#(lastValue),"p":"\#(application)/\#(path)","t":"\#(text)"}"#
    let push = Push(lastValue, state, client?.link ?? 0)
    records[Place(application: application, path: path), default: Record()].pushes[lastValue] = push
    return push
  }

  func acknowledge(
    _ push: Push,
    at path: Path,
    of application: String,
    _ result: JSONValue,
    since expectation: Expectation
  ) {
    noteRemovals()
    let place = Place(application: application, path: path)
    guard let sequence = result["sequence"]?.integer, result["durability"] != nil else { return }
    acknowledged += 1
    push.sequence = sequence
    guard var record = records[place], record.removals == expectation.removals[place, default: 0] else { return }
    if sequence > record.floor?.sequence ?? 0 { record.floor = Floor(push: push, sequence: sequence) }
    records[place] = record
  }

  /// Somebody has asked for these states to be removed, or has an answer to that.
  func removing(_ application: String, where isRemoved: (Path) -> Bool = { _ in true }) {
    for place in records.keys where place.application == application && isRemoved(place.path) {
      records[place]?.floor = nil
      records[place]?.removals += 1
    }
  }

  /// The answer to a removal will not come, but the broker may do it until it is done with the connection.
  func removing(_ application: String, where isRemoved: @escaping (Path) -> Bool, until isOver: @escaping () -> Bool) {
    removals.append(Removal(application: application, isRemoved: isRemoved, isOver: isOver))
  }

  /// What was known before a removal is over does not hold after it.
  private func noteRemovals() {
    guard !removals.isEmpty else { return }
    let over = removals.map { $0.isOver() }
    for removal in removals { removing(removal.application, where: removal.isRemoved) }
    removals = zip(removals, over).filter { !$0.1 }.map(\.0)
  }

  /// Generations of the application may go, and others get their numbers.
  func removingGenerations(of application: String) {
    generations[application] = nil
    promises[application] = nil
  }

  // MARK: Owning

  func claims(of path: Path, of application: String) -> Int {
    records[Place(application: application, path: path)]?.claims ?? 0
  }

  /// - Parameter claims: answered when this one was asked for.
  func claimed(_ path: Path, by client: SimulatedClient, takesOver: Bool, after claims: Int) {
    let place = Place(application: client.application, path: path)
    var record = records[place, default: Record()]
    if let owner = record.owner, owner != client.number, !takesOver, record.claims == claims {
      trace.fault("\(client.application)/\(path) is claimed by \(client.number) while \(owner) owns it")
    }
    // Which of two answers over two connections was first cannot be seen.
    record.owner = record.claims == claims ? client.number : nil
    record.claims += 1
    records[place] = record
  }

  func ended(_ path: Path, of client: SimulatedClient) {
    let place = Place(application: client.application, path: path)
    if records[place]?.owner == client.number { records[place]?.owner = nil }
  }

  /// After the broker has gone, who is back first owns what it registers.
  func brokerEnded() { for place in records.keys { records[place]?.owner = nil } }

  // MARK: Reading

  func expectation(_ application: String) -> Expectation {
    noteRemovals()
    var expectation = Expectation()
    for (place, record) in records where place.application == application {
      expectation.floors[place] = record.floor
      expectation.removals[place] = record.removals
    }
    return expectation
  }

  /// - Parameter state: `nil` if there is none.
  func read(_ path: Path, of application: String, _ state: JSONValue?, _ expectation: Expectation, by reader: String) {
    noteRemovals()
    let place = Place(application: application, path: path)
    reads += 1
    let push = state.flatMap { check($0, at: place, reader) }
    defer { if let push, trace.faults.isEmpty { raiseFloor(to: push, at: place, since: expectation) } }
    guard let record = records[place], record.removals == expectation.removals[place, default: 0],
      let floor = expectation.floors[place]
    else { return }
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

  /// What was read is on disk.
  private func raiseFloor(to push: Push, at place: Place, since expectation: Expectation) {
    guard var record = records[place], record.removals == expectation.removals[place, default: 0] else { return }
    if let floor = record.floor, floor.push.link == push.link ? floor.push.value > push.value : push.sequence == nil {
      return
    }
    let sequence = max(push.sequence ?? 0, record.floor?.sequence ?? 0)
    record.floor = Floor(push: push, sequence: sequence)
    records[place] = record
  }

  /// A state that the broker hands out by itself may be an older one (R19).
  func handed(_ path: Path, of application: String, _ state: JSONValue) {
    _ = check(state, at: Place(application: application, path: path), "a restoration")
  }

  private func check(_ state: JSONValue, at place: Place, _ reader: String) -> Push? {
    guard let value = state["v"]?.integer, let push = records[place]?.pushes[Int(value)] else {
      trace.fault("\(reader) finds at \(place.application)/\(place.path) what was never written there: \(state)")
      return nil
    }
    guard let written = try? JSONCodec.parse(Array(push.state.utf8)), written == state else {
      trace.fault("\(reader) finds a part of \(push.value) at \(place.application)/\(place.path)")
      return nil
    }
    return push
  }

  func order(_ paths: [Path]) {
    for (index, path) in paths.enumerated() {
      if let later = paths[..<index].first(where: { $0.isBelow(path) }) {
        trace.fault("\(later) is restored before \(path)")
      }
    }
  }

  // MARK: Generations

  func saved(_ generation: Int64, of application: String, _ expectation: Expectation) {
    if promises[application]?[generation] == nil { promises[application, default: [:]][generation] = expectation }
  }

  func read(generation: Int64, of application: String, _ states: [Path: JSONValue]) {
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
      let sequence = values[place.path].flatMap { records[place]?.pushes[$0]?.sequence }
      if values[place.path] == nil || sequence.map({ $0 < floor.sequence }) == true {
        trace.fault("generation \(generation) lacks \(floor.push.value) of \(application)/\(place.path)")
      }
    }
  }
}
