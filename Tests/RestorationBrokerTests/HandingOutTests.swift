// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Batches of a restoration: bytes, counts, deferred states; and many objects in many sessions (R21).
@Suite struct HandingOutTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  @Test func aBatchHasAtMost64ObjectsAndOneIsUnderWayAtATime() throws {
    try fixture.save((0..<130).map { ("N\($0)", nil, "", "{}") })
    let worker = try fixture.join("W", pid: 2, messageBytesMax: 1_000_000)
    for number in 0..<130 { try worker.register("N\(number)") }
    var sizes: [Int] = []
    worker.serves["decodeRestorableStateWithCoder"] = { parameters in
      #expect(worker.openCalls("decodeRestorableStateWithCoder").count == 1)
      sizes.append(parameters["objects"]?.array?.count ?? 0)
      return "{}"
    }
    let result = try worker.call("restoreApplicationState")
    #expect(result["restored"]?.array?.count == 130)
    #expect(sizes == [64, 64, 2])
    #expect(fixture.finished(worker).count == 130)
  }

  @Test func aBatchHasAtMostHalfOfWhatASessionTakesAndMoreIsFetched() throws {
    let text = String(repeating: "x", count: 3_000)
    let large = String(repeating: "x", count: 9_000)
    try fixture.save([
      ("A", nil, "", #"{"t":"\#(text)"}"#), ("B", nil, "", #"{"t":"\#(text)"}"#), ("C", nil, "", #"{"t":"\#(large)"}"#),
      ("D", nil, "", "{}"),
    ])
    let worker = broker.connect(pid: 2)
    fixture.answer(worker, "W")
    let serves = #""serves":["decodeRestorableStateWithCoder","applicationFinishedRestoringState"]"#
    try worker.initialize("App", #""messageBytesMax":12000,"# + serves)
    for name in ["A", "B", "C", "D"] { try worker.register(name) }
    let log = worker.serves["decodeRestorableStateWithCoder"]
    worker.serves["decodeRestorableStateWithCoder"] = { parameters in
      for object in parameters["objects"]?.array ?? [] where object["deferred"]?.bool == true {
        let state = try? worker.decode("\(object["object"]?.integer ?? 0)")
        #expect(state?["state"]?["t"]?.string?.count == 9_000)
      }
      return log?(parameters)
    }
    let result = try worker.call("restoreApplicationState")
    #expect(outcome(result) == ["+A", "+B", "+C", "+D"])
    #expect(fixture.log == ["W decode A", "W decode B C? D"])
    #expect(fixture.finished(worker).count == 4)
    broker.inspect()
  }

  /// The caller acts on the answer, and may ask often.
  @Test func theQuestionHowAStateIsDeliveredChangesNothing() throws {
    let names = ["Blank", "Class", "Poison", "Suspect"]
    try fixture.save([
      ("Blank", nil, "", nil), ("Class", nil, #""objectClass":"Old""#, "{}"), ("Poison", nil, "", "{}"),
      ("Suspect", nil, "", "{}"), ("Good", nil, "", "{}"),
    ])
    for (name, pid) in [("Poison", 2), ("Poison", 3), ("Suspect", 4)] as [(String, Int64)] {
      let victim = broker.connect(pid: pid)
      try victim.initialize()
      try victim.register(name)
      _ = try victim.decode(#"["\#(name)"]"#)
      broker.crash(victim)
    }
    let worker = try fixture.join("W", pid: 5)
    for name in names + ["Good"] { try worker.register(name, below: nil, #""objectClass":"New""#) }
    _ = try worker.decode(#"["Good"]"#)
    let application = try #require(broker.application("App"))
    let nodes = names.compactMap { application.tree.node(at: [$0]) }
    let owner = try #require(application.sessions.values.first { $0.facts.role == "W" })
    let steps = nodes.map(\.restoringSteps)
    let mismatch = RestoringStep.classMismatch(saved: "Old", declared: ["New"])
    let answers: [Deliveries.Manner] = [
      .none(.restored, because: .noState), .none(.skipped(.classMismatch), because: mismatch),
      .none(.skipped(.quarantined), because: .quarantined(since: Timestamp(milliseconds: broker.now.wall))),
      .afterTrials,
    ]
    for _ in 1...2 { #expect(nodes.map { application.manner(of: $0, to: owner) } == answers) }
    #expect(nodes.map(\.restoringSteps) == steps)
    #expect(broker.core.context.outcome.isEmpty)
  }

  @Test func aReplyThatWouldBeTooLongSaysHowMuchIsLeftOut() throws {
    try fixture.save((0..<20).map { ("N\($0)", nil, "", "{}") })
    let worker = broker.connect(pid: 2)
    try worker.initialize("App", #""messageBytesMax":1000"#)
    for number in 0..<20 { try worker.register("N\(number)") }
    let result = try worker.call("restoreApplicationState")
    let listed = result["skipped"]?.array?.count ?? 0
    #expect(listed > 0 && listed < 20)
    #expect(result["omitted"]?.integer == Int64(20 - listed))
  }

  @Test(arguments: 1...12)
  func r21ManySessionsAndObjectsInAnyOrderAreRestoredParentsFirst(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let count = 60
    var parents: [Int?] = []
    var objects: [(identifier: String, parent: String?, more: String, state: String?)] = []
    func path(_ number: Int) -> [String] { (parents[number].map { path($0) } ?? []) + ["N\(number)"] }
    func json(_ path: [String]) -> String { JSONText(.array(path.map { .string($0) })).string }
    for number in 0..<count {
      let parent = number > 0 && random.next() % 4 != 0 ? Int(random.next() % UInt64(number)) : nil
      parents.append(parent)
      objects.append(("N\(number)", parent.map { json(path($0)) }, "", #"{"n":\#(number)}"#))
    }
    try fixture.save(objects)
    let peers = try (0..<5).map { try fixture.join("P\($0)", pid: Int64(10 + $0)) }
    var decoded: [String] = []
    for peer in peers {
      peer.serves["decodeRestorableStateWithCoder"] = { parameters in
        decoded += (parameters["objects"]?.array ?? []).compactMap { $0["path"]?.joined }
        return "{}"
      }
    }
    let id = peers[0].start("restoreApplicationState")
    for number in (0..<count).shuffled(using: &random) {
      let parent = parents[number].map { json(path($0)) }
      try peers[Int(random.next() % 5)].register("N\(number)", below: parent)
    }
    let result = try peers[0].result(of: id)
    #expect(result["restored"]?.array?.count == count)
    #expect(decoded.count == count && Set(decoded).count == count)
    for (position, path) in decoded.enumerated() {
      let parent = path.split(separator: "/").dropLast().joined(separator: "/")
      #expect(parent.isEmpty || decoded[..<position].contains(parent), "\(path) came before the one above it")
    }
    #expect(peers.reduce(0) { $0 + fixture.finished($1).count } == count)
    broker.inspect()
  }
}
