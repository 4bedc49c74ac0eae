// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Archives as documents, out and in again.
@Suite struct ExportTests {
  let broker = MemoryBroker()

  @Test(arguments: ["exportArchive", "readArchive"])
  func pagesEndAtTheSizeTheClientTakes(_ method: String) throws {
    let peer = broker.connect()
    try peer.initialize("App", #""messageBytesMax":4096"#)
    for index in 0..<40 { try peer.encode(#"["o\#(index)"]"#, #"{"f":"\#(String(repeating: "x", count: 100))"}"#) }
    var cursor: String?
    repeat {
      let id = peer.start(method, cursor.map { #"{"cursor":"\#($0)"}"# } ?? "{}")
      #expect(try peer.text(id).utf8.count <= 4_096)
      cursor = try peer.result(of: id)["cursor"]?.string
    } while cursor != nil
  }

  @Test func aCursorEndsWithItsConnectionAndAfterAMinute() throws {
    let peer = broker.connect()
    try peer.initialize("App", #""messageBytesMax":1"#)
    for index in 0..<3 { try peer.encode(#"["o\#(index)"]"#, "{}") }
    let first = try #require(try peer.call("exportArchive")["cursor"]?.string)
    let other = broker.connect(pid: 7)
    let call = #"{"application":"App","cursor":"\#(first)"}"#
    #expect(try other.fail("exportArchive", call).data["pointer"] == "/cursor")
    broker.advance(milliseconds: 59_000)
    let second = try #require(try peer.call("exportArchive", call)["cursor"]?.string)
    broker.advance(milliseconds: 59_000)
    #expect(try peer.call("exportArchive", #"{"cursor":"\#(second)"}"#)["cursor"] == nil)
    #expect(broker.timerCount == 0)
    let third = try #require(try peer.call("exportArchive")["cursor"]?.string)
    broker.advance(milliseconds: 61_000)
    #expect(try peer.fail("exportArchive", #"{"cursor":"\#(third)"}"#).data["pointer"] == "/cursor")
    #expect(broker.timerCount == 0)
    try peer.call("exportArchive")
    broker.disconnect(peer)
    broker.advance(milliseconds: 2_000)
    #expect(broker.timerCount == 0)
  }

  @Test func aStateThatCannotBeReadIsNamedMissing() throws {
    try broker.connect().encode(#"["A"]"#, #"{"x":1}"#, #""application":"App""#)
    broker.restart()
    broker.disk.damage("App", broker.disk.rows(of: 1))
    let peer = broker.connect()
    let document = try peer.export("App")
    #expect(document.contains(#"{"path":["A"],"kind":"object","missing":"unreadable"}"#))
    #expect(try peer.fail("importArchive", peer.importing(document, into: "Other")).kind == "needsForce")
  }

  @Test func r6AReferenceToWhatGaveWayIsExportedByThePathOfWhatTookItsPlace() throws {
    let peer = broker.connect()
    try peer.initialize()
    try peer.encode(#"["c"]"#, "{}")
    try peer.register("a")
    try peer.register("B")
    try peer.encode(#"["B"]"#, #"{"to":{"$restorable":["a"]}}"#)
    try peer.call("setRestorationIdentifier", #"{"object":["a"],"restorationIdentifier":"c"}"#)
    #expect(try peer.export("App").contains(#"{"$restorable":["c"]}"#))
    broker.inspect()
  }

  @Test func othersAreServedWhileALargeExportIsPlannedAndItShowsOneMoment() throws {
    let writer = broker.connect()
    try writer.initialize()
    for index in 0..<2_100 { try writer.encode(#"["o\#(index)"]"#, "{}") }
    try writer.goodbye("restart")
    // The next run seals what the former one left.
    try broker.connect(pid: 6).initialize()
    let (peer, other) = (broker.connect(pid: 7), broker.connect(pid: 8))
    let before = try peer.export("App")
    // So many objects are gathered, linked, put in order and listed, and others have their turn after each. A
    // generation's nodes are read in three pieces.
    for (more, pieces) in [("", 4), (#","generation":1"#, 7)] {
      let jobs = broker.jobCount
      var calls: [Int] = []
      broker.betweenPieces = { [broker] in
        let (method, parameters) = [
          ("decodeRestorableState", #"{"application":"App","object":["o7"]}"#),
          ("encodeRestorableState", #"{"application":"App","object":["o7"],"state":{"n":1}}"#),
          ("encodeRestorableState", #"{"application":"App","object":["o7","new"],"state":{}}"#),
          ("unregisterObject", #"{"application":"App","object":["o8"]}"#),
        ][calls.count]
        calls.append(other.start(method, parameters))
        if calls.count == 4 { broker.betweenPieces = nil }
      }
      #expect(try peer.export("App", #""reveal":true\#(more)"#) == before)
      #expect(calls.count == 4 && calls.allSatisfy { other.hasAnswer($0) })
      #expect(broker.jobCount - jobs >= pieces)
    }
    let after = try peer.export("App")
    #expect(after.contains("new") && !after.contains(#"["o8"]"#))
    broker.inspect()
  }

  @Test func aTreeDeeperThanAnyPathAndWiderThanAPageIsExported() throws {
    let peer = broker.connect()
    try peer.initialize()
    var parent: String?
    for index in 0..<300 {
      let object = try peer.register("n\(index)", below: parent, #""kind":"viewController""#)
      parent = "\(object)"
    }
    for index in 0..<1_200 { try peer.register("w\(index)") }
    let document = try peer.export("App")
    #expect(try broker.connect(pid: 7).importDocument(document, into: "Other")["objects"] == 1_500)
  }
}
