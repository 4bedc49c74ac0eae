// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Identifiers and the uniqueness of paths (R1, R2).
@Suite struct IdentifierTests {
  let driver = CoreDriver()

  @Test(arguments: [
    "a", "Ü b", "a.b", "\u{1F600}", String(repeating: "x", count: 255), String(repeating: "é", count: 127),
  ])
  func r1AnIdentifierHasOneTo255BytesOfAnything(_ identifier: String) throws {
    let peer = driver.connect()
    try peer.initialize()
    let result = try peer.call("registerObjectForStateRestoration", peer.registration(identifier))
    #expect(result["path"] == .array([.string(identifier)]))
    #expect(result["included"] == true)
    driver.inspect()
  }

  @Test(arguments: [
    "", "a/b", "/", "a#1", "#", "a\u{7}", "\u{7f}", "\u{85}", "\u{0}",
    String(repeating: "x", count: 256), String(repeating: "é", count: 128),
  ])
  func r1AnythingElseIsNoIdentifier(_ identifier: String) throws {
    let peer = driver.connect()
    try peer.initialize()
    let failure = try peer.fail("registerObjectForStateRestoration", peer.registration(identifier))
    #expect(failure.kind == "invalidIdentifier")
    #expect(failure.data["pointer"] == "/restorationIdentifier")
    #expect(try peer.paths().isEmpty)
    driver.inspect()
  }

  @Test func r1TheSecondClaimantIsToldOfBothOwners() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize("App", #""process":"main""#)
    try second.initialize("App", #""process":"editor""#)
    try first.register("Main")
    let failure = try second.fail("registerObjectForStateRestoration", second.registration("Main"))
    #expect(failure.code == -32003)
    #expect(failure.data["path"] == ["Main"])
    let owners: JSONValue = [["process": "main", "pid": 1], ["process": "editor", "pid": 2]]
    #expect(failure.data["owners"] == owners)
    driver.inspect()
  }

  @Test func r1SpellingsOfOneWordAreDifferentIdentifiers() throws {
    let peer = driver.connect()
    try peer.initialize()
    let composed = try peer.register("caf\u{e9}")
    let decomposed = try peer.register("cafe\u{301}")
    #expect(composed != decomposed)
    let renamed = try peer.call(
      "setRestorationIdentifier",
      #"{"object":\#(composed),"restorationIdentifier":"x"}"#
    )
    #expect(renamed["path"] == ["x"])
    let back = try peer.call(
      "setRestorationIdentifier",
      #"{"object":\#(decomposed),"restorationIdentifier":"caf\u00e9"}"#
    )
    #expect(back["path"] == ["caf\u{e9}"])
    driver.inspect()
  }

  @Test func r1RegisteringAgainKeepsTheHandleAndChangesTheDescription() throws {
    let peer = driver.connect()
    try peer.initialize()
    let first = try peer.register("Main", below: nil, #""objectClass":"Window""#)
    let second = try peer.register("Main", below: nil, #""objectClass":["Panel","Window"],"confidential":true"#)
    #expect(first == second)
    let object = try #require(try peer.objects().first)
    #expect(object["objectClass"] == ["Panel", "Window"])
    driver.inspect()
  }

  @Test func r1RegisteringTheSameAgainWritesNothing() throws {
    let peer = driver.connect()
    try peer.initialize()
    try peer.register("Main", below: nil, #""objectClass":"Window""#)
    driver.forgetWritten()
    try peer.register("Main", below: nil, #""objectClass":"Window""#)
    #expect(driver.written.isEmpty)
  }

  @Test func r1ADeadOwnersPathIsClaimedUnderANewHandle() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    let old = try first.register("Main")
    // Its connection stays open: another process has inherited it.
    driver.killUnnoticed(first)
    let new = try second.register("Main")
    #expect(new != old)
    #expect(try second.fail("decodeRestorableState", #"{"object":\#(old)}"#).kind == "unknownObject")
    driver.inspect()
  }

  @Test func r1AnExitThatIsKnownLetsThePathBeClaimedAtOnce() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    try first.register("Main")
    driver.kill(first)
    try second.register("Main")
    driver.inspect()
    driver.advance(milliseconds: 1_000)
    driver.inspect()
    #expect(try second.objects().count == 1)
    #expect(driver.application("App")?.sessions.count == 1)
  }

  @Test func r1ALivingOwnerWithoutConnectionKeepsItsPathFromOtherProcesses() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    try first.register("Main")
    driver.disconnect(first)
    driver.advance(milliseconds: 5_000)
    let failure = try second.fail("registerObjectForStateRestoration", second.registration("Main"))
    #expect(failure.kind == "duplicatePath")
    driver.inspect()
  }

  @Test func r1ALostSessionYieldsToANewOneOfItsProcess() throws {
    let first = driver.connect(pid: 1)
    try first.initialize()
    let old = try first.register("Main")
    driver.disconnect(first)
    let second = driver.connect(pid: 1)
    try second.initialize()
    let new = try second.register("Main")
    #expect(new != old)
    driver.inspect()
  }

  @Test func r1ADetachedSessionKeepsItsPathAlthoughItsProcessHasEnded() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    let registered = try first.call(
      "registerObjectForStateRestoration",
      first.registration("Main", below: nil, #""application":"App""#)
    )
    let token = try #require(registered["session"]?.string)
    let other = driver.connect(pid: 3)
    try other.call("goodbye", #"{"application":"App","reason":"restart","session":"\#(token)"}"#)
    let again = try first.call(
      "registerObjectForStateRestoration",
      first.registration("Main", below: nil, #""application":"App""#)
    )
    #expect(again["session"] != .string(token))
    driver.killUnnoticed(first)
    let failure = try second.fail(
      "registerObjectForStateRestoration",
      second.registration("Main", below: nil, #""application":"App""#)
    )
    #expect(failure.kind == "duplicatePath")
    driver.inspect()
  }

  @Test func r2TheSameIdentifierIsUsedUnderDifferentParents() throws {
    let peer = driver.connect()
    try peer.initialize()
    let left = try peer.register("Left")
    let right = try peer.register("Right")
    let first = try peer.register("Editor", below: "\(left)")
    let second = try peer.register("Editor", below: #"["Right"]"#)
    #expect(first != second)
    #expect(right != left)
    #expect(try peer.paths() == ["Left", "Left/Editor", "Right", "Right/Editor"])
    driver.inspect()
  }

  @Test func r2APositionIsPartOfThePath() throws {
    let peer = driver.connect()
    try peer.initialize()
    try peer.register("Tab", below: nil, #""position":0"#)
    try peer.register("Tab", below: nil, #""position":9007199254740991"#)
    try peer.register("Tab")
    #expect(try peer.paths() == ["Tab", "Tab#0", "Tab#9007199254740991"])
    driver.inspect()
  }

  @Test func handlesNeverRepeatOverRestarts() throws {
    var handles: Set<Int64> = []
    for run in 1...3 {
      let peer = driver.connect(pid: Int64(run))
      try peer.initialize()
      for index in 0..<4 { #expect(handles.insert(try peer.register("o\(run).\(index)")).inserted) }
      #expect(handles.allSatisfy { $0 > 0 && $0 < 1 << 53 })
      driver.restart()
    }
  }

  @Test func aHandleOfAnotherApplicationIsUnknown() throws {
    let (first, second) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try first.initialize("App")
    try second.initialize("Other")
    let handle = try first.register("Main")
    try second.register("Main")
    #expect(try second.fail("unregisterObject", #"{"object":\#(handle)}"#).kind == "unknownObject")
  }
}
