// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Answers of clients that are errors or no JSON: nothing waits for a deadline, and it is told why.
@Suite struct FailedAnswerTests {
  private static let encode = "encodeRestorableStateWithCoder"
  private static let identify = "modelIdentifierForElementAtIndexPath"
  private static let noJSON = "the answer is no JSON: a value was expected at offset 33"

  private func steps(_ explanation: JSONValue, _ list: String, _ word: String) -> [JSONValue] {
    (explanation[list]?.array ?? []).filter { $0["step"]?.string == word }
  }

  private func explain(_ object: String, _ driver: CoreDriver) throws -> JSONValue {
    try driver.connect(pid: 99).call("explainRestoration", #"{"object":\#(object),"application":"App"}"#)
  }

  @Test(arguments: [
    ("k2", noJSON), (nil, "the document is locked"),
  ])
  func r12ARoundIsOverAtOnceAndSaysWhyAnObjectIsStale(_ result: String?, _ message: String) throws {
    let driver = CoreDriver()
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""process":"p","serves":["\#(Self.encode)"]"#)
    try peer.register("A")
    let id = peer.start("saveApplicationState")
    let call = try #require(peer.openCalls(Self.encode).first)
    if let result { peer.answer(call.id, result) } else { peer.answer(call.id, errorCode: 1, message) }
    let stale = try #require(try peer.result(of: id)["stale"]?.array?.first)
    #expect(stale["why"] == "failed" && stale["message"] == .string(message))
    let step = try #require(steps(try explain(#"["A"]"#, driver), "saved", "stale").first)
    #expect(step["why"] == "failed" && step["message"] == .string(message))
    driver.inspect()
  }

  @Test func r12WhatOneObjectsOwnerSaysIsToldOfThatObject() throws {
    let driver = CoreDriver()
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""process":"p","serves":["\#(Self.encode)"]"#)
    let (a, b) = (try peer.register("A"), try peer.register("B"))
    let long = String(repeating: "é", count: 1_000)
    peer.serves[Self.encode] = { _ in
      #"{"states":[{"object":\#(a),"error":{"message":"\#(long)"}},{"object":\#(b),"error":true}]}"#
    }
    let stale = try peer.call("saveApplicationState")["stale"]?.array ?? []
    #expect(stale.map { $0["why"] } == ["failed", "failed"])
    #expect(stale.map { $0["message"]?.string } == [String(repeating: "é", count: 126) + "…", nil])
  }

  @Test func r11WhyTheDelegateGaveNoStateOfTheApplicationIsTold() throws {
    let driver = CoreDriver()
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""delegate":true,"serves":["willEncodeRestorableState"]"#)
    try peer.register("A")
    try peer.encode(#"["A"]"#, "{}")
    let id = peer.start("saveApplicationState")
    peer.answer(try #require(peer.openCalls("willEncodeRestorableState").first).id, "k2")
    let stale = try #require(try peer.result(of: id)["stale"]?.array?.first)
    #expect(stale["path"] == [] && stale["message"] == .string(Self.noJSON))
  }

  @Test func r28ARoundDoesNotWaitForADataSourceThatWritesNoJSON() throws {
    let driver = CoreDriver()
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""process":"p","serves":["\#(Self.encode)","\#(Self.identify)"]"#)
    try peer.register("C", below: nil, #""kind":"viewController""#)
    let view = try peer.register("V", below: #"["C"]"#, #""kind":"view""#)
    try peer.call("registerDataSource", #"{"view":\#(view)}"#)
    peer.serves[Self.encode] = { parameters in
      let states = (parameters["objects"]?.array ?? []).map { object in
        let elements = #","elements":[{"role":"selected","indexPath":[0]},{"role":"topVisible","indexPath":[1]}]"#
        let handle = object["object"]?.integer ?? 0
        return #"{"object":\#(handle),"state":{}\#(handle == view ? elements : "")}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    let id = peer.start("saveApplicationState")
    for call in peer.openCalls(Self.identify) { peer.answer(call.id, "k2") }
    #expect(try peer.result(of: id)["saved"] == true)
    let unnamed = steps(try explain(#"["C","V"]"#, driver), "saved", "elementUnnamed")
    #expect(unnamed.map { $0["message"] } == [.string(Self.noJSON)])
    #expect(unnamed.first?["owner"] == ["process": "p", "pid": 1])
  }

  @Test(arguments: ["k2", nil])
  func r21ARestorationDoesNotWaitAndSaysWhyAnObjectIsSkipped(_ result: String?) throws {
    let fixture = RestoringFixture()
    try fixture.save([
      ("Made", nil, #""restorationClass":"M""#, #"{"n":1}"#), ("There", nil, "", #"{"n":2}"#),
    ])
    let peer = try fixture.join("W", pid: 2)
    let methods = ["objectWithRestorationIdentifierPath", "decodeRestorableStateWithCoder"]
    for method in methods { peer.serves[method] = nil }
    try peer.call("registerRestorationClass", #"{"restorationClass":"M"}"#)
    try peer.register("There")
    let id = peer.start("restoreApplicationState")
    for method in methods {
      let call = try #require(peer.openCalls(method).first)
      if let result { peer.answer(call.id, result) } else { peer.answer(call.id, errorCode: 1, "the disk is gone") }
    }
    let reply = try peer.result(of: id)
    let message: JSONValue = result == nil ? "the disk is gone" : .string(Self.noJSON)
    #expect(reply["skipped"]?.array?.map { $0["message"] } == [message, message])
    for path in [#"["Made"]"#, #"["There"]"#] {
      let skipped = steps(try explain(path, fixture.driver), "restored", "skipped")
      #expect(skipped.map { $0["message"] } == [message])
    }
    fixture.driver.inspect()
  }
}
