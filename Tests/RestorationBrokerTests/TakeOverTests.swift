// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Claiming what another live session has (R8), and roles that only one session can have (R9).
@Suite struct TakeOverTests {
  let driver = CoreDriver()
  let old: Peer
  let new: Peer

  init() throws {
    old = driver.connect(pid: 1)
    new = driver.connect(pid: 2)
    try old.initialize("App", #""process":"old","serves":["registrationReplaced"]"#)
    try new.initialize("App", #""process":"new""#)
  }

  @Test func r8TheLoserIsToldAndCannotWriteAnyMore() throws {
    let before = try old.register("Main")
    try old.encode("\(before)", #"{"a":1}"#)
    let after = try new.register("Main", below: nil, #""takeOver":true"#)
    #expect(after != before)
    #expect(
      old.takeNotifications("registrationReplaced")
        == [["object": .integer(before), "path": ["Main"], "by": ["process": "new", "pid": 2]]]
    )
    for object in ["\(before)", #"["Main"]"#] {
      #expect(try old.fail("encodeRestorableState", old.encoding(object, #"{"a":2}"#)).code == -32010)
      #expect(try old.fail("unregisterObject", #"{"object":\#(object)}"#).kind == "replaced")
      #expect(
        try old.fail("setRestorationParent", #"{"object":\#(object),"restorationParent":null}"#).kind == "replaced"
      )
    }
    #expect(try new.state("\(after)") == ["a": 1])
    driver.inspect()
  }

  @Test func r8RegisteringAgainEndsBeingReplaced() throws {
    try old.register("Main")
    try new.register("Main", below: nil, #""takeOver":true"#)
    let again = try old.register("Main", below: nil, #""takeOver":true"#)
    try old.encode("\(again)", #"{"a":1}"#)
    try old.encode(#"["Main"]"#, #"{"a":2}"#)
    #expect(try new.fail("encodeRestorableState", new.encoding(#"["Main"]"#, "{}")).kind == "replaced")
    driver.inspect()
  }

  @Test func r8TheLoserCannotWriteByPathWhenTheWinnerHasLeft() throws {
    try old.register("Main")
    try new.register("Main", below: nil, #""takeOver":true"#)
    try new.goodbye("restart")
    #expect(try old.fail("encodeRestorableState", old.encoding(#"["Main"]"#, "{}")).kind == "replaced")
    driver.inspect()
  }

  @Test func r8TakeOverOfWhatNobodyHasIsARegistration() throws {
    try new.register("Main", below: nil, #""takeOver":true"#)
    #expect(old.notifications.isEmpty)
    driver.inspect()
  }

  @Test func r8AMoveWithTakeOverReplacesTheOwner() throws {
    let before = try old.register("Main")
    try old.encode("\(before)", #"{"a":1}"#)
    try old.register("Child", below: "\(before)")
    let mover = try new.register("Other")
    try new.encode("\(mover)", #"{"b":1}"#)
    try new.call("setRestorationIdentifier", #"{"object":\#(mover),"restorationIdentifier":"Main","takeOver":true}"#)
    driver.inspect()
    #expect(old.takeNotifications("registrationReplaced").first?["path"] == ["Main"])
    #expect(try old.fail("encodeRestorableState", old.encoding("\(before)", "{}")).kind == "replaced")
    #expect(try old.fail("encodeRestorableState", old.encoding(#"["Main"]"#, "{}")).kind == "replaced")
    try old.encode(#"["Main","Child"]"#, #"{"c":1}"#)
    #expect(try new.state("\(mover)") == ["b": 1])
    let objects = try new.call("readArchive", #"{"generation":1}"#)["objects"]?.array ?? []
    #expect(objects.contains { $0["path"]?.joined == "Main" && $0["state"] == ["a": 1] })
    driver.inspect()
  }

  @Test func r8AMoverWithoutStateTakesTheReplacedState() throws {
    let before = try old.register("Main")
    try old.encode("\(before)", #"{"a":1}"#)
    let mover = try new.register("Other")
    try new.call("setRestorationIdentifier", #"{"object":\#(mover),"restorationIdentifier":"Main","takeOver":true}"#)
    driver.inspect()
    #expect(try new.state("\(mover)") == ["a": 1])
    #expect(try old.fail("encodeRestorableState", old.encoding(#"["Main"]"#, "{}")).kind == "replaced")
    driver.inspect()
  }

  @Test func r8AMoveThatFailsReplacesNobody() throws {
    let before = try old.register("Main")
    try old.encode("\(before)", #"{"a":1}"#)
    try old.register("Child", below: "\(before)")
    let mover = try new.register("Other")
    try new.register("Child", below: "\(mover)")
    try new.encode("\(mover)", #"{"b":1}"#)
    driver.forgetWritten()
    let failure = try new.fail(
      "setRestorationIdentifier",
      #"{"object":\#(mover),"restorationIdentifier":"Main","takeOver":true}"#
    )
    #expect(failure.kind == "duplicatePath")
    #expect(failure.data["path"] == ["Main", "Child"])
    #expect(driver.written.isEmpty)
    #expect(old.notifications.isEmpty)
    try old.encode("\(before)", #"{"a":2}"#)
    driver.inspect()
  }

  @Test func r8AMoveWithoutTakeOverIsRefusedByALiveObject() throws {
    try old.register("Main")
    let mover = try new.register("Other")
    let failure = try new.fail("setRestorationIdentifier", #"{"object":\#(mover),"restorationIdentifier":"Main"}"#)
    #expect(failure.kind == "duplicatePath")
    let owners: JSONValue = [["process": "old", "pid": 1], ["process": "new", "pid": 2]]
    #expect(failure.data["owners"] == owners)
    driver.inspect()
  }

  @Test func r9AnApplicationHasOneDelegate() throws {
    let (first, second) = (driver.connect(pid: 3), driver.connect(pid: 4))
    try first.initialize("App", #""process":"boss","delegate":true"#)
    let failure = try second.fail("initialize", #"{"application":"App","delegate":true}"#)
    #expect(failure.code == -32019)
    #expect(failure.data["owners"] == [["process": "boss", "pid": 3]])
    try second.initialize()
    try second.goodbye("restart")
    driver.killUnnoticed(first)
    try second.initialize("App", #""delegate":true"#)
    driver.inspect()
  }

  @Test func r9TheDelegateMayComeBackOnAnotherConnection() throws {
    let first = driver.connect(pid: 3)
    let token = try #require(try first.initialize("App", #""delegate":true"#)["session"]?.string)
    driver.disconnect(first)
    let second = driver.connect(pid: 3)
    let again = try second.initialize("App", #""delegate":true,"session":"\#(token)""#)
    #expect(again["session"] == .string(token))
    driver.disconnect(second)
    try driver.connect(pid: 3).initialize("App", #""delegate":true"#)
  }
}
