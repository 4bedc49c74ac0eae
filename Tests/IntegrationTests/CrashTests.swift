// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The state after processes are killed: clients, the broker, all of them (R1, R15, R20, R30).
@Suite(.broker) struct CrashTests {
  private static let application = "org.example.Editor"

  /// R13, R20, R30
  @Test func aKilledClientFindsItsStateAgainAndIsToldThatItCrashed() throws {
    let client = try broker.client(.python)
    let first = try client.initialize(Self.application, ["process": "main"])
    #expect(first["restoration"]?["reason"] == "pristine")
    #expect(first["restoration"]?["state"] == "none")
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try client.kill()
    let watcher = try broker.session(Self.application)
    // An end without goodbye is distinguished from a lost connection within a second.
    try Wait.until("the object is an orphan") {
      let object = try watcher.call("describeApplication")["objects"]?.array?.first
      return object?["orphaned"] == true && object?["object"] == .null
    }
    try watcher.call("goodbye", ["reason": "restart"])
    let again = try broker.client(.python)
    let second = try again.initialize(Self.application, ["process": "main"])
    #expect(second["restoration"]?["reason"] == "recover")
    #expect(second["restoration"]?["state"] == "available")
    #expect(second["restoration"]?["coder"]?["UIApplicationStateRestorationTimestampKey"] != nil)
    try again.register("Main")
    #expect(try again.decode("Main")["state"] == ["n": 1])
  }

  /// R30
  @Test func aSwiftProgramThatReturnsFromMainHasNotCrashed() throws {
    let client = try broker.client(.swift)
    try client.tell(
      "work",
      ["application": .string(Self.application), "process": "main", "parent": "Main", "objects": 1]
    )
    _ = try client.tell("acknowledged", ["more": 1])
    #expect(try client.finish() == .exit(0))
    let next = try broker.client(.python).initialize(Self.application, ["process": "main"])
    #expect(next["restoration"]?["reason"] == "launch")
  }

  /// R15: handles, revisions and claims survive the broker.
  @Test func aSessionGoesOnAfterTheBrokerWasKilled() throws {
    let client = try broker.connect()
    let answer = try client.call("initialize", ["application": .string(Self.application), "process": "main"])
    let session = try #require(answer["session"])
    let object = try #require(try client.register("Main")["object"])
    try client.call("encodeRestorableState", ["object": object, "state": ["n": 5], "revision": 5])
    try broker.crashAndRestart()
    let again = try broker.connect()
    let resumed = try again.call("initialize", ["application": .string(Self.application), "session": session])
    #expect(resumed["session"] == session)
    #expect(resumed["restoration"]?["state"] == "available")
    // An encode that was perhaps not acknowledged is sent again: an old revision changes nothing.
    let resent = try again.call("encodeRestorableState", ["object": object, "state": ["n": 4], "revision": 5])
    #expect(resent == ["superseded": true])
    try again.call("encodeRestorableState", ["object": object, "state": ["n": 6], "revision": 6])
    #expect(try again.call("decodeRestorableState", ["object": object])["state"] == ["n": 6])
    // Other sessions cannot claim owned objects.
    let other = try broker.client(.python)
    try other.initialize(Self.application, ["process": "other"])
    #expect(
      try other.failure("registerObjectForStateRestoration", ["restorationIdentifier": "Main"]).kind
        == "duplicatePath"
    )
    #expect(try other.failure("encodeRestorableState", ["object": .path("Main"), "state": [:]]).kind == "notOwner")
  }

  /// R15: a client that reads what it sent as a notification reads it from the disk.
  @Test func anEncodeSentAsANotificationIsOnDiskWhenItIsRead() throws {
    let client = try broker.session(Self.application)
    for number in 1...10 {
      let state: JSONValue = ["n": .integer(Int64(number))]
      try client.notify("encodeRestorableState", ["object": .path("Main"), "state": state])
      #expect(try client.decode("Main")["state"] == state)
    }
    try broker.crashAndRestart()
    let reader = try broker.session(Self.application)
    #expect(try reader.decode("Main")["state"] == ["n": 10])
  }

  @Test func handlesAreNeverGivenOutAgain() throws {
    var seen: Set<Int64> = []
    for round in 1...3 {
      let client = try broker.session(Self.application)
      for number in 1...20 {
        let name: JSONValue = .string("o\(round)-\(number)")
        let object = try client.call("registerObjectForStateRestoration", ["restorationIdentifier": name])["object"]
        let handle = try #require(object?.integer)
        #expect(handle > 0 && handle < 1 << 53)
        #expect(seen.insert(handle).inserted)
      }
      try client.call("goodbye", ["reason": "closed"])
      try broker.kill()
      try broker.start()
    }
  }

  /// R20, R30: a session whose process died while there was no broker has crashed.
  @Test func everythingKilledAtOnceComesBack() throws {
    for round in 0..<3 {
      let windows = try broker.client(.python)
      let editors = try broker.client(.swift)
      let answer = try windows.initialize(Self.application, ["process": "windows"])
      #expect(answer["restoration"]?["reason"] == (round == 0 ? "pristine" : "recover"))
      try editors.initialize(Self.application, ["process": "editors"])
      try windows.register("Main")
      for number in 1...20 {
        let name = "Editor\(number)"
        let path: JSONValue = .path("Main", name)
        let registered = try editors.register(name, in: "Main")
        #expect(registered["restoration"]?["state"] == (round == 0 ? "none" : "available"))
        let decoded = try editors.call("decodeRestorableState", ["object": path])
        #expect(
          decoded["state"]
            == (round == 0 ? .null : ["round": .integer(Int64(round - 1)), "n": .integer(Int64(number))])
        )
        try editors.call(
          "encodeRestorableState",
          ["object": path, "state": ["round": .integer(Int64(round)), "n": .integer(Int64(number))]]
        )
      }
      try windows.kill()
      try editors.kill()
      try broker.kill()
      try broker.start()
    }
  }

  /// The goodbye tells what becomes of the state (R30).
  @Test(arguments: ["closed", "userQuit", "restart", "logout"])
  func aGoodbyeDecidesWhatIsLeft(_ reason: String) throws {
    let client = try broker.client(.python)
    try client.initialize(Self.application, ["process": "main"])
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try client.call("goodbye", ["reason": .string(reason)])
    client.end()
    // It is on disk when it is answered.
    try broker.crashAndRestart()
    let again = try broker.client(.python)
    let restoration = try again.initialize(Self.application, ["process": "main"])["restoration"]
    let isKept = reason == "restart" || reason == "logout"
    #expect(restoration?["state"] == (isKept ? "available" : "none"))
    #expect(restoration?["reason"] == (isKept ? "launch" : "pristine"))
    try again.register("Main")
    let decoded = try again.decode("Main")
    #expect(decoded["state"] == (isKept ? ["n": 1] : .null))
  }

  /// R30: after the user quit, processes that still run cannot restore the state.
  @Test func writesAfterTheUserQuitAreDiscarded() throws {
    let delegate = try broker.session(Self.application, process: "main", ["delegate": true])
    let other = try broker.session(Self.application, process: "other")
    try other.register("Main")
    try other.encode("Main", state: ["n": 1])
    try delegate.call("goodbye", ["reason": "userQuit"])
    #expect(try other.encode("Main", state: ["n": 2]) == ["discarded": true])
    let next = try broker.connect()
    let restoration = try next.call("initialize", ["application": .string(Self.application), "process": "main"])[
      "restoration"
    ]
    #expect(restoration?["reason"] == "pristine")
    #expect(restoration?["state"] == "none")
  }

  /// R19: an application that starts by pushing its blank state does not hide unread states, over many runs.
  @Test func blankStartsHideNothing() throws {
    let writer = try broker.session(Self.application, process: "main")
    try writer.register("Main")
    try writer.encode("Main", state: ["text": "a day's work"])
    try writer.call("goodbye", ["reason": "restart"])
    for run in 1...4 {
      let client = try broker.client(.python)
      try client.initialize(Self.application, ["process": "main"])
      try client.register("Main")
      try client.encode("Main", state: ["text": "", "run": .integer(Int64(run))])
      if run == 4 {
        // All others see the newest write, until the owner has looked at what is older.
        let reader = try broker.session(Self.application)
        #expect(try reader.decode("Main")["state"]?["run"] == 4)
        #expect(try client.decode("Main")["state"] == ["text": "a day's work"])
        #expect(try reader.decode("Main")["state"] == ["text": "a day's work"])
      }
      try client.kill()
      if run == 2 { try broker.crashAndRestart() }
    }
  }

  /// R16
  @Test func aRunSealsWhatItStartsFromAndPinsIt() throws {
    for run in 1...6 {
      let client = try broker.session(Self.application, process: "main")
      try client.register("Main")
      try client.encode("Main", state: ["run": .integer(Int64(run))])
      let generations = try #require(try client.call("listGenerations")["generations"]?.array)
      #expect(generations.count <= 4)
      #expect(generations.last?["generation"] == (run == 1 ? nil : .integer(Int64(run - 1))))
      if run > 1 {
        #expect(generations.first?["generation"] == 1, "what was pinned first stays")
        #expect(generations.first?["pinned"] == true)
        let first = try client.call("readArchive", ["generation": 1])["objects"]?.array?.first
        #expect(first?["state"] == ["run": 1])
      }
      try client.call("goodbye", ["reason": "restart"])
      // A run in which nothing is registered or changed seals nothing.
      let idle = try broker.session(Self.application, process: "main")
      let after = try #require(try idle.call("listGenerations")["generations"]?.array)
      #expect(after.last?["generation"] == .integer(Int64(run)))
      try idle.call("goodbye", ["reason": "restart"])
      let second = try broker.session(Self.application, process: "main")
      #expect(try second.call("listGenerations")["generations"]?.array?.last?["generation"] == .integer(Int64(run)))
      try second.call("goodbye", ["reason": "restart"])
      if run == 3 { try broker.crashAndRestart() }
    }
  }

  @Test func aDetachedSessionGoesOnByItsToken() throws {
    let first = try broker.connect()
    let answer = try first.register("Main", of: "a")
    let session = try #require(answer["session"])
    // The token is used on a second connection: the session outlives the first one.
    let second = try broker.connect()
    try second.encode("Main", state: ["n": 1], of: "a", with: ["session": session])
    first.halfClose()
    _ = try first.receiveToEnd()
    try second.encode("Main", state: ["n": 2], of: "a", with: ["session": session])
    let other = try broker.session("a")
    #expect(
      try other.failure("registerObjectForStateRestoration", ["restorationIdentifier": "Main"]).kind
        == "duplicatePath"
    )
    try second.call("goodbye", ["application": "a", "session": session, "reason": "restart"])
    try other.register("Main")
    #expect(try other.decode("Main")["state"] == ["n": 2])
  }

  @Test func aDetachedSessionThatWasUsedNowhereElseEndsWithItsConnectionAndIsNoCrash() throws {
    let first = try broker.connect()
    try first.register("Main", of: "a")
    try first.encode("Main", state: ["n": 1], of: "a")
    first.halfClose()
    _ = try first.receiveToEnd()
    let second = try broker.connect()
    let restoration = try second.call("initialize", ["application": "a"])["restoration"]
    #expect(restoration?["reason"] == "launch")
    let claimed = try second.register("Main")
    #expect(claimed["restoration"]?["state"] == "available")
  }
}
