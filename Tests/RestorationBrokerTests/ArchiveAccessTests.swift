// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Looking at archives page by page, and emptying them.
@Suite struct ArchiveAccessTests {
  let driver = CoreDriver()

  @Test(arguments: [
    ("encodeRestorableState", #""object":["A"],"state":[]"#), ("encodeRestorableState", #""object":["A"]"#),
    ("encodeRestorableState", #""object":7.5,"state":{}"#), ("registerObjectForStateRestoration", #""kind":"window""#),
  ])
  func whatIsRefusedForItsFormMakesNoArchive(_ method: String, _ parameters: String) throws {
    let peer = driver.connect()
    #expect(try peer.fail(method, #"{"application":"App",\#(parameters)}"#).code == -32602)
    #expect(try peer.call("listApplications")["applications"] == [])
    #expect(try peer.fail("describeApplication", #"{"application":"App"}"#).data["kind"] == "unknownApplication")
  }

  // MARK: Pages

  @Test func describeApplicationPagesThroughAllObjects() throws {
    driver.measuresArchives = false
    let peer = driver.connect()
    try peer.initialize()
    for index in 0..<1_200 { try peer.register("o\(index)") }
    var paths: [String] = []
    var cursor: String?
    var pages = 0
    repeat {
      let page = try peer.call("describeApplication", cursor.map { #"{"cursor":"\#($0)"}"# } ?? "{}")
      paths += (page["objects"]?.array ?? []).compactMap { $0["path"]?.joined }
      cursor = page["cursor"]?.string
      pages += 1
      // Objects registered meanwhile do not disturb existing pages.
      try peer.register("late\(pages)")
    } while cursor != nil
    #expect(pages == 3)
    #expect(Set(paths).count == paths.count)
    #expect(Set(paths).isSuperset(of: (0..<1_200).map { "o\($0)" }))
    driver.inspect()
  }

  @Test(arguments: ["x", "1.2", "", "0.1.2.3", "9223372036854775808"])
  func aCursorOfAnotherCallIsRefused(_ cursor: String) throws {
    let peer = driver.connect()
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    for method in ["describeApplication", "readArchive"] {
      let failure = try peer.fail(method, #"{"application":"App","cursor":"\#(cursor)"}"#)
      #expect(failure.code == -32602)
      #expect(failure.data["pointer"] == "/cursor")
    }
  }

  @Test func readArchivePagesShowOneMomentWhileWritesGoOn() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""messageBytesMax":4096"#)
    let filler = String(repeating: "x", count: 300)
    for index in 0..<20 { try peer.encode(#"["o\#(index)"]"#, #"{"n":1,"f":"\#(filler)"}"#) }
    var seen: [String: Int64] = [:]
    var cursor: String?
    var pages = 0
    repeat {
      let id = peer.start("readArchive", cursor.map { #"{"cursor":"\#($0)"}"# } ?? "{}")
      #expect(try peer.text(id).utf8.count <= 4_096)
      let page = try peer.result(of: id)
      for object in page["objects"]?.array ?? [] {
        seen[object["path"]?.joined ?? ""] = object["state"]?["n"]?.integer
      }
      cursor = page["cursor"]?.string
      pages += 1
      for index in 0..<20 { try peer.encode(#"["o\#(index)"]"#, #"{"n":2}"#) }
      try peer.encode(#"["new\#(pages)"]"#, #"{"n":3}"#)
    } while cursor != nil && pages < 50
    #expect(pages > 5)
    #expect(seen.count == 20)
    #expect(seen.values.allSatisfy { $0 == 1 })
    let failure = try peer.fail("readArchive", #"{"cursor":"0.999999.1"}"#)
    #expect(failure.data["pointer"] == "/cursor")
  }

  @Test func aPageHoldsAtLeastOneObject() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""messageBytesMax":1"#)
    for index in 0..<3 { try peer.encode(#"["o\#(index)"]"#, "{}") }
    let page = try peer.call("readArchive")
    #expect(page["objects"]?.array?.count == 1)
    #expect(page["cursor"] != nil)
  }

  @Test func describeApplicationTellsWhatAnObjectIsBelowOf() throws {
    let peer = driver.connect(pid: 3)
    try peer.initialize("App")
    let root = try peer.register("Root", below: nil, #""kind":"viewController""#)
    let hidden = try peer.register(nil, below: "\(root)", #""kind":"viewController","confidential":true"#)
    try peer.register("In", below: "\(hidden)", #""kind":"view""#)
    try peer.encode("\(hidden)", #"{"a":1}"#, #""revision":9"#)
    let objects = try peer.objects()
    #expect(objects.map { $0["parent"] } == [.null, objects[0]["node"], objects[1]["node"]])
    #expect(objects.map { $0["revision"] } == [.null, 9, .null])
    #expect(objects.map { $0["confidential"] } == [false, true, false])
    #expect(objects.map { $0["path"] } == [["Root"], .null, ["In"]])
  }

  @Test func readArchiveShowsEverythingAboutAnObject() throws {
    let peer = driver.connect(pid: 3)
    try peer.initialize("App", #""process":"main""#)
    let handle = try peer.register(
      "V",
      below: nil,
      #""kind":"viewController","objectClass":["A","B"],"confidential":true"#
    )
    try peer.encode("\(handle)", #"{"secret":1}"#, #""elements":[{"role":"selected","indexPath":[1]}]"#)
    try peer.register("Empty")
    let objects = try #require(try peer.call("readArchive")["objects"]?.array)
    let object = try #require(objects.first)
    #expect(object["object"] == .integer(handle))
    #expect(object["kind"] == "viewController")
    #expect(object["objectClass"] == ["A", "B"])
    #expect(object["process"] == "main")
    #expect(object["status"] == "available")
    #expect(object["state"]?.isNull == true)
    #expect(object["elements"] == nil)
    #expect(object["confidential"] == true)
    #expect(object["redacted"] == true)
    #expect(objects[1]["status"] == "none")
    #expect(objects[1]["redacted"] == false)
    let revealed = try #require(try peer.call("readArchive", #"{"reveal":true}"#)["objects"]?.array?.first)
    #expect(revealed["state"] == ["secret": 1])
    #expect(revealed["elements"] == [["role": "selected", "indexPath": [1], "resolved": false]])
    #expect(revealed["redacted"] == false)
  }

  @Test func readingChangesNothing() throws {
    let peer = driver.connect(pid: 3)
    try peer.initialize()
    try peer.register("A")
    try peer.encode(#"["A"]"#, "{}")
    driver.forgetWritten()
    let reader = driver.connect(pid: 4)
    for method in ["readArchive", "describeApplication", "listGenerations"] {
      try reader.call(method, #"{"application":"App"}"#)
    }
    _ = try reader.decode(#"["A"]"#, #""application":"App""#)
    try reader.call("listApplications")
    #expect(driver.written.isEmpty)
    #expect(driver.timerCount == 0)
  }

  @Test func listApplicationsKnowsOpenAndClosedArchives() throws {
    let peer = driver.connect(pid: 3)
    try peer.encode(#"["A"]"#, #"{"a":1}"#, #""application":"Zoo""#)
    driver.restart()
    let other = driver.connect(pid: 4)
    try other.initialize("App")
    try other.register("Main")
    let applications = try #require(try other.call("listApplications")["applications"]?.array)
    #expect(applications.map { $0["application"]?.string } == ["App", "Zoo"])
    #expect(applications[0]["sessions"] == 1)
    #expect(applications[0]["objects"] == 1)
    #expect(applications[0]["state"] == "none")
    #expect(applications[1]["sessions"] == 0)
    #expect(applications[1]["state"] == "available")
  }

  // MARK: Discarding

  @Test func discardingEmptiesTheHeadAndKeepsLiveObjects() throws {
    let (peer, other) = (driver.connect(pid: 1), driver.connect(pid: 2))
    try peer.initialize()
    let child = try {
      try peer.encode(#"["Vacant"]"#, #"{"v":1}"#)
      return try peer.register("Child", below: #"["Vacant"]"#)
    }()
    try peer.encode("\(child)", #"{"c":1}"#)
    try peer.encode(#"["Gone","Deep"]"#, #"{"g":1}"#)
    try other.call("discardApplicationState", #"{"application":"App","reason":"test"}"#)
    #expect(try peer.paths() == ["Vacant", "Vacant/Child"])
    #expect(try peer.decode("\(child)")["status"] == "none")
    driver.inspect()
    try peer.encode("\(child)", #"{"c":2}"#)
    try peer.encode(#"["Gone"]"#, #"{"g":2}"#)
    driver.inspect()
    driver.restart()
    #expect(
      try driver.connect(pid: 3).paths(#""application":"App""#) == ["Gone", "Vacant", "Vacant/Child"]
    )
  }

  @Test func discardingGenerationsOfLiveSessionsNeedsForce() throws {
    let peer = driver.connect(pid: 1)
    try peer.encode(#"["A"]"#, #"{"a":1}"#, #""application":"App""#)
    try peer.initialize()
    #expect(try peer.call("listGenerations")["generations"]?.array?.count == 1)
    let failure = try peer.fail("discardApplicationState", #"{"generations":true}"#)
    #expect(failure.code == -32020)
    #expect(try peer.state(#"["A"]"#) == ["a": 1])
    try peer.call("discardApplicationState")
    #expect(try peer.call("listGenerations")["generations"]?.array?.count == 1)
    try peer.call("discardApplicationState", #"{"generations":true,"force":true}"#)
    #expect(try peer.call("listGenerations")["generations"] == [])
    driver.inspect()
    try peer.goodbye("restart")
    try peer.call("discardApplicationState", #"{"application":"App","generations":true}"#)
    driver.inspect()
  }
}
