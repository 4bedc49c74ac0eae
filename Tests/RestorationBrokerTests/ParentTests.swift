// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Restoration parents: which there may be, waiting for them, and what becomes of children (R3).
@Suite struct ParentTests {
  let driver = CoreDriver()

  @Test func r3AParentMayBelongToAnotherSession() throws {
    let (main, editor) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try main.initialize()
    try editor.initialize()
    let parent = try main.register("Main")
    try editor.register("Editor", below: "\(parent)")
    try editor.register("Ruler", below: #"["Main","Editor"]"#)
    #expect(try main.paths() == ["Main", "Main/Editor", "Main/Editor/Ruler"])
    driver.inspect()
  }

  @Test(arguments: ["restart", "logout", "crash"])
  func r3AVacantPathIsAParentAndIsClaimedWithItsChildren(_ ending: String) throws {
    let (main, editor) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try main.initialize()
    try editor.initialize()
    let old = try main.register("Main")
    let child = try editor.register("Editor", below: #"["Main"]"#)
    if ending == "crash" { driver.crash(main) } else { try main.goodbye(ending) }
    driver.inspect()
    try editor.register("Ruler", below: #"["Main"]"#)
    let next = driver.connect(pid: 3)
    try next.initialize()
    let new = try next.register("Main")
    #expect(new != old)
    try editor.encode("\(child)", #"{"a":1}"#)
    #expect(try next.paths() == ["Main", "Main/Editor", "Main/Ruler"])
    try next.call("setChildren", #"{"object":\#(new),"children":[["Main","Ruler"],\#(child)]}"#)
    #expect(try next.paths() == ["Main", "Main/Editor#1", "Main/Ruler#0"])
    driver.inspect()
  }

  @Test func r3AParentKnownFromTheArchiveIsEnough() throws {
    let script = driver.connect(pid: 1)
    try script.encode(#"["Main","Editor"]"#, #"{"a":1}"#, #""application":"App""#)
    driver.restart()
    let peer = driver.connect(pid: 2)
    try peer.initialize()
    try peer.register("Ruler", below: #"["Main","Editor"]"#)
    #expect(try peer.paths() == ["Main", "Main/Editor", "Main/Editor/Ruler"])
    driver.inspect()
  }

  @Test(arguments: [#"["Main"]"#, #"["Main","Editor"]"#, "12345"])
  func r3AnUnknownParentIsRefused(_ parent: String) throws {
    let peer = driver.connect()
    try peer.initialize()
    let failure = try peer.fail("registerObjectForStateRestoration", peer.registration("Editor", below: parent))
    #expect(failure.kind == "unknownParent")
    #expect(failure.data["pointer"] == "/restorationParent")
    #expect(try peer.objects().isEmpty)
  }

  @Test func r3AParentIsWaitedForWhileOtherCallsGoOn() throws {
    let (main, editor) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try main.initialize()
    try editor.initialize()
    let waiting = editor.start(
      "registerObjectForStateRestoration",
      editor.registration("Editor", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    )
    #expect(!editor.hasAnswer(waiting))
    try editor.register("Other")
    driver.advance(milliseconds: 999)
    #expect(!editor.hasAnswer(waiting))
    try main.register("Main")
    #expect(try editor.result(of: waiting)["path"] == ["Main", "Editor"])
    driver.advance(milliseconds: 5_000)
    driver.inspect()
  }

  @Test func r3AParentThatDoesNotComeInTimeIsUnknown() throws {
    let peer = driver.connect()
    try peer.initialize()
    let waiting = peer.start(
      "registerObjectForStateRestoration",
      peer.registration("Editor", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    )
    driver.advance(milliseconds: 1_000)
    #expect(try peer.failure(of: waiting).kind == "unknownParent")
    try peer.register("Main")
    #expect(try peer.paths() == ["Main"])
  }

  @Test func r3WhoWaitsIsLetInInTheOrderOfArrival() throws {
    let (first, second, main) = (driver.connect(pid: 1), driver.connect(pid: 2), driver.connect(pid: 3))
    for peer in [first, second, main] { try peer.initialize() }
    let wait = #""awaitParentMilliseconds":1000"#
    let one = first.start(
      "registerObjectForStateRestoration",
      first.registration("Editor", below: #"["Main"]"#, wait)
    )
    let two = second.start(
      "registerObjectForStateRestoration",
      second.registration("Editor", below: #"["Main"]"#, wait)
    )
    try main.register("Main")
    #expect(try first.result(of: one)["path"] == ["Main", "Editor"])
    #expect(try second.failure(of: two).kind == "duplicatePath")
    driver.inspect()
  }

  @Test func r3AChainOfWaitingObjectsIsLetInFromItsTop() throws {
    let peer = driver.connect()
    try peer.initialize()
    let wait = #""awaitParentMilliseconds":1000"#
    let ids = (1...100).reversed().map { level in
      let path = (0..<level).map { #""n\#($0)""# }.joined(separator: ",")
      return peer.start("registerObjectForStateRestoration", peer.registration("n\(level)", below: "[\(path)]", wait))
    }
    try peer.register("n0")
    for id in ids { #expect(peer.hasAnswer(id)) }
    #expect(try peer.objects().count == 101)
    driver.inspect()
  }

  @Test func r3ManyWaitingForOneParentAreLetInWithoutDeepStack() throws {
    var limits = Limits()
    limits.parkedMax = 20_000
    let driver = CoreDriver(limits: limits)
    driver.measuresArchives = false
    let peer = driver.connect()
    try peer.initialize()
    for index in 0..<3_000 {
      peer.notify(
        "registerObjectForStateRestoration",
        peer.registration("n\(index)", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
      )
    }
    try peer.register("Main")
    #expect(driver.application("App")?.tree.count == 3_001)
  }

  @Test func onlySoManyRegistrationsOfAConnectionWait() throws {
    var limits = Limits()
    limits.parkedMax = 3
    let driver = CoreDriver(limits: limits)
    let peer = driver.connect()
    try peer.initialize()
    let call = peer.registration("a", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    for _ in 0..<3 { peer.notify("registerObjectForStateRestoration", call) }
    let failure = try peer.fail("registerObjectForStateRestoration", call)
    #expect(failure.kind == "limitExceeded")
    #expect(failure.data["limit"] == "parkedMax")
    #expect(failure.data["value"] == 4)
  }

  @Test func aWaitingCallIsAnsweredWhenItsSessionSaysGoodbye() throws {
    let peer = driver.connect()
    try peer.initialize()
    let waiting = peer.start(
      "registerObjectForStateRestoration",
      peer.registration("Editor", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    )
    try peer.goodbye("restart")
    #expect(try peer.failure(of: waiting).kind == "notInitialized")
    #expect(driver.timerCount == 0)
  }

  @Test func aWaitingCallOfALostConnectionIsForgotten() throws {
    let (peer, main) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try peer.initialize()
    try main.initialize()
    peer.start(
      "registerObjectForStateRestoration",
      peer.registration("Editor", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    )
    driver.disconnect(peer)
    try main.register("Main")
    #expect(try main.paths() == ["Main"])
    driver.inspect()
  }

  @Test func r3AnUnregisteredParentLosesItsStateAndStaysWhileItHasDescendants() throws {
    let peer = driver.connect()
    try peer.initialize()
    let main = try peer.register("Main")
    let editor = try peer.register("Editor", below: "\(main)")
    try peer.encode("\(main)", #"{"a":1}"#)
    try peer.encode("\(editor)", #"{"b":1}"#)
    try peer.call("unregisterObject", #"{"object":\#(main)}"#)
    driver.inspect()
    #expect(try peer.decode(#"["Main"]"#)["status"] == "none")
    #expect(try peer.state(#"["Main","Editor"]"#) == ["b": 1])
    #expect(try peer.objects().first?["orphaned"] == false)
    try peer.call("unregisterObject", #"{"object":["Main","Editor"]}"#)
    #expect(try peer.objects().isEmpty)
    driver.inspect()
  }

  @Test func r3AClosedParentLosesItsStateAndItsChildrenOfOthersStay() throws {
    let (main, editor) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try main.initialize()
    try editor.initialize()
    let parent = try main.register("Main")
    try main.register("Panel", below: "\(parent)")
    try main.encode("\(parent)", #"{"a":1}"#)
    let child = try editor.register("Editor", below: "\(parent)")
    try main.goodbye("closed")
    driver.inspect()
    #expect(try editor.paths() == ["Main", "Main/Editor"])
    #expect(try editor.decode(#"["Main"]"#)["status"] == "none")
    try editor.call("unregisterObject", #"{"object":\#(child)}"#)
    #expect(try editor.objects().isEmpty)
    driver.inspect()
  }

  @Test func r3TheLastChildThatMovesAwayTakesAVacantParentWithIt() throws {
    let script = driver.connect(pid: 1)
    try script.encode(#"["Main","Sub","Editor"]"#, #"{"a":1}"#, #""application":"App""#)
    let peer = driver.connect(pid: 2)
    try peer.initialize()
    try peer.register("Editor", below: #"["Main","Sub"]"#)
    try peer.call("setRestorationParent", #"{"object":["Main","Sub","Editor"],"restorationParent":null}"#)
    #expect(try peer.paths() == ["Editor"])
    #expect(try peer.state(#"["Editor"]"#) == ["a": 1])
    driver.inspect()
  }

  @Test func r13AnObjectUnregisteredWithItsStateKeptIsAnOrphan() throws {
    let peer = driver.connect()
    try peer.initialize()
    let main = try peer.register("Main")
    try peer.encode("\(main)", #"{"a":1}"#)
    try peer.call("unregisterObject", #"{"object":\#(main),"keepState":true}"#)
    let object = try #require(try peer.objects().first)
    #expect(object["orphaned"] == true)
    #expect(object["object"]?.isNull == true)
    #expect(try peer.state(#"["Main"]"#) == ["a": 1])
    driver.inspect()
    driver.restart()
    let next = driver.connect(pid: 9)
    try next.initialize()
    #expect(try next.objects().first?["orphaned"] == true)
    driver.inspect()
  }
}

/// Null identifiers and views (R4, R5).
@Suite struct ExclusionTests {
  let driver = CoreDriver()

  @Test(arguments: ["view", "viewController"])
  func r4ANullIdentifierExcludesTheObjectAndWhatIsBelow(_ kind: String) throws {
    let peer = driver.connect()
    try peer.initialize()
    let result = try peer.call(
      "registerObjectForStateRestoration",
      peer.registration(nil, below: nil, #""kind":"\#(kind)""#)
    )
    #expect(result["path"]?.isNull == true)
    #expect(result["included"] == false)
    let excluded = try #require(result["object"]?.integer)
    let child = try peer.call(
      "registerObjectForStateRestoration",
      peer.registration("Child", below: "\(excluded)", #""kind":"viewController""#)
    )
    #expect(child["path"] == ["Child"])
    #expect(child["included"] == false)
    driver.inspect()
  }

  @Test func r4APlainObjectNeedsAnIdentifier() throws {
    let peer = driver.connect()
    try peer.initialize()
    #expect(
      try peer.fail("registerObjectForStateRestoration", peer.registration(nil)).kind == "invalidIdentifier"
    )
    try peer.register("a")
    let failure = try peer.fail("setRestorationIdentifier", #"{"object":["a"],"restorationIdentifier":null}"#)
    #expect(failure.kind == "invalidIdentifier")
  }

  @Test func r4PathsBelowAnExclusionBeginAnewAndAreUnique() throws {
    let peer = driver.connect()
    let other = driver.connect(pid: 2)
    try peer.initialize()
    try other.initialize()
    let root = try peer.register("Root", below: nil, #""kind":"viewController""#)
    let excluded = try peer.register(nil, below: "\(root)", #""kind":"viewController""#)
    try peer.register("Child", below: "\(excluded)", #""kind":"viewController""#)
    try peer.register("Grandchild", below: #"["Child"]"#, #""kind":"view""#)
    #expect(try peer.paths() == ["Child", "Child/Grandchild", "Root"])
    let failure = try other.fail("registerObjectForStateRestoration", other.registration("Child"))
    #expect(failure.kind == "duplicatePath")
    driver.inspect()
  }

  @Test func r4APlainObjectBelowAnExclusionIsUnscopedAndIncluded() throws {
    let peer = driver.connect()
    try peer.initialize()
    let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
    let child = try peer.register("Child", below: "\(excluded)", #""kind":"viewController""#)
    let result = try peer.call("registerObjectForStateRestoration", peer.registration("Model", below: "\(child)"))
    #expect(result["path"] == ["Model"])
    #expect(result["included"] == true)
    driver.inspect()
  }

  @Test func r4ExcludingAndIncludingMovesPathsBelow() throws {
    let peer = driver.connect()
    try peer.initialize()
    try peer.register("Root", below: nil, #""kind":"viewController""#)
    let middle = try peer.register("Middle", below: #"["Root"]"#, #""kind":"viewController""#)
    try peer.register("Leaf", below: "\(middle)", #""kind":"viewController""#)
    try peer.encode(#"["Root","Middle","Leaf"]"#, #"{"a":1}"#)
    let excluded = try peer.call("setRestorationIdentifier", #"{"object":\#(middle),"restorationIdentifier":null}"#)
    #expect(excluded["path"]?.isNull == true)
    #expect(excluded["included"] == false)
    #expect(try peer.paths() == ["Leaf", "Root"])
    driver.inspect()
    let back = try peer.call("setRestorationIdentifier", #"{"object":\#(middle),"restorationIdentifier":"Middle"}"#)
    #expect(back["path"] == ["Root", "Middle"])
    #expect(back["included"] == true)
    #expect(try peer.state(#"["Root","Middle","Leaf"]"#) == ["a": 1])
    driver.inspect()
  }

  @Test func r4ExcludingFailsWhereAPathThatBeginsAnewIsTaken() throws {
    let peer = driver.connect()
    try peer.initialize()
    let middle = try peer.register("Middle", below: nil, #""kind":"viewController""#)
    try peer.register("Leaf", below: "\(middle)", #""kind":"viewController""#)
    try peer.register("Leaf")
    let failure = try peer.fail("setRestorationIdentifier", #"{"object":\#(middle),"restorationIdentifier":null}"#)
    #expect(failure.kind == "duplicatePath")
    #expect(try peer.paths() == ["Leaf", "Middle", "Middle/Leaf"])
    driver.inspect()
  }

  @Test func r4AnObjectWithoutPathCannotBeReferenced() throws {
    let peer = driver.connect()
    try peer.initialize()
    let excluded = try peer.register(nil, below: nil, #""kind":"view""#)
    try peer.register("a")
    let state = #"{"r":{"$restorable":\#(excluded)}}"#
    let failure = try peer.fail("encodeRestorableState", peer.encoding(#"["a"]"#, state))
    #expect(failure.kind == "invalidReference")
  }

  @Test func r4ObjectsWithoutPathGoWithTheirOwner() throws {
    for run in 1...3 {
      let peer = driver.connect(pid: Int64(run))
      try peer.initialize()
      let excluded = try peer.register(nil, below: nil, #""kind":"view""#)
      try peer.encode("\(excluded)", #"{"a":1}"#)
      let middle = try peer.register(nil, below: nil, #""kind":"viewController""#)
      try peer.register("Child", below: "\(middle)", #""kind":"view""#)
      driver.inspect()
      #expect(try peer.objects().count == 3)
      driver.crash(peer)
      driver.advance(milliseconds: 1_000)
      driver.inspect()
    }
    #expect(driver.application("App")?.tree.count == 2)
  }

  @Test func r5AViewIsIncludedBelowViewsAndViewControllersOnly() throws {
    let peer = driver.connect()
    try peer.initialize()
    func included(_ identifier: String, _ kind: String, below parent: String?) throws -> Bool? {
      try peer.call(
        "registerObjectForStateRestoration",
        peer.registration(identifier, below: parent, #""kind":"\#(kind)""#)
      )["included"]?.bool
    }
    #expect(try included("lonely", "view", below: nil) == false)
    #expect(try included("controller", "viewController", below: nil) == true)
    #expect(try included("view", "view", below: #"["controller"]"#) == true)
    #expect(try included("deep", "view", below: #"["controller","view"]"#) == true)
    #expect(try included("object", "object", below: nil) == true)
    #expect(try included("view", "view", below: #"["object"]"#) == false)
    #expect(try included("deep", "view", below: #"["object","view"]"#) == false)
    driver.inspect()
  }

  @Test func r4AnEncodeByPathBelowAnExclusionGoesToThatPath() throws {
    let peer = driver.connect()
    try peer.initialize()
    let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
    try peer.register("Child", below: "\(excluded)", #""kind":"viewController""#)
    try peer.encode(#"["Child","New"]"#, #"{"a":1}"#)
    #expect(try peer.state(#"["Child","New"]"#) == ["a": 1])
    #expect(try peer.paths() == ["Child", "Child/New"])
    driver.inspect()
  }

  @Test func r7AnExcludedObjectIsLeftOutOfAGeneration() throws {
    let peer = driver.connect()
    try peer.initialize()
    let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
    try peer.register("Out", below: "\(excluded)", #""kind":"view""#)
    try peer.register("In")
    try peer.encode(#"["Out"]"#, #"{"a":1}"#)
    try peer.encode(#"["In"]"#, #"{"b":1}"#)
    try peer.goodbye("restart")
    let next = driver.connect(pid: 5)
    try next.initialize()
    let objects = try next.call("readArchive", #"{"generation":1}"#)["objects"]?.array ?? []
    #expect(objects.compactMap { $0["path"]?.joined } == ["In"])
    let head = try next.call("readArchive")["objects"]?.array ?? []
    #expect(head.compactMap { $0["path"]?.joined }.sorted() == ["In", "Out"])
  }
}
