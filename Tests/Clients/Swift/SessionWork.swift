// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient

/// A process at work: objects whose states change all the time, through a session that outlives the broker.
///
/// Objects `One0`, `One1` … encode one state after the other, numbered from 1. Objects `Many0` … encode three at a time;
/// the number is that of the three. The process records the states sent and acknowledged, and how it recovered from
/// each loss of the connection.
actor SessionWork {
  private struct Record {
    var sent: Int64 = 0
    var acknowledged: Int64 = 0
    /// The last stored sequence, and the archive that it belongs to.
    var sequence: Int64 = 0
    var archive: String?
  }

  /// Milliseconds of the clock that all processes share.
  private struct Recovery {
    var lost: Int64
    var connected: Int64?
    var acknowledged: Int64?
  }

  private let session: RestorationSession
  private var objects: [String: RestorableObject] = [:]
  private var records: [String: Record] = [:]
  /// The first answer for each object since the last report, which is that of the state that was under way then; no
  /// sequence if it was stored already.
  private var answers: [String: (number: Int64, sequence: Int64?)] = [:]
  private var faults: [String] = []
  private var recoveries: [Recovery] = []
  private var total: Int64 = 0
  /// When encodes were acknowledged, since the last report.
  private var acknowledgements: [Int64] = []
  private var waiters: [(isMet: @Sendable (isolated SessionWork) -> Bool, CheckedContinuation<Void, Never>)] = []
  private var tasks: [Task<Void, Never>] = []

  init(_ session: RestorationSession) { self.session = session }

  static func state(_ number: Int64) -> JSONValue {
    let size = [1, 300, 6_000][Int(number % 3)]
    return [
      "n": .integer(number), "pad": .string(String(repeating: "x", count: size)),
      "sum": .integer(number * 31 + Int64(size)),
    ]
  }

  // MARK: Work

  /// - Parameter path: of the object that the parent is below; another process may have it.
  func begin(below parent: String, in path: IdentifierPath?, objects count: Int) async throws {
    let root = try await session.register(
      ObjectRegistration(parent, restorationParent: path.map { .path($0) }, awaitParent: .seconds(10))
    )
    for index in 0..<count {
      let name = index % 2 == 0 ? "One\(index / 2)" : "Many\(index / 2)"
      objects[name] = try await session.register(ObjectRegistration(name, classes: ["Work"]), below: root)
      records[name] = Record()
    }
    let states = session.states
    tasks.append(Task { for await state in states { became(state) } })
    for (name, object) in objects {
      tasks.append(Task { await (name.hasPrefix("One") ? encodeOne(name, object) : encodeMany(name, object)) })
    }
  }

  func stop() async {
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }

  func end(_ reason: GoodbyeReason) async -> Bool { await session.end(reason) }

  private func encodeOne(_ name: String, _ object: RestorableObject) async {
    while !Task.isCancelled {
      records[name]?.sent += 1
      guard let number = records[name]?.sent, let outcome = await encode(number, name, object) else { return }
      // Together: a report that came between would lose the one, and lack the other.
      if answers[name] == nil { answers[name] = (number, outcome == .superseded ? nil : records[name]?.sequence) }
      acknowledged(number, name)
      // The broker says that it is saved, so it must be stored.
      if outcome == .superseded { await check(number, name, object) }
    }
  }

  private func encodeMany(_ name: String, _ object: RestorableObject) async {
    while !Task.isCancelled {
      records[name]?.sent += 1
      guard let number = records[name]?.sent else { return }
      async let first = encode(number, name, object)
      async let second = encode(number, name, object)
      async let third = encode(number, name, object)
      let outcomes = await (first, second, third)
      guard outcomes.0 != nil, outcomes.1 != nil, outcomes.2 != nil else { return }
      acknowledged(number, name)
    }
  }

  /// `nil` if the work is stopped.
  private func encode(_ number: Int64, _ name: String, _ object: RestorableObject) async -> EncodeOutcome? {
    do {
      let state = try RestorableState(jsonText: TestClient.text(Self.state(number)))
      let outcome = try await session.encode(state, for: object)
      if case .stored(let sequence, _) = outcome { stored(sequence, name) }
      if outcome == .discarded { faults.append("\(name) \(number): discarded") }
      return outcome
    } catch is CancellationError {
      return nil
    } catch {
      faults.append("\(name) \(number): \(error)")
      return nil
    }
  }

  private func check(_ number: Int64, _ name: String, _ object: RestorableObject) async {
    do {
      let decoded = try await session.decode(object)
      let found = try decoded.state.map { try JSONCodec.parse(Array($0.jsonText.utf8)) }
      if found != Self.state(number) {
        faults.append("\(name) \(number): not there, but \(found.map(TestClient.text) ?? "nothing")")
      }
    } catch is CancellationError {
      // Stopped.
    } catch {
      faults.append("\(name) \(number): \(error)")
    }
  }

  private func stored(_ sequence: Int64, _ name: String) {
    let archive = session.info.restoration.archive
    if name.hasPrefix("One"), let before = records[name], before.archive == archive, sequence <= before.sequence {
      faults.append("\(name): sequence \(sequence) after \(before.sequence)")
    }
    records[name]?.sequence = sequence
    records[name]?.archive = archive
  }

  private func acknowledged(_ number: Int64, _ name: String) {
    records[name]?.acknowledged = number
    total += 1
    acknowledgements.append(Clock.now)
    if let last = recoveries.indices.last, recoveries[last].connected != nil, recoveries[last].acknowledged == nil {
      recoveries[last].acknowledged = Clock.now
    }
    wake()
  }

  private func became(_ state: SessionState) {
    switch state {
    case .withoutBroker: faults.append("no broker")
    case .reconnecting: recoveries.append(Recovery(lost: Clock.now))
    case .connected:
      if let last = recoveries.indices.last { recoveries[last].connected = Clock.now }
    case .ended(let ending): faults.append("ended: \(ending)")
    }
  }

  // MARK: Reports

  /// Returns when `count` more encodes have been acknowledged.
  func acknowledged(more count: Int64) async {
    let goal = total + count
    await wait { $0.total >= goal }
  }

  /// Returns when every object has been encoded again.
  func acknowledgedAll() async {
    let before = records.mapValues(\.acknowledged)
    await wait { work in before.allSatisfy { name, number in (work.records[name]?.acknowledged ?? 0) > number } }
  }

  /// How the session recovered from the last loss, once an encode was acknowledged after that time.
  func recovered(after time: Int64) async -> JSONValue {
    await wait { ($0.recoveries.last?.acknowledged ?? 0) >= time }
    guard faults.isEmpty, let recovery = recoveries.last else { return report() }
    return [
      "lost": .integer(recovery.lost), "connected": .integer(recovery.connected ?? 0),
      "acknowledged": .integer(recovery.acknowledged ?? 0), "recoveries": .integer(Int64(recoveries.count)),
    ]
  }

  /// When an encode was first acknowledged after that time, even if the connection was not lost.
  func continued(after time: Int64) async -> JSONValue {
    await wait { ($0.acknowledgements.last ?? 0) >= time }
    guard faults.isEmpty, let first = acknowledgements.first(where: { $0 >= time }) else { return report() }
    acknowledgements = []
    return ["acknowledged": .integer(first), "recoveries": .integer(Int64(recoveries.count))]
  }

  func report() -> JSONValue {
    var members = JSONObject()
    for (name, record) in records {
      members[name] = ["sent": .integer(record.sent), "acknowledged": .integer(record.acknowledged)]
    }
    var first = JSONObject()
    for (name, answer) in answers {
      first[name] = ["n": .integer(answer.number), "sequence": answer.sequence.map { .integer($0) } ?? .null]
    }
    answers = [:]
    return [
      "objects": .object(members), "answers": .object(first),
      "total": .integer(total), "faults": .array(faults.map { .string($0) }),
    ]
  }

  private func wait(until isMet: @escaping @Sendable (isolated SessionWork) -> Bool) async {
    if isMet(self) || !faults.isEmpty { return }
    await withCheckedContinuation { waiters.append((isMet, $0)) }
  }

  private func wake() {
    let woken = waiters.filter { $0.isMet(self) || !faults.isEmpty }
    waiters.removeAll { $0.isMet(self) || !faults.isEmpty }
    for (_, continuation) in woken { continuation.resume() }
  }
}
