// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// A round continues without clients that do not answer, and names them.
@Suite struct RoundAdversityTests {
  private static let application = "org.example.Twenty"
  private static let encode = "encodeRestorableStateWithCoder"
  private static let deadline: Int64 = 2_000
  private static let objects = 3

  private static func peers() throws -> [ServingClient] {
    try (0..<20).map { index in
      let peer = try broker.serving(.python, of: application, as: "p\(index)")
      try peer.register((0..<objects).map { ["identifier": .string("P\(index).\($0)"), "state": ["round": 1]] })
      return peer
    }
  }

  private static func save(_ caller: WireClient) throws -> JSONValue {
    try caller.call("saveApplicationState", ["deadlineMilliseconds": .integer(deadline)])
  }

  /// The states of this generation that are of that round, by process.
  private static func processes(_ saved: JSONValue, round: Int64) throws -> [String: Int] {
    let states = try broker.states(of: application, in: saved["generation"])
    #expect(states.count == 20 * objects)
    var counts: [String: Int] = [:]
    for (path, state) in states where state["round"] == .integer(round) {
      counts["p" + path[0].dropFirst().prefix { $0 != "." }, default: 0] += 1
    }
    return counts
  }

  @Test(.broker(alone: true)) func r12TwoStoppedTwoKilledAndTwoThatAnswerNonsenseAreNamedWithinTheDeadline() throws {
    let peers = try Self.peers()
    let caller = try broker.session(Self.application, process: "caller")
    let first = try Self.save(caller)
    #expect(first["saved"] == true)
    #expect(first["stale"] == [])
    #expect(first["objects"] == .integer(Int64(20 * Self.objects)))
    for (index, peer) in peers.enumerated() {
      for number in 0..<Self.objects { try peer.set("P\(index).\(number)", state: ["round": 2]) }
    }

    for index in 0...1 { kill(peers[index].pid, SIGSTOP) }
    for index in 2...3 { try peers[index].behave(Self.encode, "hold") }
    try peers[4].behave(Self.encode, ["result": ["states": [["object": "nonsense"], 5]]])
    try peers[5].behave(Self.encode, ["result": "nonsense"])
    let begin = Deadline.now
    let call = try caller.request("saveApplicationState", ["deadlineMilliseconds": .integer(Self.deadline)])
    for index in 2...3 {
      try peers[index].awaits("encode", Int64(2 * Self.objects))
      try peers[index].kill()
    }
    let second = try caller.answer(to: call)
    let milliseconds = Deadline.now - begin
    #expect(milliseconds <= Self.deadline + 500, "the round took \(milliseconds) ms")

    #expect(second["saved"] == true)
    #expect(second["objects"] == .integer(Int64(20 * Self.objects)))
    var reasons: [String: Set<String>] = [:]
    for entry in second["stale"]?.array ?? [] {
      reasons[entry["process"]?.string ?? "?", default: []].insert(entry["why"]?.string ?? "?")
      #expect(entry.strings("path").first?.hasPrefix("P" + (entry["process"]?.string ?? "?").dropFirst()) == true)
      #expect(entry["pid"]?.integer != nil)
    }
    #expect(second["stale"]?.array?.count == 6 * Self.objects)
    #expect(Set(reasons.keys) == ["p0", "p1", "p2", "p3", "p4", "p5"])
    #expect(reasons["p0"] == ["late"] && reasons["p1"] == ["late"], "stopped: \(reasons)")
    #expect(reasons["p4"] == ["malformed"] && reasons["p5"] == ["malformed"], "nonsense: \(reasons)")
    let gone: Set<String> = ["ended", "disconnected"]
    #expect((reasons["p2"] ?? ["?"]).union(reasons["p3"] ?? ["?"]).isSubset(of: gone), "killed: \(reasons)")

    // They keep their last good state, all others have their new one.
    let kept = try Self.processes(second, round: 1)
    #expect(kept == Dictionary(uniqueKeysWithValues: (0...5).map { ("p\($0)", Self.objects) }))
    #expect(try Self.processes(second, round: 2).count == 14)

    // Clients that can answer again are in the next round; a client that is gone is not asked, and its objects stay.
    for index in 0...1 { kill(peers[index].pid, SIGCONT) }
    for index in 4...5 { try peers[index].behave(Self.encode, .null) }
    let third = try Self.save(caller)
    #expect(third["stale"] == [])
    #expect(try Self.processes(third, round: 1) == ["p2": Self.objects, "p3": Self.objects])
    withExtendedLifetime(peers) {}
  }

  /// The answer of a stopped process that resumes belongs to no round.
  @Test(.broker) func r12AnAnswerAfterTheDeadlineChangesNothing() throws {
    let peer = try broker.serving(.python, of: Self.application, as: "late")
    try peer.register([["identifier": "Main", "state": ["round": 1]]])
    let caller = try broker.session(Self.application, process: "caller")
    #expect(try caller.call("saveApplicationState")["saved"] == true)
    try peer.set("Main", state: ["round": 2])
    try peer.behave(Self.encode, "hold")
    let call = try caller.request("saveApplicationState", ["deadlineMilliseconds": 300])
    try peer.awaits("encode", 2)
    #expect(try caller.answer(to: call)["stale"]?.array?.first?["why"] == "late")
    #expect(try peer.tell("release")["released"] == 1)
    // The answer was read before this call of the same connection.
    try peer.tell("call", ["method": "ping"])
    #expect(try broker.states(of: Self.application) == [["Main"]: ["round": 1]])
  }

  @Test(.broker, arguments: [FramedClient.Framing.jsonStream, .contentLength])
  func r12AnAnswerThatIsNoJSONEndsTheRoundAtOnce(_ framing: FramedClient.Framing) throws {
    let client = try FramedClient(broker.socket, framing)
    try client.call("initialize", ["application": .string(Self.application), "serves": [.string(Self.encode)]])
    try client.register("Main")
    try client.send(WireClient.message("saveApplicationState", ["deadlineMilliseconds": 60_000], id: "save"))
    let call = try #require(try client.receiveMessage()["id"]?.integer)
    let begin = Deadline.now
    try client.send(#"{"jsonrpc":"2.0","id":\#(call),"result":k2}"#)
    let (fault, saved) = (try client.receiveMessage(), try client.receiveMessage())
    #expect(Deadline.now - begin < 10_000)
    #expect(fault["id"] == .null && fault["error"]?["code"] == -32700)
    let stale = try #require(saved["result"]?["stale"]?.array?.first)
    #expect(stale["path"] == .path("Main") && stale["why"] == "failed")
    #expect(stale["message"] == "the answer is invalid JSON: a value was expected at offset 33")
    #expect(broker.log.contains("an answer is invalid JSON: a value was expected at offset 33"))
  }

  @Test(.broker(limits: ["roundQuietMilliseconds": 50])) func r18AChangeIsSavedByItself() throws {
    let peer = try broker.serving(.python, of: Self.application, as: "quiet")
    try peer.register([["identifier": "Main", "state": ["n": 1]], ["identifier": "Pushed", "state": ["n": 2]]])
    try peer.tell("push", ["names": ["Pushed"]])
    try peer.awaits("saved")
    #expect(try broker.states(of: Self.application, in: 1) == [["Main"]: ["n": 1], ["Pushed"]: ["n": 2]])
  }

  @Test(.broker(limits: ["stopRoundMilliseconds": 1_000, "roundQuietMilliseconds": 0], alone: true))
  func r33ABrokerThatIsToldToEndSavesFirstAndWaitsForNobodyLong() throws {
    let peers = try ["one", "two", "stopped"].map { name in
      let peer = try broker.serving(.python, of: Self.application, as: name)
      try peer.register([["identifier": .string(name), "state": ["by": .string(name)]]])
      return peer
    }
    let other = try broker.serving(.perl, of: "org.example.Other", as: "main")
    try other.register([["identifier": "Main", "state": ["n": 1]]])
    kill(peers[2].pid, SIGSTOP)
    let begin = Deadline.now
    #expect(try broker.terminate() == .exit(0))
    let milliseconds = Deadline.now - begin
    #expect(milliseconds <= 2_500, "it took \(milliseconds) ms to end")
    kill(peers[2].pid, SIGCONT)
    try broker.start()
    #expect(try broker.states(of: Self.application) == [["one"]: ["by": "one"], ["two"]: ["by": "two"]])
    #expect(try broker.states(of: "org.example.Other") == [["Main"]: ["n": 1]])
  }
}
