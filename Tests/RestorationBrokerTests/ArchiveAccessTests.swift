// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Looking at archives page by page.
@Suite struct ArchiveAccessTests {
  let broker = MemoryBroker()

  @Test func describeApplicationPagesThroughAllObjects() throws {
    let peer = broker.connect()
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
    broker.inspect()
  }

  @Test func listPathComponentsPagesThroughAllThatFit() throws {
    let peer = broker.connect()
    try peer.initialize("App", #""messageBytesMax":4096"#)
    // Each quote is two bytes of a page, which has half of what the client reads; a parent is there twice.
    let quotes = String(repeating: "\"", count: 100)
    let names = (0..<10).map { "o\($0)\(quotes)" }
    for name in names { try peer.register(name) }
    try peer.register("below", below: JSONText(.array([.string(names[0])])).string)
    try peer.register("p")
    let first = try peer.call("listPathComponents", #"{"beginning":"o"}"#)
    #expect(first["components"] == .array(names.prefix(8).map { .string($0) }))
    #expect(first["parents"] == [.string(names[0])])
    let cursor = try #require(first["cursor"]?.string)
    let second = try peer.call("listPathComponents", #"{"beginning":"o","cursor":"\#(cursor)"}"#)
    #expect(second["components"] == .array(names.suffix(2).map { .string($0) }))
    #expect(second["parents"] == [] && second["cursor"] == nil)
  }

  @Test(arguments: [
    ("describeApplication", ["x", "1.2", "", "0.1.2.3", "9223372036854775808"]),
    ("readArchive", ["x", "1.2", "", "0.1.2.3", "9223372036854775808", "0.999999.1"]),
    ("exportArchive", ["x", "1", "1.2.3", "99.0", "9223372036854775808.0", "1.-1"]),
  ])
  func aCursorOfAnotherCallIsRefused(_ method: String, _ cursors: [String]) throws {
    let peer = broker.connect()
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    for cursor in cursors {
      let failure = try peer.fail(method, #"{"application":"App","cursor":"\#(cursor)"}"#)
      #expect(failure.code == -32602 && failure.data["pointer"] == "/cursor", "\(cursor)")
    }
  }

  @Test func readingChangesNothing() throws {
    let peer = broker.connect(pid: 3)
    try peer.initialize()
    try peer.register("A")
    try peer.encode(#"["A"]"#, "{}")
    broker.forgetWritten()
    let reader = broker.connect(pid: 4)
    for method in ["readArchive", "describeApplication", "listPathComponents", "listGenerations"] {
      try reader.call(method, #"{"application":"App"}"#)
    }
    _ = try reader.decode(#"["A"]"#, #""application":"App""#)
    try reader.call("listApplications")
    #expect(broker.written.isEmpty)
    #expect(broker.timerCount == 0)
  }

  @Test func listApplicationsKnowsOpenAndClosedArchives() throws {
    let peer = broker.connect(pid: 3)
    try peer.encode(#"["A"]"#, #"{"a":1}"#, #""application":"Zoo""#)
    broker.restart()
    let other = broker.connect(pid: 4)
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
}
