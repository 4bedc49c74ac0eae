// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Archives as documents, out and in again.
@Suite struct ExportTests {
  let driver = CoreDriver()

  /// One of everything that a document can hold.
  private func fill() throws -> Peer {
    let peer = driver.connect()
    try peer.initialize("App", #""process":"main","bundleVersion":"2","storyboard":{"unit":"app.service"}"#)
    try peer.register(
      "Main",
      #""kind":"viewController","objectClass":["W","B"],"restorationClass":"R","keep":"forever""#
    )
    let hidden = try peer.register(nil, below: #"["Main"]"#, #""kind":"viewController""#)
    try peer.register("Inner", below: "\(hidden)", #""kind":"view""#)
    try peer.register("Plain", below: "\(hidden)")
    try peer.register(nil, below: #"["Main"]"#, #""kind":"view""#)
    try peer.register("Secret", below: #"["Main"]"#, #""kind":"view","confidential":true"#)
    try peer.register("Empty", #""position":3"#)
    try peer.encode(#"["Inner"]"#, #"{"up":{"$restorable":["Main"]}}"#)
    try peer.encode(#"["Main","Secret"]"#, #"{"password":1}"#)
    try peer.encode(
      #"["Main"]"#,
      #"{"a":[0.1,1e400,-0.0,1E5],"deep":[{"x":{"$restorable":["Inner"]}}],"gone":{"$restorable":null},"#
        + #""no":{"$literal":{"$restorable":["q"]}},"s":"\u0000\/é"}"#,
      #""elements":[{"role":"topVisible","indexPath":[1,2],"identifier":"m"}]"#
    )
    return peer
  }

  @Test func aDocumentHoldsWhatARestorationNeeds() throws {
    let peer = try fill()
    let lines = try peer.export("App").split(separator: "\n")
    #expect(lines[0] == #"{"format":"restorationd.archive","version":1,"redacted":false,"objects":["#)
    let main: [String] = [
      #"{"path":["Main"],"kind":"viewController","objectClass":["W","B"],"restorationClass":"R","keep":"forever","#,
      #""state":{"a":[0.1,1e400,-0.0,1E5],"deep":[{"x":{"$restorable":["Inner"]}}],"#,
      #""gone":{"$restorable":null,"object":null},"no":{"$literal":{"$restorable":["q"]}},"s":"\u0000\/é"},"#,
      #""elements":[{"role":"topVisible","indexPath":[1,2],"identifier":"m","resolved":false}],"#,
      #""writer":{"objectClass":["W","B"],"process":"main","bundleVersion":"2","userInterfaceIdiom":-1,"#,
      #""systemVersion":"Test 1","storyboard":{"unit":"app.service"},"written":"20"#,
    ]
    #expect(lines[1].hasPrefix(main.joined()))
    #expect(lines[2] == #"{"path":null,"parent":0,"kind":"viewController"},"#)
    #expect(lines[3].hasPrefix(#"{"path":["Inner"],"parent":1,"kind":"view","state":{"up":{"$restorable":["Main"]}},"#))
    #expect(lines[4] == #"{"path":["Plain"],"parent":1,"kind":"object"},"#)
    #expect(lines[5].hasPrefix(#"{"path":["Main","Secret"],"kind":"view","confidential":true,"state":{"password":1},"#))
    #expect(lines[6] == #"{"path":["Empty#3"],"kind":"object"}"#)
    #expect(lines.count == 8)
  }

  @Test func exportImportExportIsTheSameText() throws {
    let peer = try fill()
    let document = try peer.export("App")
    let tool = driver.connect(pid: 7)
    try tool.importDocument(document, into: "Other")
    #expect(try tool.export("Other") == document)
    try peer.goodbye("userQuit")
    #expect(try tool.importDocument(document, into: "App")["generation"] == nil)
    #expect(try tool.export("App") == document)
    driver.restart()
    let later = driver.connect()
    #expect(try later.export("Other") == document)
    #expect(try later.export("App") == document)
    driver.inspect()
  }

  @Test func confidentialStatesAreLeftOutUnlessAskedFor() throws {
    let peer = try fill()
    let document = try peer.export("App", "")
    #expect(document.contains(#""redacted":true"#))
    #expect(document.contains(#"{"path":["Main","Secret"],"kind":"view","confidential":true,"missing":"redacted"}"#))
    #expect(!document.contains("password"))
    let failure = try peer.fail("importArchive", peer.importing(document, into: "App"))
    #expect(failure.kind == "needsForce")
    let tool = driver.connect(pid: 7)
    #expect(try tool.fail("importArchive", tool.importing(document, into: "Other")).kind == "needsForce")
    #expect(driver.archives["Other"] == nil)
    try tool.importDocument(document, into: "Other", #""force":true"#)
    #expect(try tool.state(#"["Main","Secret"],"application":"Other""#) == nil)
  }

  @Test func pagesShowOneMomentWhileEverythingChanges() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""messageBytesMax":8192"#)
    let filler = String(repeating: "x", count: 500)
    for index in 0..<60 { try peer.encode(#"["o\#(index)","i"]"#, #"{"n":\#(index),"f":"\#(filler)"}"#) }
    let before = try peer.export("App")
    var pages = 0
    let meanwhile = try peer.export("App") {
      pages += 1
      try peer.encode(#"["o\#(59 - pages)","i"]"#, #"{"n":-1}"#)
      try peer.encode(#"["new\#(pages)"]"#, "{}")
      if pages == 3 { try peer.call("discardApplicationState") }
    }
    #expect(pages > 8)
    #expect(meanwhile == before)
    #expect(driver.timerCount == 0)
  }

  @Test func pagesEndAtTheSizeTheClientTakes() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""messageBytesMax":4096"#)
    for index in 0..<40 { try peer.encode(#"["o\#(index)"]"#, #"{"f":"\#(String(repeating: "x", count: 100))"}"#) }
    var cursor: String?
    repeat {
      let id = peer.start("exportArchive", cursor.map { #"{"cursor":"\#($0)"}"# } ?? "{}")
      #expect(try peer.text(id).utf8.count <= 4_096)
      cursor = try peer.result(of: id)["cursor"]?.string
    } while cursor != nil
  }

  @Test(arguments: ["x", "1", "1.2.3", "99.0", "9223372036854775808.0", "1.-1"])
  func aCursorOfAnotherCallIsRefused(_ cursor: String) throws {
    let peer = driver.connect()
    try peer.encode(#"["A"]"#, "{}", #""application":"App""#)
    let failure = try peer.fail("exportArchive", #"{"application":"App","cursor":"\#(cursor)"}"#)
    #expect(failure.code == -32602)
    #expect(failure.data["pointer"] == "/cursor")
  }

  @Test func aCursorEndsWithItsConnectionAndAfterAMinute() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""messageBytesMax":1"#)
    for index in 0..<3 { try peer.encode(#"["o\#(index)"]"#, "{}") }
    let first = try #require(try peer.call("exportArchive")["cursor"]?.string)
    let other = driver.connect(pid: 7)
    let call = #"{"application":"App","cursor":"\#(first)"}"#
    #expect(try other.fail("exportArchive", call).data["pointer"] == "/cursor")
    driver.advance(milliseconds: 59_000)
    let second = try #require(try peer.call("exportArchive", call)["cursor"]?.string)
    driver.advance(milliseconds: 59_000)
    #expect(try peer.call("exportArchive", #"{"cursor":"\#(second)"}"#)["cursor"] == nil)
    #expect(driver.timerCount == 0)
    let third = try #require(try peer.call("exportArchive")["cursor"]?.string)
    driver.advance(milliseconds: 61_000)
    #expect(try peer.fail("exportArchive", #"{"cursor":"\#(third)"}"#).data["pointer"] == "/cursor")
    #expect(driver.timerCount == 0)
    try peer.call("exportArchive")
    driver.disconnect(peer)
    driver.advance(milliseconds: 2_000)
    #expect(driver.timerCount == 0)
  }

  @Test func aGenerationIsExportedAsItWas() throws {
    let peer = try fill()
    let visible = try peer.export("App")
    try peer.goodbye("restart")
    let next = driver.connect()
    try next.initialize("App")
    try next.encode(#"["Main"]"#, "{}")
    try next.call("discardApplicationState")
    let exported = try next.export("App", #""generation":1,"reveal":true"#)
    // Inner is referenced by Main and so part of the generation.
    #expect(exported == visible)
    let failure = try next.fail("exportArchive", #"{"generation":2}"#)
    #expect(failure.data["pointer"] == "/generation")
  }

  @Test func whatAGenerationLeavesOutIsLeftOut() throws {
    let peer = driver.connect()
    try peer.initialize()
    let hidden = try peer.register(nil, #""kind":"viewController""#)
    try peer.register("Unseen", below: "\(hidden)", #""kind":"view""#)
    try peer.encode(#"["Unseen"]"#, #"{"x":1}"#)
    try peer.encode(#"["Seen"]"#, #"{"x":2}"#)
    try peer.goodbye("restart")
    let next = driver.connect()
    try next.initialize()
    let document = try next.export("App", #""generation":1"#)
    #expect(!document.contains("Unseen") && !document.contains("null"))
    #expect(document.contains(#""state":{"x":2}"#))
  }

  @Test func whatAnEarlyStateHidesIsKept() throws {
    let peer = driver.connect()
    try peer.initialize()
    try peer.register("A")
    try peer.encode(#"["A"]"#, #"{"good":1}"#)
    driver.crash(peer)
    let next = driver.connect(pid: 101)
    try next.initialize()
    try next.register("A")
    try next.encode(#"["A"]"#, #"{"blank":1}"#)
    driver.crash(next)
    let tool = driver.connect(pid: 7)
    let document = try tool.export("App")
    #expect(
      document.contains(#""state":{"blank":1},"#)
        && document.contains(#""early":true,"beforeClaim":{"state":{"good":1},"#)
    )
    try tool.importDocument(document, into: "Other")
    #expect(try tool.export("Other") == document)
    let owner = driver.connect(pid: 8)
    try owner.initialize("Other")
    try owner.register("A")
    #expect(try owner.state(#"["A"]"#) == ["good": 1])
    #expect(try tool.state(#"["A"],"application":"Other""#) == ["blank": 1])
  }

  @Test func aStateThatCannotBeReadIsNamedMissing() throws {
    let peer = driver.connect()
    let sequence = try #require(
      try peer.encode(#"["A"]"#, #"{"x":1}"#, #""application":"App""#)["sequence"]?.integer
    )
    driver.tamper("App") { $0.damaged = [sequence] }
    let document = try peer.export("App")
    #expect(document.contains(#"{"path":["A"],"kind":"object","missing":"unreadable"}"#))
    #expect(try peer.fail("importArchive", peer.importing(document, into: "Other")).kind == "needsForce")
  }

  @Test func progressIsToldBeforeEachPage() throws {
    let peer = driver.connect()
    try peer.initialize("App", #""messageBytesMax":160"#)
    for index in 0..<3 { try peer.encode(#"["o\#(index)"]"#, #"{"t":"a state of a page's length"}"#) }
    _ = try peer.export("App", #""progressToken":"\u0074""#)
    let told = peer.takeNotifications("progress")
    #expect(told.map { $0["done"]?.integer } == [1, 2, 3])
    #expect(told.allSatisfy { $0["total"] == 3 && $0["progressToken"] == "t" && $0["message"] == nil })
    try peer.call("exportArchive")
    #expect(peer.takeNotifications("progress").isEmpty)
  }

  @Test func aTreeDeeperThanAnyPathAndWiderThanAPageIsExported() throws {
    driver.measuresArchives = false
    let peer = driver.connect()
    try peer.initialize()
    var parent: String?
    for index in 0..<300 {
      let object = try peer.register("n\(index)", below: parent, #""kind":"viewController""#)
      parent = "\(object)"
    }
    for index in 0..<1_200 { try peer.register("w\(index)") }
    let document = try peer.export("App")
    try driver.connect(pid: 7).importDocument(document, into: "Other")
    #expect(try peer.objectCount(of: document) == 1_500)
  }
}

extension Peer {
  /// How many objects a document has.
  fileprivate func objectCount(of document: String) throws -> Int {
    try #require(try JSONSlice.scan(Array(document.utf8), vocabulary: EncodedState.vocabulary)["objects"]?.elements)
      .count
  }
}
