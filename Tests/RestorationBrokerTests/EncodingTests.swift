// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Pushing states and getting them back: reserved keys, references, durability, revisions (R10, R14, R15, R27).
@Suite struct EncodingTests {
  let driver = CoreDriver()
  let peer: Peer

  init() throws {
    peer = driver.connect(pid: 1)
    try peer.initialize()
  }

  // MARK: R10

  @Test(arguments: [
    "UIApplicationStateRestoration", "UIApplicationStateRestorationTimestampKey", "UIStateRestorationX",
    "UIStateRestoration",
  ])
  func r10AReservedKeyIsRefusedAndNothingIsStored(_ key: String) throws {
    try peer.register("A")
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    let failure = try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"b":2,"\#(key)":3}"#))
    #expect(failure.code == -32007)
    #expect(failure.data["pointer"] == .string("/state/\(key)"))
    #expect(try peer.state(#"["A"]"#) == ["a": 1])
    let unknown = try peer.fail("encodeRestorableState", peer.encoding(#"["New"]"#, #"{"\#(key)":3}"#))
    #expect(unknown.kind == "reservedKey")
    #expect(try peer.paths() == ["A"])
    driver.inspect()
  }

  @Test func anApplicationNameOfOtherBytesIsNotTheOneBefore() throws {
    let peer = driver.connect()
    try peer.encode(#"["A"]"#, "{}", #""application":"K""#)
    // The sign for kelvin means the same letter to Unicode.
    let call = peer.encoding(#"["A"]"#, "{}", "\"application\":\"\u{212A}\"")
    #expect(try peer.fail("encodeRestorableState", call).code == -32602)
    try peer.initialize("K")
    #expect(try peer.fail("encodeRestorableState", call).code == -32602)
    #expect(try peer.fail("subscribe", "{\"application\":\"\u{212A}\"}").code == -32602)
  }

  @Test func r10KeysThatOnlyContainAReservedOneAreFine() throws {
    let state = #"{"xUIStateRestoration":1,"UIState":2,"uistaterestoration":3,"in":{"UIStateRestoration":4},"":5}"#
    try peer.encode(#"["A"]"#, state)
    #expect(try peer.state(#"["A"]"#)?["in"]?["UIStateRestoration"] == 4)
  }

  @Test func r10EachObjectHasKeysOfItsOwn() throws {
    try peer.encode(#"["A"]"#, #"{"k":1}"#)
    try peer.encode(#"["A","B"]"#, #"{"k":2}"#)
    #expect(try peer.state(#"["A"]"#) == ["k": 1])
    #expect(try peer.state(#"["A","B"]"#) == ["k": 2])
  }

  @Test func aStateComesBackAsItWasSent() throws {
    let state = #"{"a":0.1,"b":1e300,"c":-0.0,"d":1E400,"e":123456789012345678901234567890,"f":"\u0000\u00e9é","":[]}"#
    try peer.encode(#"["A"]"#, state)
    let id = peer.start("decodeRestorableState", #"{"object":["A"]}"#)
    #expect(try peer.text(id).contains(state))
  }

  @Test func whiteSpaceIsTakenOutOfAStateAndReferencesStayInPlace() throws {
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    try peer.encode(#"["B"]"#, #"{ "x" : [ 1 , {"$restorable" : [ "A" ] } , " y " ] , "z" : 2 }"#)
    #expect(
      try peer.text(peer.start("decodeRestorableState", #"{"object":["B"]}"#))
        .contains(#"{"x":[1,{"$restorable":["A"],"object":null}," y "],"z":2}"#)
    )
  }

  // MARK: R14, R27

  @Test func r14AReferenceByHandleOrPathLeadsToLiveVacantAndArchivedObjects() throws {
    let live = try peer.register("Live")
    try peer.encode(#"["Vacant","Archived"]"#, #"{"a":1}"#)
    try peer.encode(
      #"["A"]"#,
      #"{"a":{"$restorable":\#(live)},"b":{"$restorable":["Live"]},"c":{"$restorable":["Vacant"]},"#
        + #""d":[{"e":{"$restorable":["Vacant","Archived"]}}]}"#
    )
    let state = try #require(try peer.state(#"["A"]"#))
    let toLive: JSONValue = ["$restorable": ["Live"], "object": .integer(live)]
    #expect(state["a"] == toLive)
    #expect(state["b"] == toLive)
    #expect(state["c"] == ["$restorable": ["Vacant"], "object": nil])
    #expect(state["d"] == [["e": ["$restorable": ["Vacant", "Archived"], "object": nil]]])
    driver.inspect()
  }

  @Test(arguments: ["99", #"["Nobody"]"#, #"["A","Nobody"]"#, "0", "-1", "1.5", #""A""#, "[]", "true", "{}"])
  func r14AReferenceThatLeadsNowhereFailsTheWholeEncode(_ target: String) throws {
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    let state = #"{"ok":{"$restorable":["A"]},"r":[{"$restorable":\#(target)}]}"#
    let failure = try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, state))
    #expect(failure.code == -32015)
    #expect(try peer.state(#"["A"]"#) == ["a": 1])
    driver.inspect()
  }

  @Test func r14WhatWasDecodedCanBeEncodedAgain() throws {
    try peer.register("T")
    try peer.encode(#"["A"]"#, #"{"t":{"$restorable":["T"]}}"#)
    for _ in 0..<2 {
      let text = JSONText(try #require(try peer.state(#"["A"]"#))).string
      try peer.encode(#"["A"]"#, text)
    }
    #expect(try peer.state(#"["A"]"#)?["t"]?["$restorable"] == ["T"])
    try peer.call("unregisterObject", #"{"object":["T"]}"#)
    let gone = try #require(try peer.state(#"["A"]"#))
    #expect(gone["t"]?["$restorable"]?.isNull == true)
    try peer.encode(#"["A"]"#, JSONText(gone).string)
    #expect(try peer.state(#"["A"]"#)?["t"]?["$restorable"]?.isNull == true)
    driver.inspect()
  }

  @Test func r14ALiteralIsNoReference() throws {
    let state = #"{"$literal":{"$restorable":["Nobody"]},"b":{"$literal":[{"$restorable":7}]}}"#
    try peer.encode(#"["A"]"#, state)
    #expect(try peer.text(peer.start("decodeRestorableState", #"{"object":["A"]}"#)).contains(state))
  }

  @Test func r14ReferencesInsideOfReferencesAreDropped() throws {
    try peer.encode(#"["T"]"#, "{}")
    try peer.encode(#"["A"]"#, #"{"r":{"x":{"$restorable":["Nobody"]},"$restorable":["T"]}}"#)
    #expect(try peer.state(#"["A"]"#)?["r"] == ["$restorable": ["T"], "object": nil])
  }

  @Test func r14ASessionOfAnotherApplicationIsNoTarget() throws {
    let other = driver.connect(pid: 2)
    try other.initialize("Other")
    let handle = try other.register("T")
    let failure = try peer.fail("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"r":{"$restorable":\#(handle)}}"#))
    #expect(failure.kind == "invalidReference")
  }

  @Test func r27TheHandleIsThatOfThePresentOwner() throws {
    let before = try peer.register("T")
    try peer.encode(#"["A"]"#, #"{"r":{"$restorable":\#(before)}}"#)
    try peer.goodbye("restart")
    let next = driver.connect(pid: 2)
    try next.initialize()
    #expect(try next.state(#"["A"]"#)?["r"]?["object"]?.isNull == true)
    let after = try next.register("T")
    #expect(try next.state(#"["A"]"#)?["r"] == ["$restorable": ["T"], "object": .integer(after)])
    #expect(try next.decode("\(after)")["status"] == "none")
  }

  // MARK: R15

  @Test func r15AnswersWaitUntilTheChangeIsDurable() throws {
    driver.holdsCommits = true
    let register = peer.start("registerObjectForStateRestoration", peer.registration("A"))
    let encode = peer.start("encodeRestorableState", peer.encoding(#"["B"]"#, "{}"))
    let superseding = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""revision":3"#))
    let superseded = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, "{}", #""revision":3"#))
    let move = peer.start("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"C"}"#)
    let decode = peer.start("decodeRestorableState", #"{"object":["B"]}"#)
    let pages = [peer.start("readArchive"), peer.start("describeApplication")]
    let unregister = peer.start("unregisterObject", #"{"object":["C"]}"#)
    let goodbye = peer.start("goodbye", #"{"reason":"restart"}"#)
    let all = [register, encode, superseding, superseded, move, decode, unregister, goodbye] + pages
    #expect(all.allSatisfy { !peer.hasAnswer($0) })
    let ping = peer.start("ping")
    #expect(peer.hasAnswer(ping))
    driver.commit()
    #expect(all.allSatisfy { peer.hasAnswer($0) })
    #expect(try peer.result(of: superseded) == ["superseded": true])
    #expect(try peer.result(of: encode)["durability"] == "disk")
  }

  @Test func r15AReaderOnAnotherConnectionSeesOnlyWhatIsDurable() throws {
    let other = driver.connect(pid: 2)
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    driver.holdsCommits = true
    let encode = peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":2}"#))
    let decode = other.start("decodeRestorableState", #"{"application":"App","object":["A"]}"#)
    #expect(!other.hasAnswer(decode))
    driver.commit()
    #expect(peer.hasAnswer(encode))
    #expect(try other.result(of: decode)["state"] == ["a": 2])
  }

  @Test func r15ANotificationIsReadBackOnItsConnection() throws {
    driver.holdsCommits = true
    peer.notify("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":1}"#))
    let decode = peer.start("decodeRestorableState", #"{"object":["A"]}"#)
    driver.commit()
    #expect(try peer.result(of: decode)["state"] == ["a": 1])
  }

  /// However many of them come while the disk is slow, they must not pile up.
  @Test func nothingIsReadOrKeptForTheAnswerOfANotification() throws {
    let peer = driver.connect()
    try peer.initialize()
    let main = try peer.register("Main", below: nil, #""objectClass":"Old""#)
    try peer.encode("\(main)", #"{"a":1}"#)
    for holds in [false, true] {
      driver.holdsCommits = holds
      peer.notify("encodeRestorableState", peer.encoding("\(main)", #"{"a":2}"#))
      for object in ["\(main)", #"["Main"]"#] { peer.notify("decodeRestorableState", #"{"object":\#(object)}"#) }
      for method in [
        "readArchive", "describeApplication", "listGenerations", "listApplications", "verifyArchive", "exportArchive",
      ] {
        peer.notify(method, "{}")
      }
    }
    driver.holdsCommits = false
    #expect(driver.answersForNobody == 0)
    driver.commit()
    #expect(try peer.state("\(main)") == ["a": 2])
  }

  @Test func r15ADecodeBetweenTwoEncodesSeesTheFirst() throws {
    driver.holdsCommits = true
    peer.notify("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":1}"#))
    let decode = peer.start("decodeRestorableState", #"{"object":["A"]}"#)
    peer.notify("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"a":2}"#))
    driver.commit()
    #expect(try peer.result(of: decode)["state"] == ["a": 1])
    #expect(try peer.state(#"["A"]"#) == ["a": 2])
  }

  @Test func r15AnEqualOrLowerRevisionIsNotStored() throws {
    try peer.register("A")
    try peer.encode(#"["A"]"#, #"{"a":5}"#, #""revision":5"#)
    for revision in [5, 4, 1] {
      #expect(try peer.encode(#"["A"]"#, #"{"a":0}"#, #""revision":\#(revision)"#) == ["superseded": true])
    }
    #expect(try peer.state(#"["A"]"#) == ["a": 5])
    try peer.encode(#"["A"]"#, #"{"a":6}"#, #""revision":6"#)
    try peer.encode(#"["A"]"#, #"{"a":7}"#)
    #expect(try peer.encode(#"["A"]"#, #"{"a":0}"#, #""revision":6"#) == ["superseded": true])
    #expect(try peer.state(#"["A"]"#) == ["a": 7])
    driver.inspect()
  }

  @Test func r15RevisionsOutliveTheBrokerWithTheirSession() throws {
    let first = driver.connect(pid: 5)
    let token = try #require(try first.initialize()["session"]?.string)
    let handle = try first.register("R")
    try first.encode("\(handle)", #"{"a":5}"#, #""revision":5"#)
    try first.encode("\(handle)", #"{"a":6}"#)
    driver.restart()
    let again = driver.connect(pid: 5)
    try again.initialize("App", #""session":"\#(token)""#)
    #expect(try again.encode("\(handle)", #"{"a":0}"#, #""revision":5"#) == ["superseded": true])
    #expect(try again.encode("\(handle)", #"{"a":7}"#, #""revision":6"#)["durability"] == "disk")
    driver.inspect()
  }

  @Test func r15RevisionsGoOnWhereASessionRegistersAPathAgain() throws {
    let handle = try peer.register("A")
    try peer.encode("\(handle)", #"{"a":5}"#, #""revision":5"#)
    try peer.call("unregisterObject", #"{"object":\#(handle),"keepState":true}"#)
    let again = try peer.register("A")
    #expect(try peer.encode("\(again)", #"{"a":0}"#, #""revision":5"#) == ["superseded": true])
    #expect(try peer.encode("\(again)", #"{"a":6}"#, #""revision":6"#)["durability"] == "disk")
    driver.inspect()
  }

  @Test func r15RevisionsAreCountedBySession() throws {
    try peer.register("A")
    try peer.encode(#"["A"]"#, #"{"a":5}"#, #""revision":5"#)
    try peer.goodbye("restart")
    try peer.initialize()
    try peer.register("A")
    _ = try peer.decode(#"["A"]"#)
    #expect(try peer.encode(#"["A"]"#, #"{"a":1}"#, #""revision":1"#)["durability"] == "disk")
    #expect(try peer.state(#"["A"]"#) == ["a": 1])
  }

  // MARK: By path

  @Test func anEncodeByPathMakesVacantAncestors() throws {
    let script = driver.connect(pid: 9)
    try script.encode(#"["A","B#2","C"]"#, #"{"c":1}"#, #""application":"Other""#)
    let objects = try script.objects(#""application":"Other""#)
    #expect(objects.compactMap { $0["path"]?.joined } == ["A", "A/B#2", "A/B#2/C"])
    #expect(objects.allSatisfy { $0["object"]?.isNull == true && $0["orphaned"] == false })
    #expect(try script.decode(#"["A"]"#, #""application":"Other""#)["status"] == "none")
    driver.inspect("Other")
  }

  @Test(arguments: [#"["A","b/c"]"#, #"["A","b#x"]"#, #"["A",""]"#, ##"["#1"]"##, #"["a#01"]"#, #"["a#-1"]"#])
  func anEncodeByAPathThatIsNoneIsRefused(_ path: String) throws {
    #expect(try peer.fail("encodeRestorableState", peer.encoding(path, "{}")).kind == "invalidIdentifier")
    #expect(try peer.paths().isEmpty)
  }

  @Test func anEncodeByPathOfALiveObjectIsForItsOwner() throws {
    let script = driver.connect(pid: 9)
    try peer.register("A")
    let failure = try script.fail("encodeRestorableState", script.encoding(#"["A"]"#, "{}", #""application":"App""#))
    #expect(failure.kind == "notOwner")
    #expect(failure.data["owners"]?.array?.count == 1)
  }

  @Test func manyScriptsEncodeOnePathAndTheLastCounts() throws {
    let scripts = (10..<14).map { driver.connect(pid: $0) }
    driver.holdsCommits = true
    for (index, script) in scripts.enumerated() {
      script.start("encodeRestorableState", script.encoding(#"["A"]"#, #"{"a":\#(index)}"#, #""application":"S""#))
    }
    driver.commit()
    driver.holdsCommits = false
    #expect(try scripts[0].decode(#"["A"]"#, #""application":"S""#)["state"] == ["a": 3])
    driver.inspect("S")
  }

  @Test func r29StatesOfPathsNobodyClaimsAreKeptAndStayWithTheirApplication() throws {
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    driver.restart()
    let other = driver.connect(pid: 2)
    try other.initialize("Other")
    #expect(try other.fail("decodeRestorableState", #"{"object":["A"]}"#).kind == "unknownObject")
    let back = driver.connect(pid: 3)
    #expect(try back.decode(#"["A"]"#, #""application":"App""#)["state"] == ["a": 1])
    #expect(try back.paths(#""application":"App""#) == ["A"])
  }

  @Test func r28ElementsComeBackUnresolved() throws {
    let elements =
      #"[{"role":"selected","indexPath":[0,3],"identifier":"x","resolved":true},{"role":"topVisible","indexPath":[]}]"#
    try peer.encode(#"["A"]"#, "{}", #""elements":\#(elements)"#)
    let expected: JSONValue = [
      ["role": "selected", "indexPath": [0, 3], "identifier": "x", "resolved": false],
      ["role": "topVisible", "indexPath": [], "resolved": false],
    ]
    #expect(try peer.decode(#"["A"]"#)["elements"] == expected)
    try peer.encode(#"["A"]"#, "{}")
    #expect(try peer.decode(#"["A"]"#)["elements"] == [])
  }

  @Test func r25R26TheCoderTellsOfTheWriter() throws {
    let writer = driver.connect(pid: 7)
    try writer.initialize(
      "App",
      #""process":"w","bundleVersion":"2.1","userInterfaceIdiom":5,"storyboard":{"unit":"s.service"}"#
    )
    try writer.register("V", below: nil, #""kind":"viewController""#)
    try writer.register("W", below: nil, #""kind":"viewController","storyboard":{"unit":"w.service"}"#)
    try writer.register("O")
    for name in ["V", "W", "O"] { try writer.encode(#"["\#(name)"]"#, "{}") }
    let coder = try #require(try peer.decode(#"["V"]"#)["coder"])
    #expect(coder["UIApplicationStateRestorationBundleVersionKey"] == "2.1")
    #expect(coder["UIApplicationStateRestorationUserInterfaceIdiomKey"] == 5)
    #expect(coder["UIApplicationStateRestorationTimestampKey"] == "2023-11-14T22:13:20.000Z")
    #expect(coder["UIApplicationStateRestorationSystemVersionKey"] == "Test 1")
    #expect(coder["UIStateRestorationViewControllerStoryboardKey"] == ["unit": "s.service"])
    #expect(
      try peer.decode(#"["W"]"#)["coder"]?["UIStateRestorationViewControllerStoryboardKey"] == ["unit": "w.service"]
    )
    #expect(try peer.decode(#"["O"]"#)["coder"]?["UIStateRestorationViewControllerStoryboardKey"] == nil)
    try peer.register("N")
    #expect(try peer.decode(#"["N"]"#)["coder"]?.isNull == true)
    // Recorded with the state, not taken from the reader.
    try writer.goodbye("restart")
    driver.restart()
    let next = driver.connect(pid: 8)
    try next.initialize("App", #""bundleVersion":"3.0""#)
    try next.register("V", below: nil, #""kind":"viewController""#)
    #expect(try next.decode(#"["V"]"#)["coder"]?["UIApplicationStateRestorationBundleVersionKey"] == "2.1")
    driver.inspect()
  }

  @Test(arguments: [
    (#""A""#, #""A""#, "", true), (#""A""#, #""B""#, "", false), (#""A""#, #"["B","A"]"#, "", true),
    (#"["A","Base"]"#, #""Base""#, "", false), (#""A""#, "null", "", true), ("null", #""B""#, "", true),
    (#""Old""#, #""New""#, #""aliases":{"classes":{"Old":"New"}}"#, true),
    (#""Old""#, #"["Sub","New"]"#, #""aliases":{"classes":{"Old":"New"}}"#, true),
    (#""Older""#, #""New""#, #""aliases":{"classes":{"Older":"Old","Old":"New"}}"#, false),
  ])
  func r25AStateIsGivenToItsClassOnly(_ archived: String, _ live: String, _ aliases: String, _ matches: Bool) throws {
    try peer.register("X", below: nil, #""objectClass":\#(archived)"#)
    try peer.encode(#"["X"]"#, #"{"a":1}"#)
    try peer.goodbye("restart")
    let next = driver.connect(pid: 2)
    try next.initialize("App", aliases)
    let result = try next.call(
      "registerObjectForStateRestoration",
      next.registration("X", below: nil, #""objectClass":\#(live)"#)
    )
    #expect(result["restoration"] == ["state": "available", "classMatches": .bool(matches)])
    let answer = try next.decode(#"["X"]"#)
    #expect(answer["status"] == (matches ? "available" : "classMismatch"))
    #expect(answer["state"] == (matches ? JSONValue.object(["a": 1]) : JSONValue.null))
    let reader = driver.connect(pid: 3)
    #expect(try reader.decode(#"["X"]"#, #""application":"App""#)["state"] == ["a": 1])
    try next.encode(#"["X"]"#, #"{"b":1}"#)
    #expect(try next.decode(#"["X"]"#)["status"] == "available")
    driver.inspect()
  }
}
