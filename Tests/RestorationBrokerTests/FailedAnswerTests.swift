// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Answers of clients that are errors or invalid JSON: nothing waits for a deadline, and the reason is reported.
@Suite struct FailedAnswerTests {
  private static let encode = "encodeRestorableStateWithCoder"
  private static let identify = "modelIdentifierForElementAtIndexPath"
  private static let noJSON = "the answer is invalid JSON: a value was expected at offset 33"

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

  // MARK: Pulls and data sources

  /// A serving client that has an object `A` with a state and says that it has changed.
  private func invalidating(_ driver: CoreDriver, _ more: String = "") throws -> (peer: Peer, object: Int64) {
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""process":"p","serves":["\#(Self.encode)"]"#)
    let object = try peer.register("A", below: nil, more)
    try peer.encode("\(object)", #"{"n":1}"#)
    try peer.call("invalidateRestorableState", #"{"object":\#(object)}"#)
    driver.advance(milliseconds: 100)
    return (peer, object)
  }

  @Test(arguments: ["failed", "noJSON", "alone", "malformed", "missing", "reservedKey", "late"])
  func r18WhyAPullBroughtNothingIsTold(_ how: String) throws {
    let driver = CoreDriver()
    let (peer, object) = try invalidating(driver)
    let call = try #require(peer.openCalls(Self.encode).first)
    var message: JSONValue?
    switch how {
    case "failed":
      peer.answer(call.id, errorCode: 1, "locked")
      message = "locked"
    case "noJSON":
      peer.answer(call.id, "k2")
      message = .string(Self.noJSON)
    case "alone":
      peer.answer(call.id, #"{"states":[{"object":\#(object),"error":"locked"}]}"#)
      message = "locked"
    case "malformed": peer.answer(call.id, #"{"states":[{"object":\#(object),"state":1}]}"#)
    case "missing": peer.answer(call.id, "{}")
    case "reservedKey":
      let state = #"{"UIApplicationStateRestorationTimestampKey":1}"#
      peer.answer(call.id, #"{"states":[{"object":\#(object),"state":\#(state)}]}"#)
    default: driver.advance(milliseconds: 5_000)
    }
    let explanation = try explain("\(object)", driver)
    #expect(explanation["verdict"] == "stale")
    let words = explanation["saved"]?.array?.compactMap { $0["step"]?.string }
    #expect(words == ["asked", "stale"])
    let stale = try #require(steps(explanation, "saved", "stale").first)
    let why = ["noJSON", "alone"].contains(how) ? "failed" : how
    #expect(stale["why"]?.string == why && stale["owner"] == ["process": "p", "pid": 1])
    #expect(stale["message"] == message)
    try peer.encode("\(object)", #"{"n":2}"#)
    #expect(try explain("\(object)", driver)["verdict"] == "saved")
    driver.inspect()
  }

  /// However often an object is pulled, the last pull is reported.
  @Test func r18WhatWasToldOfEarlierPullsLeavesRoomForTheLast() throws {
    let driver = CoreDriver()
    let (peer, object) = try invalidating(driver)
    for number in 1...40 {
      peer.answer(try #require(peer.openCalls(Self.encode).last).id, errorCode: 1, "\(number)")
      guard number < 40 else { break }
      try peer.call("invalidateRestorableState", #"{"object":\#(object)}"#)
      driver.advance(milliseconds: 100)
    }
    #expect(steps(try explain("\(object)", driver), "saved", "stale").map { $0["message"] } == ["40"])
  }

  @Test(arguments: ["failed", "noJSON", "malformed", "late"])
  func r28WhyAnElementWasNotFoundInTheDataOfTodayIsTold(_ how: String) throws {
    let driver = CoreDriver()
    let peer = driver.connect(pid: 1)
    let question = "indexPathForElementWithModelIdentifier"
    try peer.initialize("App", #""process":"p","serves":["\#(question)"]"#)
    let view = try peer.register("V", below: nil, #""kind":"view""#)
    let elements = (0...1).map { #"{"role":"selected","indexPath":[\#($0)],"identifier":"\#($0)"}"# }
    try peer.encode("\(view)", "{}", #""elements":[\#(elements.joined(separator: ","))]"#)
    try peer.call("registerDataSource", #"{"view":\#(view)}"#)
    let id = peer.start("decodeRestorableState", #"{"object":\#(view)}"#)
    while let call = peer.openCalls(question).first {
      switch how {
      case "failed": peer.answer(call.id, errorCode: 1, "no such row")
      case "noJSON": peer.answer(call.id, "k2")
      case "malformed": peer.answer(call.id, "true")
      default: driver.advance(milliseconds: 1_000)
      }
    }
    #expect(try peer.result(of: id)["elements"]?.array?.map { $0["resolved"] } == [false, false])
    let unresolved = steps(try explain("\(view)", driver), "restored", "elementUnresolved")
    #expect(unresolved.map { $0["owner"] } == [["process": "p", "pid": 1]])
    let messages: [String: JSONValue] = ["failed": "no such row", "noJSON": .string(Self.noJSON)]
    #expect(unresolved.first?["message"] == messages[how])
  }

  // MARK: Confidential objects

  private func told(
    _ object: String,
    _ driver: CoreDriver,
    _ list: String,
    reveal: Bool = false
  ) throws -> [JSONValue] {
    let parameters = #"{"object":\#(object),"application":"App","reveal":\#(reveal)}"#
    let explanation = try driver.connect(pid: 99).call("explainRestoration", parameters)
    return (explanation[list]?.array ?? []).compactMap { $0["message"] }
  }

  /// A client's message about a batch may concern any object of it.
  @Test(arguments: [false, true])
  func r12WhatAClientSaysOfAConfidentialObjectIsToldOnlyToWhoAsks(_ isPull: Bool) throws {
    let driver = CoreDriver()
    let (peer, object) = try invalidating(driver, #""confidential":true"#)
    let other = try peer.register("B")
    peer.answer(try #require(peer.openCalls(Self.encode).last).id, "{}")
    if isPull {
      for each in [object, other] { try peer.call("invalidateRestorableState", #"{"object":\#(each)}"#) }
      driver.advance(milliseconds: 100)
      peer.answer(try #require(peer.openCalls(Self.encode).last).id, errorCode: 1, "the secret is 7")
    } else {
      let id = peer.start("saveApplicationState")
      for call in peer.openCalls(Self.encode) { peer.answer(call.id, errorCode: 1, "the secret is 7") }
      let stale = try peer.result(of: id)["stale"]?.array ?? []
      #expect(stale.map { $0["why"] } == ["failed", "failed"])
      #expect(stale.allSatisfy { $0["message"] == nil })
    }
    #expect(try told("\(object)", driver, "saved") == [])
    #expect(try told("\(object)", driver, "saved", reveal: true) == ["the secret is 7"])
    #expect(try told("\(other)", driver, "saved", reveal: true) == [])
  }

  @Test func r21WhatAClientSaysOfAConfidentialObjectIsNotInTheAnswerOfARestoration() throws {
    let fixture = RestoringFixture()
    try fixture.save([("C", nil, #""confidential":true"#, #"{"n":1}"#), ("D", nil, "", #"{"n":2}"#)])
    let peer = try fixture.join("W", pid: 2)
    peer.serves["decodeRestorableStateWithCoder"] = nil
    try peer.register("C", below: nil, #""confidential":true"#)
    try peer.register("D")
    let id = peer.start("restoreApplicationState")
    let call = try #require(peer.openCalls("decodeRestorableStateWithCoder").first)
    peer.answer(call.id, errorCode: 1, "the secret is 7")
    let skipped = try peer.result(of: id)["skipped"]?.array ?? []
    #expect(skipped.count == 2 && skipped.allSatisfy { $0["message"] == nil })
    #expect(try told(#"["C"]"#, fixture.driver, "restored") == [])
    #expect(try told(#"["C"]"#, fixture.driver, "restored", reveal: true) == ["the secret is 7"])
    #expect(try told(#"["D"]"#, fixture.driver, "restored") == [])
  }
}
