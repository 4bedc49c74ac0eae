// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Save rounds with real processes: the broker's end, a client's end, time that passes (R12, R18, R33).
@Suite struct SavingTests {
  private static let application = "org.example.Rounds"
  private static let serves: JSONValue = ["encodeRestorableStateWithCoder"]

  /// Receives the broker's call and answers with this state for each object.
  private func answerEncode(_ client: WireClient, _ state: JSONValue) throws -> JSONValue {
    let call = try client.receiveMessage()
    #expect(call["method"] == "encodeRestorableStateWithCoder")
    let states = (call["params"]?["objects"]?.array ?? []).map { object in
      JSONValue.object(["object": object["object"] ?? .null, "state": state])
    }
    let answer: JSONValue = ["jsonrpc": "2.0", "id": call["id"] ?? .null, "result": ["states": .array(states)]]
    try client.send(answer.text + "\n")
    return call
  }

  @Test(.broker) func r33ABrokerThatIsToldToEndSavesFirst() throws {
    let client = try broker.session(Self.application, process: "main", ["serves": Self.serves])
    try client.register("Main")
    let process = try broker.pid
    Glibc.kill(process, SIGTERM)
    _ = try answerEncode(client, ["unsaved": 1])
    #expect(try broker.waitForEnd() == .exit(0))
    try broker.start()
    let reader = try broker.connect()
    let scope: JSONObject = ["application": .string(Self.application)]
    let generations = try reader.call("listGenerations", .object(scope))["generations"]?.array ?? []
    #expect(generations.map { $0["kind"] } == ["round"])
    let objects = try reader.call("readArchive", .object(scope))["objects"]?.array ?? []
    #expect(objects.map { $0["state"] } == [["unsaved": 1]])
  }

  @Test(.broker(limits: ["stopRoundMilliseconds": 300]))
  func r33ABrokerDoesNotWaitLongerThanItMayForClientsThatDoNotAnswer() throws {
    let client = try broker.session(Self.application, process: "main", ["serves": Self.serves])
    try client.register("Main")
    #expect(try broker.terminate() == .exit(0))
    try broker.start()
    let scope: JSONObject = ["application": .string(Self.application)]
    #expect(try broker.connect().call("listGenerations", .object(scope))["generations"]?.array?.count == 1)
  }

  @Test(.broker) func r12AClientThatIsKilledDuringTheRoundIsStaleAtOnce() throws {
    let victim = try broker.client(.python)
    try victim.initialize(Self.application, ["process": "victim", "serves": Self.serves])
    try victim.register("Victim")
    let client = try broker.session(Self.application, process: "main", ["serves": Self.serves])
    try client.register("Main")
    let id = try client.request("saveApplicationState", ["deadlineMilliseconds": 60_000])
    // Stopped before it can answer anything, whatever it serves.
    _ = try answerEncode(client, ["n": 1])
    try victim.kill()
    let answer = try client.receiveMessage()
    #expect(answer["id"] == .integer(id))
    #expect(answer["result"]?["saved"] == true)
    let stale = answer["result"]?["stale"]?.array ?? []
    #expect(stale.map { $0["path"] } == [["Victim"]])
    #expect(["ended", "disconnected"].contains(stale.first?["why"]))
  }

  @Test(.broker) func r12ABrokerThatIsKilledInARoundHasSavedNothingOfIt() throws {
    let client = try broker.session(Self.application, process: "main", ["serves": Self.serves])
    try client.register("A")
    let other = try broker.session(Self.application, process: "other", ["serves": Self.serves])
    try other.register("B")
    try client.request("saveApplicationState")
    _ = try answerEncode(other, ["half": 1])
    try client.send(#"{"jsonrpc":"2.0","id":"p","method":"ping"}"# + "\n")
    #expect(try client.receiveMessage()["method"] != nil)
    #expect(try client.receiveMessage()["id"] == "p")
    try broker.crashAndRestart()
    let reader = try broker.connect()
    let scope: JSONObject = ["application": .string(Self.application)]
    #expect(try reader.call("listGenerations", .object(scope))["generations"] == [])
    let objects = try reader.call("readArchive", .object(scope))["objects"]?.array ?? []
    #expect(objects.map { $0["status"] } == ["none", "none"])
  }

  @Test(.broker(limits: ["roundQuietMilliseconds": 100])) func r18ARoundFollowsAChangeByItself() throws {
    let client = try broker.session(
      Self.application,
      ["serves": ["encodeRestorableStateWithCoder", "applicationStateSaved"]]
    )
    try client.register("Main")
    _ = try answerEncode(client, ["n": 1])
    let told = try client.receiveMessage()
    #expect(told["method"] == "applicationStateSaved")
    #expect(told["params"] == ["generation": 1])
  }
}
