// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Why an object was saved, or was not.
@Suite struct ExplanationTests {
  let driver = CoreDriver()

  /// A session that answers each round with the same state for all of its objects.
  private func serving(_ number: Int64 = 50, _ more: String = "") throws -> Peer {
    let peer = driver.connect(pid: number)
    let serves = #""process":"editor","serves":["encodeRestorableStateWithCoder"]"#
    try peer.initialize("App", serves + more)
    peer.serves["encodeRestorableStateWithCoder"] = { parameters in
      let states = (parameters["objects"]?.array ?? []).map {
        #"{"object":\#($0["object"]?.integer ?? 0),"state":{"n":1}}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    return peer
  }

  private func explain(_ object: String, by peer: Peer, _ more: String = "") throws -> JSONValue {
    try peer.call("explainRestoration", #"{"object":\#(object)\#(more)}"#)
  }

  private func words(_ explanation: JSONValue, _ list: String = "saved") -> [String] {
    (explanation[list]?.array ?? []).compactMap { $0["step"]?.string }
  }

  @Test func r11WhatARoundDidIsToldStepByStep() throws {
    let peer = try serving()
    try peer.register("Main")
    #expect(try explain(#"["Main"]"#, by: peer)["verdict"] == "neverSaved")
    try peer.call("saveApplicationState")
    let explanation = try explain(#"["Main"]"#, by: peer)
    #expect(words(explanation) == ["included", "asked", "encoded", "saved"])
    #expect(explanation["verdict"] == "saved" && explanation["path"] == ["Main"])
    #expect(explanation["saved"]?.array?[1]["owner"] == ["process": "editor", "pid": 50])
    try peer.encode(#"["Main"]"#, #"{"n":22}"#)
    #expect(words(try explain(#"["Main"]"#, by: peer)) == ["pushed"])
  }

  @Test func r12AnObjectWhoseOwnerIsLateIsStaleUntilItIsWrittenAgain() throws {
    let peer = try serving()
    try peer.register("Main")
    try peer.encode(#"["Main"]"#, #"{"n":0}"#)
    peer.serves = [:]
    let tool = driver.connect(pid: 7)
    let id = tool.start("saveApplicationState", #"{"application":"App","deadlineMilliseconds":500}"#)
    driver.advance(milliseconds: 600)
    #expect(try tool.result(of: id)["stale"]?.array?.count == 1)
    let explanation = try explain(#"["Main"]"#, by: peer)
    #expect(explanation["verdict"] == "stale")
    let stale = explanation["saved"]?.array?.first { $0["step"] == "stale" }
    #expect(stale?["why"] == "late" && stale?["owner"] == ["process": "editor", "pid": 50])
    try peer.encode(#"["Main"]"#, #"{"n":2}"#)
    #expect(try explain(#"["Main"]"#, by: peer)["verdict"] == "saved")
  }

  @Test func r4AnExcludedObjectIsToldByWhatAndOneThatIsReferencedIsNotExcluded() throws {
    let peer = try serving()
    let handle = try peer.register(nil, below: nil, #""kind":"viewController""#)
    try peer.register("Inside", below: "\(handle)", #""kind":"viewController""#)
    try peer.register("Root")
    peer.serves["encodeRestorableStateWithCoder"] = { parameters in
      let states = (parameters["objects"]?.array ?? []).map { object in
        let state = object["path"] == ["Root"] ? #"{"r":{"$restorable":["Inside"]}}"# : "{}"
        return #"{"object":\#(object["object"]?.integer ?? 0),"state":\#(state)}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    #expect(try explain("\(handle)", by: peer)["verdict"] == "excluded")
    #expect(try explain(#"["Inside"]"#, by: peer)["verdict"] == "excluded")
    try peer.call("saveApplicationState")
    let inside = try explain(#"["Inside"]"#, by: peer)
    #expect(inside["verdict"] == "saved")
    #expect(words(inside).contains("referenced"))
    let excluded = try explain("\(handle)", by: peer)
    #expect(excluded["verdict"] == "excluded" && excluded["path"]?.isNull == true)
    #expect(words(excluded).first == "excluded")
  }

  @Test func r19APushThatIsEarlySaysSo() throws {
    let peer = try serving(1)
    try peer.encode(#"["Main"]"#, "{}")
    try peer.goodbye("restart")
    let next = try serving(2)
    try next.register("Main")
    try next.encode(#"["Main"]"#, #"{"blank":1}"#)
    #expect(words(try explain(#"["Main"]"#, by: next)) == ["pushed", "early"])
  }

  @Test func r32ADamagedStateIsTheVerdict() throws {
    let peer = try serving(1)
    try peer.encode(#"["Main"]"#, #"{"n":1}"#)
    let row = driver.archives["App"]?.head.states[1]?.last?.sequence ?? 0
    driver.tamper("App") { $0.damaged = [row] }
    #expect(try peer.decode(#"["Main"]"#)["status"] == "unreadable")
    #expect(try explain(#"["Main"]"#, by: peer)["verdict"] == "unreadable")
  }

  @Test func r23WhatARestorationDidIsToldStepByStep() throws {
    try serving(1).encode(#"["Main"]"#, #"{"n":1}"#)
    driver.restart()
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""process":"editor","serves":["decodeRestorableStateWithCoder"]"#)
    let tool = driver.connect(pid: 7)
    // Registered before, so that it is looked for.
    try peer.register("Main")
    let id = peer.start("restoreApplicationState")
    #expect(try explain(#"["Main"],"application":"App""#, by: tool)["verdict"] == "waiting")
    let call = try #require(peer.openCalls("decodeRestorableStateWithCoder").first)
    peer.answer(call.id, "{}")
    #expect(try peer.result(of: id)["restored"] == [["Main"]])
    let explanation = try explain(#"["Main"],"application":"App""#, by: tool)
    #expect(explanation["verdict"] == "restored")
    #expect(words(explanation, "restored") == ["lookedUp", "located", "handedOut", "finished"])
  }

  @Test func r23WhatWasLeftOutSaysWhy() throws {
    try serving(1).encode(#"["Main"]"#, #"{"n":1}"#)
    driver.restart()
    let peer = driver.connect(pid: 50)
    try peer.initialize()
    try peer.register("Main")
    #expect(try peer.call("restoreApplicationState")["skipped"]?.array?.first?["reason"] == "notServed")
    let explanation = try explain(#"["Main"]"#, by: peer)
    #expect(explanation["verdict"] == "skipped")
    #expect(explanation["restored"]?.array?.last == ["step": "skipped", "reason": "notServed"])
  }

  @Test func stepsAreGoneWhenTheBrokerEndsOrTheHeadIsReplaced() throws {
    let peer = try serving(1)
    try peer.register("Main")
    try peer.call("saveApplicationState")
    try peer.encode(#"["Main"]"#, #"{"n":5}"#)
    try peer.call("rollBack", #"{"generation":1,"force":true}"#)
    let explanation = try explain(#"["Main"]"#, by: peer)
    #expect(words(explanation).isEmpty && explanation["verdict"] == "saved")
    try peer.encode(#"["Main"]"#, #"{"n":6}"#)
    driver.restart()
    let tool = driver.connect(pid: 7)
    #expect(words(try explain(#"["Main"],"application":"App""#, by: tool)).isEmpty)
  }

  @Test func whatIsNotThereIsUnknown() throws {
    let peer = try serving()
    #expect(try peer.fail("explainRestoration", #"{"object":["Main"]}"#).kind == "unknownObject")
    #expect(try peer.fail("explainRestoration", #"{"object":7}"#).kind == "unknownObject")
    #expect(try peer.fail("explainRestoration", "{}").data["pointer"] == "/object")
    let tool = driver.connect(pid: 7)
    #expect(
      try tool.fail("explainRestoration", #"{"object":["A"],"application":"None"}"#).kind == "unknownApplication"
    )
    // A notification causes no work.
    peer.notify("explainRestoration", #"{"object":["Main"]}"#)
  }

  @Test func r12ARollbackInterruptsARound() throws {
    let peer = try serving()
    try peer.register("Main")
    try peer.call("saveApplicationState")
    try peer.encode(#"["Main"]"#, #"{"n":2}"#)
    peer.serves = [:]
    let tool = driver.connect(pid: 7)
    let round = tool.start("saveApplicationState", #"{"application":"App"}"#)
    #expect(peer.openCalls("encodeRestorableStateWithCoder").count == 1)
    let other = driver.connect(pid: 8)
    try other.call("rollBack", #"{"application":"App","generation":1,"force":true}"#)
    let result = try tool.result(of: round)
    #expect(result["saved"] == false && result["reason"] == "interrupted")
    #expect(peer.openCalls("encodeRestorableStateWithCoder").isEmpty)
    #expect(try other.decode(#"["Main"]"#, #""application":"App""#)["state"] == ["n": 1])
    driver.inspect()
  }

  @Test func r11TheApplicationsOwnStateIsRolledBackWithIt() throws {
    let peer = driver.connect(pid: 50)
    try peer.initialize("App", #""delegate":true,"serves":["willEncodeRestorableState"]"#)
    try peer.register("Main")
    for number in 1...2 {
      peer.serves["willEncodeRestorableState"] = { _ in #"{"state":{"version":\#(number)}}"# }
      try peer.encode(#"["Main"]"#, #"{"n":\#(number)}"#)
      #expect(try peer.call("saveApplicationState")["saved"] == true)
    }
    func own() -> String? {
      guard let state = driver.application("App")?.tree.applicationNode?.state,
        case .state(let record, _)? = driver.archives["App"]?.state(state.sequence)
      else { return nil }
      return String(decoding: record.text, as: UTF8.self)
    }
    #expect(own() == #"{"version":2}"#)
    try peer.call("rollBack", #"{"generation":1,"force":true}"#)
    #expect(own() == #"{"version":1}"#)
    driver.inspect()
    #expect(try peer.paths() == ["Main"])
  }
}
