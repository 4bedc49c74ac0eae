// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// One application made of several processes in several languages (R1–R4, R8, R30).
@Suite(.broker) struct ProcessTests {
  private static let application = "org.example.Editor"

  private static func register(
    _ client: ProcessClient,
    _ identifier: String,
    _ more: JSONObject = [:]
  ) throws -> JSONValue {
    var parameters: JSONObject = ["restorationIdentifier": .string(identifier)]
    for (name, value) in more.members { parameters[name] = value }
    return try client.call("registerObjectForStateRestoration", .object(parameters))
  }

  @Test(arguments: ProcessClient.Kind.allCases, ProcessClient.Kind.allCases)
  func aParentMayLiveInAnotherProcess(_ first: ProcessClient.Kind, _ second: ProcessClient.Kind) throws {
    let windows = try broker.client(first)
    let editors = try broker.client(second)
    try windows.initialize(Self.application, ["process": "windows"])
    try editors.initialize(Self.application, ["process": "editors"])
    let window = try Self.register(windows, "Main", ["kind": "viewController"])
    let editor = try Self.register(editors, "Editor", ["restorationParent": try #require(window["object"])])
    #expect(editor["path"] == .path("Main", "Editor"))
    try editors.encode("Main", "Editor", state: ["cursor": 17, "text": "Grüße"])
    try windows.encode("Main", state: ["front": ["$restorable": .path("Main", "Editor")]])
    // Each reads what the other wrote, references included (R14, R15).
    let read = try windows.decode("Main", "Editor")
    #expect(read["state"] == ["cursor": 17, "text": "Grüße"])
    let front = try editors.decode("Main")["state"]?["front"]
    #expect(front?["$restorable"] == .path("Main", "Editor"))
    #expect(front?["object"] == editor["object"])
  }

  /// R3
  @Test func childrenStayWhenTheirParentsProcessLeaves() throws {
    let windows = try broker.client(.python)
    let editors = try broker.client(.python)
    try windows.initialize(Self.application, ["process": "windows"])
    try editors.initialize(Self.application, ["process": "editors", "serves": ["pathChanged"]])
    let first = try Self.register(windows, "Main")
    let editor = try Self.register(editors, "Editor", ["restorationParent": .path("Main")])
    try windows.kill()
    // The child continues as if nothing had happened.
    let object = try #require(editor["object"])
    try editors.call("encodeRestorableState", ["object": object, "state": ["n": 1]])
    let again = try broker.client(.python)
    try again.initialize(Self.application, ["process": "windows"])
    let second = try Self.register(again, "Main")
    #expect(second["object"] != first["object"])
    try again.call("setRestorationIdentifier", ["object": .path("Main"), "restorationIdentifier": "Renamed"])
    // The vacant node got its children with the claim: they move with it.
    let moved = try editors.notification("pathChanged")
    #expect(moved["path"] == .path("Renamed", "Editor"))
    #expect(moved["object"] == object)
    #expect(try editors.call("decodeRestorableState", ["object": object])["state"] == ["n": 1])
  }

  /// R1
  @Test func aSecondClaimantLearnsBothOwners() throws {
    let first = try broker.client(.python)
    let second = try broker.client(.swift)
    try first.initialize(Self.application, ["process": "first"])
    try second.initialize(Self.application, ["process": "second"])
    let object = try Self.register(first, "Main")["object"]
    let error = try second.failure("registerObjectForStateRestoration", ["restorationIdentifier": "Main"])
    #expect(error.kind == "duplicatePath")
    #expect(error.data["path"] == .path("Main"))
    #expect(
      error.data["owners"] == [
        ["process": "first", "pid": .integer(Int64(first.pid))],
        ["process": "second", "pid": .integer(Int64(second.pid))],
      ]
    )
    #expect(try Self.register(first, "Main")["object"] == object, "the owner may register again")
  }

  /// R1: the process counts, not its connection.
  @Test func aKilledProcessGivesItsPathsBackAtOnceAlsoIfAChildHoldsItsConnection() throws {
    let first = try broker.client(.python)
    try first.initialize(Self.application, ["process": "first"])
    let object = try Self.register(first, "Main")["object"]
    try first.encode("Main", state: ["n": 1])
    let child = Int32(try #require(try first.tell("inherit")["pid"]?.integer))
    defer { Glibc.kill(child, SIGKILL) }
    try first.kill()
    let second = try broker.client(.python)
    #expect(try second.initialize(Self.application, ["process": "first"])["restoration"]?["state"] == "available")
    let claimed = try Self.register(second, "Main")
    #expect(claimed["object"] != object)
    #expect(claimed["restoration"]?["state"] == "available")
    #expect(try second.decode("Main")["state"] == ["n": 1])
  }

  /// R8
  @Test func whoTakesAPathOverIsAnnouncedToTheLoser() throws {
    let old = try broker.client(.python)
    let new = try broker.client(.swift)
    try old.initialize(Self.application, ["process": "old", "serves": ["registrationReplaced"]])
    try new.initialize(Self.application, ["process": "new"])
    let object = try #require(try Self.register(old, "Main")["object"])
    try old.call("encodeRestorableState", ["object": object, "state": ["n": 1]])
    let taken = try Self.register(new, "Main", ["takeOver": true])
    #expect(taken["object"] != object)
    #expect(taken["restoration"]?["state"] == "available")
    let notification = try old.notification("registrationReplaced")
    #expect(notification["object"] == object)
    #expect(notification["path"] == .path("Main"))
    #expect(notification["by"] == ["process": "new", "pid": .integer(Int64(new.pid))])
    #expect(try old.failure("encodeRestorableState", ["object": object, "state": ["n": 2]]).kind == "replaced")
    #expect(try old.failure("encodeRestorableState", ["object": .path("Main"), "state": ["n": 2]]).kind == "replaced")
    #expect(try new.decode("Main")["state"] == ["n": 1])
  }

  /// R6, R14: a subtree moves with its states, and references to moved objects stay valid.
  @Test func aMoveTakesTheSubtreeAlongAndTellsItsOwners() throws {
    let windows = try broker.client(.python)
    let editors = try broker.client(.python)
    try windows.initialize(Self.application, ["process": "windows", "serves": ["pathChanged"]])
    try editors.initialize(Self.application, ["process": "editors", "serves": ["pathChanged"]])
    _ = try Self.register(windows, "Left")
    _ = try Self.register(windows, "Right")
    let panel = try #require(try Self.register(windows, "Panel", ["restorationParent": .path("Left")])["object"])
    let editor = try #require(try Self.register(editors, "Editor", ["restorationParent": panel])["object"])
    try editors.call("encodeRestorableState", ["object": editor, "state": ["n": 1]])
    try windows.encode("Left", state: ["to": ["$restorable": editor]])
    let moved = try windows.call("setRestorationParent", ["object": panel, "restorationParent": .path("Right")])
    #expect(moved["path"] == .path("Right", "Panel"))
    let notification = try editors.notification("pathChanged")
    #expect(notification["object"] == editor)
    #expect(notification["path"] == .path("Right", "Panel", "Editor"))
    for _ in 1...2 {
      let reader = try broker.session(Self.application)
      #expect(try reader.decode("Right", "Panel", "Editor")["state"] == ["n": 1])
      let to = try reader.decode("Left")["state"]?["to"]
      #expect(to?["$restorable"] == .path("Right", "Panel", "Editor"))
      #expect(
        try reader.failure("decodeRestorableState", ["object": .path("Left", "Panel", "Editor")]).kind
          == "unknownObject"
      )
      // The second time the tree comes from the disk.
      try broker.crashAndRestart()
    }
  }
}
