// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Why an object was saved, or was not.
@Suite struct ExplanationTests {
  private static func explain(_ object: String, _ peer: Peer) throws -> JSONValue {
    try peer.call("explainRestoration", #"{"object":\#(object)}"#)
  }

  @Test func stepsHaveTheTimeAtWhichTheyWereNoted() throws {
    let broker = MemoryBroker()
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("Main")
    let start = broker.now.wall
    try peer.encode(#"["Main"]"#, #"{"n":1}"#)
    broker.advance(milliseconds: 2_500)
    try peer.call("saveApplicationState")
    let steps = try #require(try Self.explain(#"["Main"]"#, peer)["saved"]?.array)
    #expect(steps.map { $0["step"] } == ["included", "notServed", "saved"])
    let time = Timestamp(milliseconds: start + 2_500).description
    #expect(steps.allSatisfy { $0["at"]?.string == time }, "\(steps)")
  }

  /// A process crashes again and again.
  @Test func whatIsNotedSeveralTimesInARowIsOneStep() throws {
    let broker = MemoryBroker()
    try broker.connect().encode(#"["Main"]"#, #"{"n":1}"#, #""application":"App""#)
    let peer = broker.connect()
    try peer.initialize()
    for _ in 1...40 {
      let owner = broker.connect(pid: 7)
      try owner.initialize()
      try owner.register("Main")
      broker.crash(owner)
    }
    let steps = try #require(try Self.explain(#"["Main"]"#, peer)["saved"]?.array)
    #expect(steps.map { $0["step"] } == ["pushed", "ownerEnded"])
    #expect(steps.last?["times"] == 40)
  }

  @Test func anOwnerThatFetchesItsStateIsTheLastRestoration() throws {
    let broker = MemoryBroker()
    try broker.connect().encode(#"["Main"]"#, #"{"n":1}"#, #""application":"App""#)
    for pid in 1...2 as ClosedRange<Int64> {
      let owner = broker.connect(pid: pid)
      try owner.initialize("App", #""process":"note""#)
      try owner.register("Main")
      broker.advance(milliseconds: 500)
      _ = try owner.decode(#"["Main"]"#)
      let (explanation, time) = (try Self.explain(#"["Main"]"#, owner), Timestamp(milliseconds: broker.now.wall))
      let step: JSONValue = [
        "step": "decoded", "at": .string(time.description), "owner": ["process": "note", "pid": .integer(pid)],
      ]
      #expect(explanation["restored"] == [step])
      #expect(explanation["verdict"] == "restored")
      try owner.goodbye("restart")
    }
  }

  @Test func theApplicationsOwnStateHasTheStepsOfTheLastRoundAlone() throws {
    let broker = MemoryBroker()
    let peer = broker.connect()
    try peer.initialize("App", #""delegate":true,"serves":["willEncodeRestorableState"]"#)
    try peer.register("Main")
    for round in 1...20 {
      peer.serves["willEncodeRestorableState"] = { _ in #"{"state":{"round":\#(round)}}"# }
      try peer.call("saveApplicationState")
    }
    let own = try #require(broker.application("App")?.tree.applicationNode)
    #expect(own.savingSteps.map(\.step.word) == ["included", "encoded", "saved"])
    #expect(own.savingSteps.last?.step == .saved(generation: 20))
  }

  @Test func r4TheExplanationNamesWhatExcludes() throws {
    let broker = MemoryBroker()
    let peer = broker.connect(pid: 7)
    let controller = #""kind":"viewController""#
    try peer.initialize("App", #""process":"editor""#)
    try peer.register("Main", controller)
    let sheet = try peer.register(nil, below: #"["Main"]"#, controller)
    try peer.register("Form", below: "\(sheet)", controller)
    let explanation = try Self.explain(#"["Form"]"#, peer)
    #expect(explanation["verdict"] == "excluded")
    let expected: JSONValue = [
      "object": .integer(sheet), "path": .null, "below": ["Main"], "owner": ["process": "editor", "pid": 7],
    ]
    #expect(explanation["excluder"] == expected)
    #expect(try Self.explain(#"["Main"]"#, peer)["excluder"] == nil)
  }

  @Test func stepsAreThoseOfThisBroker() throws {
    let broker = MemoryBroker()
    func saved() throws -> [JSONValue] {
      let call = #"{"application":"App","object":["Main"]}"#
      return try #require(try broker.connect().call("explainRestoration", call)["saved"]?.array)
    }
    try broker.connect().encode(#"["Main"]"#, #"{"n":1}"#, #""application":"App""#)
    #expect(try saved().map { $0["step"] } == ["pushed"])
    broker.restart()
    #expect(try saved().isEmpty)
  }

  @Test func r32ADamagedStateIsTheVerdict() throws {
    let broker = MemoryBroker()
    let row = try broker.connect().encode(#"["Main"]"#, #"{"n":1}"#, #""application":"App""#)["sequence"]?.integer
    broker.restart()
    broker.disk.damage("App", [try #require(row)])
    let peer = broker.connect()
    try peer.initialize()
    #expect(try peer.decode(#"["Main"]"#)["status"] == "unreadable")
    #expect(try peer.call("explainRestoration", #"{"object":["Main"]}"#)["verdict"] == "unreadable")
  }
}
