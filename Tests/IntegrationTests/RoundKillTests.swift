// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The broker is killed while a round is under way: a generation is there with all of it or not at all, and so is the
/// head. `RESTORATIOND_LONG=1` kills at 300 random moments, and at 100 more while objects are pushed.
@Suite(.broker) struct RoundKillTests {
  private static let application = "org.example.Rounds"
  private static let processes = 4
  private static let objects = 12

  /// When the broker is killed.
  private enum Moment {
    /// At any moment of about the time that it takes to commit a round.
    case random
    /// While a process keeps its answer back: the round cannot have been committed.
    case beforeTheLastAnswer
    /// When the round is answered: it has been committed.
    case afterTheAnswer
  }

  private static func peers() throws -> [ServingClient] {
    try (0..<processes).map { index in
      let peer = try broker.serving(.python, of: application, as: "p\(index)")
      try peer.register((0..<objects).map { ["identifier": .string("P\(index).\($0)")] })
      return peer
    }
  }

  private static func set(_ peers: [ServingClient], to number: Int64) throws {
    // All lines first: a process works while the others are told.
    for (index, peer) in peers.enumerated() {
      for object in 0..<objects {
        try peer.send("set", ["name": .string("P\(index).\(object)"), "state": ["n": .integer(number)]])
      }
    }
    for peer in peers { for _ in 0..<objects { _ = try peer.receive() } }
  }

  /// The one number that all states of a version have; `nil` without states.
  private static func number(in generation: JSONValue? = nil) throws -> Int64? {
    let states = try broker.states(of: application, in: generation)
    let numbers = Set(states.values.map { $0["n"]?.integer })
    guard numbers.count <= 1, states.isEmpty || states.count == processes * objects else {
      throw TestFailure("half a round in \(generation?.text ?? "the head"): \(states.mapValues(\.text))")
    }
    return numbers.first ?? nil
  }

  /// Begins a round and kills the broker in it; whether the round was answered.
  private static func kill(
    _ broker: BrokerFixture,
    _ peers: [ServingClient],
    at moment: Moment,
    within milliseconds: Int64
  ) throws -> Bool {
    let method = "encodeRestorableStateWithCoder"
    let caller = try broker.connect()
    if moment == .beforeTheLastAnswer { try peers[0].behave(method, "hold") }
    let before = try peers.map { try $0.count("encode") }
    let call = try caller.request("saveApplicationState", ["application": .string(application)])
    var isAnswered = false
    switch moment {
    case .random:
      Wait.moment(.milliseconds(Int64.random(in: 0...milliseconds)))
      isAnswered = caller.hasInput(within: .zero)
    case .beforeTheLastAnswer:
      for (peer, before) in zip(peers, before) { try peer.awaits("encode", before + Int64(objects)) }
    case .afterTheAnswer:
      #expect(try caller.answer(to: call)["saved"] == true)
      isAnswered = true
    }
    try broker.kill()
    return isAnswered
  }

  @Test func r12R15AKillInARoundLeavesAllOfItOrNothing() throws {
    // Four of five at random.
    let rounds = Environment.isLong ? 375 : 30
    let peers = try Self.peers()
    try Self.set(peers, to: 0)
    let caller = try broker.session(Self.application, process: "caller")
    let begin = Deadline.now
    #expect(try caller.call("saveApplicationState")["saved"] == true)
    let usual = Deadline.now - begin
    var window = max(4, usual)
    var last: Int64 = 0
    var committed = 0
    for round in 1...rounds {
      let number = Int64(round)
      try Self.set(peers, to: number)
      let moment: Moment = round % 10 == 0 ? .beforeTheLastAnswer : round % 10 == 5 ? .afterTheAnswer : .random
      let isAnswered = try Self.kill(broker, peers, at: moment, within: window)
      try broker.start()
      let found = try Self.number()
      switch (moment, isAnswered) {
      case (.beforeTheLastAnswer, _): #expect(found == last, "round \(round): it was not over")
      case (_, true): #expect(found == number, "round \(round): it was answered")
      default: #expect(found == number || found == last, "round \(round)")
      }
      if found == number { committed += 1 }
      // Most of the kills are to be about the time of the commit.
      if moment == .random { window = max(4, found == number ? window * 7 / 8 : window * 9 / 8 + 1) }
      last = found ?? last
      let reader = try broker.connect()
      let listed = try reader.call("listGenerations", ["application": .string(Self.application)])
      for generation in listed["generations"]?.array ?? [] {
        let sealed = try Self.number(in: generation["generation"])
        #expect(sealed != nil && (sealed ?? 0) <= last, "round \(round)")
      }
      #expect(try Self.number(in: listed["generations"]?.array?.last?["generation"]) == last)
      for peer in peers {
        #expect(try peer.tell("resume")["resumed"] == true)
        try peer.behave("encodeRestorableStateWithCoder", .null)
      }
    }
    #expect(committed >= rounds / 10 && committed <= rounds - rounds / 10, "\(committed) of \(rounds)")
    print("\(rounds) kills in rounds, the first of \(usual) ms, \(committed) of them committed")
  }

  /// Objects that are pushed while the round is under way: every second.
  private static func isPushed(_ path: [String]) -> Bool {
    path[0].last.flatMap(\.wholeNumberValue)?.isMultiple(of: 2) == false
  }

  /// Makes every process push some of its objects with this number; the answers come while the round runs.
  private static func beginPushes(_ peers: [ServingClient], of number: Int64) throws {
    for (index, peer) in peers.enumerated() {
      let names = (0..<objects).map { "P\(index).\($0)" }.filter { isPushed([$0]) }
      for name in names { try peer.send("set", ["name": .string(name), "state": ["n": .integer(number)]]) }
      try peer.send("push", ["names": .array(names.map { .string($0) })])
    }
  }

  /// The pushes that were answered.
  private static func endPushes(_ peers: [ServingClient]) throws -> Set<String> {
    var answered: Set<String> = []
    for (index, peer) in peers.enumerated() {
      for object in 0..<objects where isPushed(["P\(index).\(object)"]) { _ = try peer.receive() }
      for (name, result) in try peer.receive()["results"]?.object?.members ?? [] where result["sequence"] != nil {
        answered.insert(name)
      }
    }
    return answered
  }

  /// The numbers of a version by path; all objects must be there.
  private static func numbers(in generation: JSONValue? = nil) throws -> [[String]: Int64] {
    let states = try broker.states(of: application, in: generation)
    guard states.count == processes * objects else { throw TestFailure("\(states.count) states") }
    return states.compactMapValues { $0["n"]?.integer }
  }

  /// An object has its former state, the pushed one or that of the round; without pushes all change together.
  @Test func r12R15AKillInARoundLosesNoPushThatWasAnswered() throws {
    let rounds = Environment.isLong ? 100 : 10
    let peers = try Self.peers()
    try Self.set(peers, to: 0)
    let begin = Deadline.now
    let first = try broker.connect().call("saveApplicationState", ["application": .string(Self.application)])
    let usual = max(4, Deadline.now - begin)
    #expect(first["saved"] == true)
    var old = try Self.numbers()
    for round in 1...rounds {
      let (pulled, pushed) = (Int64(3 * round), Int64(3 * round + 1))
      try Self.set(peers, to: pulled)
      let caller = try broker.connect()
      _ = try caller.request("saveApplicationState", ["application": .string(Self.application)])
      try Self.beginPushes(peers, of: pushed)
      Wait.moment(.milliseconds(Int64.random(in: 0...3 * usual)))
      try broker.kill()
      let answered = try Self.endPushes(peers)
      try broker.start()
      let found = try Self.numbers()
      let listed = try broker.connect().call("listGenerations", ["application": .string(Self.application)])
      let sealed = try Self.numbers(in: listed["generations"]?.array?.last?["generation"])
      for (path, number) in found {
        let isPushed = Self.isPushed(path)
        #expect([old[path], pulled, isPushed ? pushed : pulled].contains(number), "round \(round): \(path)")
        if answered.contains(path[0]) { #expect(number == pushed, "round \(round): \(path) was answered") }
        #expect(sealed[path].map { $0 <= number } == true, "round \(round): \(path)")
      }
      for version in [found, sealed] {
        let together = Set(version.filter { !Self.isPushed($0.key) }.values)
        #expect(together.count == 1, "round \(round): half a round, \(together)")
      }
      old = found
      for peer in peers { #expect(try peer.tell("resume")["resumed"] == true) }
    }
  }
}
