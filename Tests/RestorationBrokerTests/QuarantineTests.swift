// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// States that are withheld from their owners (R35).
@Suite struct QuarantineTests {
  let broker = MemoryBroker()

  /// An application in which the state of `Main` is in quarantine, and that of `Main/Editor` below it is not.
  init() throws {
    let peer = broker.connect(pid: 1)
    try peer.initialize()
    try peer.register("Main")
    try peer.register("Editor", below: #"["Main"]"#)
    try peer.encode(#"["Main"]"#, #"{"poison":1}"#)
    try peer.encode(#"["Main","Editor"]"#, #"{"good":1}"#)
    try peer.goodbye("restart")
    try poison()
  }

  /// Two processes crash of `Main`.
  private func poison() throws {
    for pid in [2, 3] as [Int64] {
      let peer = try start(pid)
      #expect(try peer.decode(#"["Main"]"#)["status"] == "available")
      broker.crash(peer)
    }
  }

  private func start(_ pid: Int64) throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize()
    try peer.register("Main")
    try peer.register("Editor", below: #"["Main"]"#)
    return peer
  }

  private func list(_ more: String = "") throws -> [JSONValue] {
    let result = try broker.connect(pid: 99).call("listQuarantine", #"{"application":"App"\#(more)}"#)
    return try #require(result["objects"]?.array)
  }

  private func release(_ path: String? = nil) throws -> Int64? {
    let member = path.map { #","path":\#($0)"# } ?? ""
    return try broker.connect(pid: 98).call("releaseQuarantine", #"{"application":"App"\#(member)}"#)["released"]?
      .integer
  }

  @Test func r35OnlyTheStateIsWithheld() throws {
    let peer = try start(4)
    let decoded = try peer.decode(#"["Main"]"#)
    #expect(decoded["status"] == "quarantined")
    #expect(decoded["state"]?.isNull == true)
    #expect(decoded["coder"]?["UIApplicationStateRestorationTimestampKey"] != nil)
    #expect(try peer.state(#"["Main","Editor"]"#) == ["good": 1])
    #expect(try broker.connect(pid: 6).initialize()["restoration"]?["state"] == "available")
    // Who is not the owner sees it, marked.
    let read = try broker.connect(pid: 5).decode(#"["Main"],"application":"App""#)
    #expect(read["state"] == ["poison": 1] && read["withheld"] == true)
    #expect(try broker.connect(pid: 5).decode(#"["Main","Editor"],"application":"App""#)["withheld"] == nil)
    let archived = try peer.call("readArchive")["objects"]?.array?.first
    #expect(archived?["status"] == "quarantined")
    #expect(archived?["state"] == ["poison": 1])
    let described = try peer.objects().first
    #expect(described?["quarantined"] == true)
    broker.inspect()
  }

  @Test func r35AWithheldStateIsNoReasonToWait() throws {
    let peer = try start(4)
    _ = try peer.decode(#"["Main"]"#)
    _ = try peer.state(#"["Main","Editor"]"#)
    #expect(try peer.call("completeStateRestoration")["pending"] == 0)
    #expect(broker.application("App")?.trials.hasOpenWindows == false)
  }

  @Test func r35ANewEncodeLiftsItAndKeepsTheText() throws {
    let peer = try start(4)
    // Even if it was not decoded first: there is nothing to hide.
    try peer.encode(#"["Main"]"#, #"{"new":1}"#)
    #expect(try peer.state(#"["Main"]"#) == ["new": 1])
    let object = try #require(try list().first)
    #expect(object["standing"] == "lifted")
    #expect(object["path"]?.joined == "Main")
    #expect(object["states"]?.array?.map { $0["state"] } == [["poison": 1]])
    broker.restart()
    #expect(try list().first == object)
    broker.inspect()
  }

  @Test func r35AKeptTextThatIsReleasedTakesThePlaceOfTheNewerOneAndBack() throws {
    let peer = try start(4)
    try peer.encode(#"["Main"]"#, #"{"new":1}"#)
    for (present, kept) in [("poison", "new"), ("new", "poison")] {
      #expect(try release(#"["Main"]"#) == 1)
      #expect(try peer.state(#"["Main"]"#) == [present: 1])
      let object = try #require(try list().first)
      #expect(object["standing"] == "lifted" && object["states"]?.array?.map { $0["state"] } == [[kept: 1]])
      broker.inspect()
    }
    // Without a path, newer states stay.
    #expect(try release() == 0)
    #expect(try peer.state(#"["Main"]"#) == ["new": 1])
  }

  private func withheld() throws -> JSONValue? {
    try broker.connect(pid: 97).call("listApplications")["applications"]?.array?.first?["withheld"]
  }

  @Test(arguments: [false, true]) func r35ApplicationsAreListedWithWhatIsWithheld(_ isClosed: Bool) throws {
    if isClosed { broker.restart() }
    #expect(try withheld() == 1)
    try broker.connect(pid: 5).encode(#"["Main"]"#, #"{"new":1}"#, #""application":"App""#)
    #expect(try withheld() == nil)
    if isClosed { broker.restart() }
    #expect(try withheld() == nil)
  }

  @Test func r35AnEncodeByWhoeverWritesLiftsItAndSaysSo() throws {
    let writer = broker.connect(pid: 5)
    for expected in [true, nil] as [JSONValue?] {
      let parameters = writer.encoding(#"["Main"]"#, #"{"new":1}"#, #""application":"App""#)
      #expect(try writer.call("encodeRestorableState", parameters)["withheld"] == expected)
    }
    let peer = try start(4)
    #expect(try peer.state(#"["Main"]"#) == ["new": 1])
  }

  @Test func r35ARollbackToAWithheldTextWithholdsItsCopy() throws {
    try broker.connect(pid: 5).encode(#"["Main"]"#, #"{"new":1}"#, #""application":"App""#)
    let peer = try start(4)
    #expect(try peer.state(#"["Main"]"#) == ["new": 1])
    try broker.connect(pid: 6).call("rollBack", #"{"application":"App","generation":1,"force":true}"#)
    #expect(try peer.decode(#"["Main"]"#)["status"] == "quarantined")
    #expect(try peer.state(#"["Main","Editor"]"#) == ["good": 1])
    #expect(try peer.call("explainRestoration", #"{"object":["Main"]}"#)["verdict"] == "quarantined")
    broker.inspect()
    broker.kill(peer)
    broker.restart()
    let next = try start(7)
    #expect(try next.decode(#"["Main"]"#)["status"] == "quarantined")
    #expect(try release(#"["Main"]"#) == 1)
    #expect(try next.state(#"["Main"]"#) == ["poison": 1])
    broker.inspect()
  }

  @Test func r35ARollbackThatLeavesTheRowAsItIsLeavesItWithheld() throws {
    try broker.connect(pid: 5).encode(#"["Other"]"#, "{}", #""application":"App""#)
    try broker.connect(pid: 6).call("rollBack", #"{"application":"App","generation":1,"force":true}"#)
    let peer = try start(4)
    #expect(try peer.decode(#"["Main"]"#)["status"] == "quarantined")
    #expect(try peer.paths() == ["Main", "Main/Editor"])
    broker.inspect()
  }

  @Test func r35TheLastThreeTextsAreKept() throws {
    for number in 1...4 {
      let peer = try start(Int64(10 * number))
      try peer.encode(#"["Main"]"#, #"{"poison":\#(number + 1)}"#)
      try peer.goodbye("restart")
      for pid in [1, 2] as [Int64] {
        let peer = try start(Int64(10 * number) + pid)
        #expect(try peer.decode(#"["Main"]"#)["status"] == "available")
        broker.crash(peer)
      }
    }
    let object = try #require(try list().first)
    #expect(object["standing"] == "quarantined")
    #expect(object["states"]?.array?.compactMap { $0["state"]?["poison"]?.integer } == [3, 4, 5])
    broker.inspect()
  }

  @Test func r35ReleasingHandsTheStateOutAgain() throws {
    #expect(try release(#"["Main"]"#) == 1)
    #expect(try release(#"["Main"]"#) == 0)
    #expect(try list().isEmpty)
    let peer = try start(4)
    #expect(try peer.state(#"["Main"]"#) == ["poison": 1])
    // The count restarts.
    broker.crash(peer)
    #expect(try list().map { $0["strikes"] } == [1])
    broker.inspect()
  }

  @Test func r35ReleasingEverythingForgetsTheStrikes() throws {
    let peer = try start(4)
    _ = try peer.decode(#"["Main","Editor"]"#)
    broker.crash(peer)
    #expect(try list().count == 2)
    #expect(try release() == 1)
    #expect(try list().isEmpty)
    let unknown = try broker.connect(pid: 6).fail("releaseQuarantine", #"{"application":"App","path":["No"]}"#)
    #expect(unknown.kind == "unknownObject")
    let wrong = try broker.connect(pid: 6).fail("releaseQuarantine", #"{"application":"App","path":7}"#)
    #expect(wrong.data["pointer"] == "/path")
  }

  @Test(arguments: ["closed", "userQuit", "discard", "unregister"])
  func r35WhatIsGoneIsNotKept(_ how: String) throws {
    let peer = try start(4)
    switch how {
    case "discard": try peer.call("discardApplicationState")
    case "unregister": try peer.call("unregisterObject", #"{"object":["Main"]}"#)
    default: try peer.goodbye(how)
    }
    #expect(try list().isEmpty)
    broker.restart()
    #expect(try list().isEmpty)
    let archive = try #require(broker.disk.archive("App"))
    // Rows of what was closed and can be opened again are kept in the same way.
    let shelved = archive.run.map { RunFacts(stored: $0.facts).shelf.rows } ?? []
    #expect(Set(archive.withheld.map(\.row)) == Set(shelved))
    broker.inspect()
  }

  @Test func r35AConfidentialTextIsShownOnlyWhenAskedFor() throws {
    let peer = broker.connect(pid: 4)
    try peer.initialize()
    try peer.register("Main", below: nil, #""confidential":true"#)
    let hidden = try #require(try list().first)
    #expect(hidden["redacted"] == true)
    #expect(hidden["states"]?.array?.first?["state"]?.isNull == true)
    #expect(try list(#","reveal":true"#).first?["states"]?.array?.first?["state"] == ["poison": 1])
  }

  @Test func r35TheListComesInPages() throws {
    let peer = broker.connect(pid: 20)
    try peer.initialize("App", #""messageBytesMax":4096"#)
    try peer.register("Wide")
    try peer.encode(#"["Wide"]"#, #"{"text":"\#(String(repeating: "x", count: 3_000))"}"#)
    try peer.goodbye("restart")
    for pid in [21, 22] as [Int64] {
      let peer = broker.connect(pid: pid)
      try peer.initialize()
      try peer.register("Wide")
      _ = try peer.decode(#"["Wide"]"#)
      broker.crash(peer)
    }
    let reader = broker.connect(pid: 23)
    try reader.initialize("App", #""messageBytesMax":4096"#)
    let first = try reader.call("listQuarantine")
    #expect(first["objects"]?.array?.count == 1)
    let cursor = try #require(first["cursor"]?.string)
    let second = try reader.call("listQuarantine", #"{"cursor":"\#(cursor)"}"#)
    #expect(second["objects"]?.array?.map { $0["path"]?.joined } == ["Wide"])
    #expect(second["cursor"] == nil)
    #expect(try reader.fail("listQuarantine", #"{"cursor":"x"}"#).data["pointer"] == "/cursor")
  }

  @Test func r31SubscribersAreTold() throws {
    let monitor = broker.connect(pid: 50)
    try monitor.call("subscribe", #"{"application":"App"}"#)
    let names = ["restorationCrashed", "stateQuarantined", "archiveQuarantined", "quarantineEnded"]
    func events() -> [JSONValue] {
      monitor.takeNotifications("event").filter { event in names.contains { event["name"] == .string($0) } }
    }
    let peer = try start(4)
    try peer.encode(#"["Main"]"#, #"{"new":1}"#)
    #expect(events().map { $0["cause"] } == ["encoded"])
    try peer.goodbye("restart")
    try poison()
    let told = events()
    #expect(told.map { $0["name"] } == ["restorationCrashed", "restorationCrashed", "stateQuarantined"])
    #expect(told.map { $0["strikes"] } == [1, 2, nil])
    #expect(told[0]["guilty"]?.joined == "Main")
    #expect(try release() == 1)
    #expect(events().map { $0["cause"] } == ["released"])
  }
}
