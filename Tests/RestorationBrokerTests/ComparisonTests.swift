// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Differences between generations.
@Suite struct ComparisonTests {
  let driver = CoreDriver()
  var tool: Peer { driver.connect(pid: 7) }

  private func run(_ number: Int64, _ body: (Peer) throws -> Void) throws {
    let peer = driver.connect(pid: 100 + number)
    try peer.initialize()
    try body(peer)
    try peer.goodbye("restart")
  }

  private func diff(_ parameters: String, by peer: Peer? = nil) throws -> JSONValue {
    try (peer ?? tool).call("diffGenerations", #"{"application":"App",\#(parameters)}"#)
  }

  private func refusal(_ parameters: String) throws -> Peer.Failure {
    try tool.fail("diffGenerations", #"{"application":"App",\#(parameters)}"#)
  }

  @Test func whatWasAddedRemovedAndChangedIsTold() throws {
    try run(1) { peer in
      try peer.encode(#"["Same"]"#, #"{"a":1}"#)
      try peer.encode(#"["Gone"]"#, "{}")
      try peer.encode(#"["Main"]"#, #"{"keep":0.10,"drop":1,"change":[1, {"x":2}]}"#)
    }
    try run(2) { peer in
      try peer.register("Gone")
      try peer.call("unregisterObject", #"{"object":["Gone"]}"#)
      try peer.encode(#"["Main"]"#, #"{"change":[1,{"x":3}],"keep":0.10,"new":null}"#)
      try peer.encode(#"["New","Child"]"#, "{}")
    }
    try run(3) { _ in }
    let result = try diff(#""from":1,"to":2"#)
    #expect(result["added"] == [["New"], ["New", "Child"]])
    #expect(result["removed"] == [["Gone"]])
    #expect(result["changed"] == [["path": ["Main"], "keys": ["change", "drop", "new"]]])
    #expect(try diff(#""from":1"#) == result)
    let back = try diff(#""from":2,"to":1"#)
    #expect(back["added"] == result["removed"] && back["removed"] == result["added"])
    #expect(back["changed"] == result["changed"])
    #expect(try diff(#""from":2,"to":2"#) == ["added": [], "removed": [], "changed": []])
  }

  @Test func aStateThatWasWrittenAgainAsItWasIsNoChange() throws {
    try run(1) { try $0.encode(#"["A"]"#, #"{"a":1,"b":2}"#, #""elements":[{"role":"selected","indexPath":[1]}]"#) }
    try run(2) { try $0.encode(#"["A"]"#, #"{"b":2, "a":1}"#, #""elements":[{"role":"selected","indexPath":[1]}]"#) }
    #expect(try diff(#""from":1"#)["changed"] == [])
  }

  @Test func elementsAndStatesThatCameOrWentAreChanges() throws {
    try run(1) { peer in
      try peer.encode(#"["A"]"#, "{}", #""elements":[{"role":"selected","indexPath":[1]}]"#)
      try peer.encode(#"["B"]"#, "{}")
      try peer.encode(#"["C","D"]"#, "{}")
    }
    try run(2) { peer in
      try peer.encode(#"["A"]"#, "{}", #""elements":[{"role":"selected","indexPath":[2]}]"#)
      try peer.encode(#"["C"]"#, #"{"c":1}"#)
      try peer.register("B")
      try peer.register("E", below: #"["B"]"#)
      try peer.call("unregisterObject", #"{"object":["B"]}"#)
    }
    let result = try diff(#""from":1"#)
    #expect(
      result["changed"] == [
        ["path": ["A"], "keys": [], "elements": true], ["path": ["B"], "keys": []],
        ["path": ["C"], "keys": ["c"]],
      ]
    )
  }

  @Test func r6AReferenceWhoseTargetWasRenamedIsAChangeAndOneThatCameBackIsNone() throws {
    try run(1) { peer in
      try peer.encode(#"["T"]"#, "{}")
      try peer.encode(#"["U"]"#, "{}")
      try peer.encode(#"["A"]"#, #"{"t":{"$restorable":["T"]},"u":{"$restorable":["U"]}}"#)
    }
    try run(2) { peer in
      try peer.register("T")
      try peer.call("setRestorationIdentifier", #"{"object":["T"],"restorationIdentifier":"Z"}"#)
      let gone = try peer.register("U")
      try peer.call("unregisterObject", #"{"object":\#(gone)}"#)
      try peer.encode(#"["U"]"#, "{}")
      try peer.encode(#"["A"]"#, #"{"t":{"$restorable":["Z"]},"u":{"$restorable":["U"]}}"#)
    }
    let result = try diff(#""from":1"#)
    #expect(result["changed"] == [["path": ["A"], "keys": ["t"]]])
    #expect(result["added"] == [["Z"]] && result["removed"] == [["T"]])
  }

  @Test func r6ARenamedTargetAloneIsSeenInTheSameRow() throws {
    try run(1) { peer in
      try peer.encode(#"["T"]"#, "{}")
      try peer.encode(#"["A"]"#, #"{"t":{"$restorable":["T"]}}"#)
    }
    try run(2) { peer in
      try peer.register("T")
      try peer.call("setRestorationIdentifier", #"{"object":["T"],"restorationIdentifier":"Z"}"#)
    }
    #expect(try diff(#""from":1"#)["changed"] == [["path": ["A"], "keys": ["t"]]])
  }

  @Test func keysOfConfidentialObjectsAreToldOnlyIfAskedFor() throws {
    try run(1) { peer in
      try peer.register("A", below: nil, #""confidential":true"#)
      try peer.encode(#"["A"]"#, #"{"secret":1}"#)
    }
    try run(2) { peer in
      try peer.register("A")
      try peer.encode(#"["A"]"#, #"{"secret":2}"#)
    }
    #expect(try diff(#""from":1"#)["changed"] == [["path": ["A"], "keys": [], "redacted": true]])
    #expect(try diff(#""from":1,"reveal":true"#)["changed"] == [["path": ["A"], "keys": ["secret"]]])
  }

  @Test func r32ADamagedStateIsNamed() throws {
    try run(1) { try $0.encode(#"["A"]"#, #"{"a":1}"#) }
    try run(2) { try $0.encode(#"["A"]"#, #"{"a":2}"#) }
    let rows = driver.archives["App"]?.head.states[1]?.map(\.sequence) ?? []
    for row in rows {
      driver.tamper("App") { $0.damaged = [row] }
      #expect(try diff(#""from":1"#)["changed"] == [["path": ["A"], "keys": [], "unreadable": true]])
    }
  }

  @Test func r4WhatAGenerationLeavesOutIsNotInIt() throws {
    try run(1) { peer in
      try peer.encode(#"["Root"]"#, "{}")
      let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
      try peer.register("Inside", below: "\(excluded)", #""kind":"viewController""#)
      try peer.encode(#"["Inside"]"#, #"{"x":1}"#)
    }
    try run(2) { _ in }
    #expect(try diff(#""from":1"#)["added"] == [["Inside"]])
  }

  @Test(arguments: [
    (#""to":1"#, "/from"), (#""from":0"#, "/from"), (#""from":null"#, "/from"), (#""from":9"#, "/from"),
    (#""from":1,"to":9"#, "/to"), (#""from":1,"cursor":"x""#, "/cursor"), (#""from":1,"cursor":"1.2.3""#, "/cursor"),
    (#""from":1,"cursor":"7.1.1.0.999.0.1""#, "/cursor"), (#""from":1,"cursor":"7.1.1.0.1.-1.1""#, "/cursor"),
    (#""from":1,"cursor":"7.1.1.0.1.0.9223372036854775807""#, "/cursor"),
    (#""from":1,"cursor":"7.1.1.0.1.0.-9223372036854775808""#, "/cursor"),
  ])
  func aCallThatIsWrongIsRefused(_ parameters: String, _ pointer: String) throws {
    try run(1) { try $0.encode(#"["A"]"#, "{}") }
    try run(2) { _ in }
    let failure = try refusal(parameters)
    #expect(failure.kind == "invalidParams" && failure.data["pointer"]?.string == pointer)
    #expect(try tool.fail("diffGenerations", #"{"application":"None","from":1}"#).kind == "unknownApplication")
  }

  // MARK: Pages

  /// Two generations whose differences take several pages of the peer, and the head.
  private func fillMany() throws {
    try run(1) { peer in for index in 100..<400 { try peer.encode(#"["o\#(index)"]"#, #"{"n":1}"#) } }
    try run(2) { peer in for index in 100..<400 { try peer.encode(#"["o\#(index)"]"#, #"{"n":\#(index)}"#) } }
  }

  @Test func pagesShowOneMoment() throws {
    try fillMany()
    let peer = driver.connect(pid: 9)
    try peer.initialize("App", #""messageBytesMax":8192"#)
    var paths: [String] = []
    var pages = 0
    var cursor = ""
    repeat {
      let page = try peer.call("diffGenerations", #"{"from":1\#(cursor)}"#)
      paths += (page["changed"]?.array ?? []).compactMap { $0["path"]?.joined }
      pages += 1
      // States written between pages are not on them.
      try peer.encode(#"["new\#(pages)"]"#, "{}")
      try peer.encode(#"["o399"]"#, #"{"n":1}"#)
      cursor = page["cursor"]?.string.map { #","cursor":"\#($0)""# } ?? ""
    } while !cursor.isEmpty
    #expect(pages > 3)
    #expect(paths == (100..<400).map { "o\($0)" })
  }

  @Test func aCursorIsOfItsCallAndGoodForAMinute() throws {
    try fillMany()
    let peer = driver.connect(pid: 9)
    try peer.initialize("App", #""messageBytesMax":8192"#)
    let cursor = try #require(try peer.call("diffGenerations", #"{"from":1}"#)["cursor"]?.string)
    #expect(try peer.fail("diffGenerations", #"{"from":2,"cursor":"\#(cursor)"}"#).data["pointer"] == "/cursor")
    #expect(try peer.fail("diffGenerations", #"{"from":1,"to":2,"cursor":"\#(cursor)"}"#).data["pointer"] == "/cursor")
    driver.advance(milliseconds: 59_000)
    #expect(try peer.call("diffGenerations", #"{"from":1,"cursor":"\#(cursor)"}"#)["changed"] != nil)
    driver.advance(milliseconds: 2_000)
    #expect(try peer.fail("diffGenerations", #"{"from":1,"cursor":"\#(cursor)"}"#).data["pointer"] == "/cursor")
    driver.restart()
    let next = driver.connect(pid: 9)
    #expect(
      try next.fail("diffGenerations", #"{"application":"App","from":1,"cursor":"\#(cursor)"}"#).data["pointer"]
        == "/cursor"
    )
  }

  @Test func onlyTextsThatMayDifferAreRead() throws {
    driver.measuresArchives = false
    try run(1) { peer in for index in 0..<1_100 { try peer.encode(#"["o\#(index)"]"#, "{}") } }
    try run(2) { try $0.encode(#"["o7"]"#, #"{"n":7}"#) }
    let jobs = driver.jobCount
    let peer = tool
    #expect(try diff(#""from":1,"progressToken":1"#, by: peer)["changed"]?.array?.count == 1)
    // Two pieces of nodes on each side, and the two texts.
    #expect(driver.jobCount - jobs == 6)
    let told = peer.takeNotifications("progress")
    #expect(told.last?["done"] == 1_100 && told.last?["total"] == 1_100)
  }

  @Test func aGenerationThatIsDroppedMeanwhileIsComparedAllTheSame() throws {
    try run(1) { try $0.encode(#"["A"]"#, #"{"a":1}"#) }
    try run(2) { try $0.encode(#"["A"]"#, #"{"a":2}"#) }
    let caller = tool
    driver.betweenPieces = { [driver] in
      driver.betweenPieces = nil
      _ = driver.connect(pid: 8).start("discardApplicationState", #"{"application":"App","generations":true}"#)
    }
    #expect(try diff(#""from":1"#, by: caller)["changed"] == [["path": ["A"], "keys": ["a"]]])
  }

  @Test func aCallerThatLeavesIsForgotten() throws {
    try fillMany()
    let caller = tool
    driver.betweenPieces = { [driver] in
      driver.betweenPieces = nil
      driver.disconnect(caller)
    }
    let jobs = driver.jobCount
    caller.start("diffGenerations", #"{"application":"App","from":1}"#)
    #expect(driver.jobCount - jobs == 1)
    driver.inspect()
  }
}
