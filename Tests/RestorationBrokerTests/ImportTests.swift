// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Refused documents, and the result of an import.
@Suite struct ImportTests {
  let driver = CoreDriver()

  /// A document, the error it gets, and where it points.
  struct Refusal: CustomTestStringConvertible, Sendable {
    let document: String
    let kind: String
    let pointer: String?

    init(_ kind: String, _ pointer: String?, _ document: String) {
      self.document = document
      self.kind = kind
      self.pointer = pointer
    }

    var testDescription: String { "\(kind) \(pointer ?? "")" }
  }

  private static let good = Document.object(#"["ok"]"#, "{}")

  static let refusals: [Refusal] = [
    Refusal("invalidParams", "/document", "[]"),
    Refusal("invalidParams", "/document/format", "{}"),
    Refusal("invalidParams", "/document/version", Document.of(head: #""format":"restorationd.archive","version":9"#)),
    Refusal("invalidParams", "/document/objects/1", Document.of(good, "7")),
    Refusal("invalidParams", "/document/objects/1/kind", Document.of(good, #"{"path":["a"]}"#)),
    Refusal("invalidParams", "/document/objects/1/state", Document.of(good, Document.object(#"["a"]"#, "[]"))),
    Refusal("invalidIdentifier", "/document/objects/1/path/0", Document.of(good, Document.object(#"["a/b"]"#, "{}"))),
    Refusal("invalidIdentifier", "/document/objects/0/path/1", Document.of(Document.object(##"["a","b#x"]"##, "{}"))),
    Refusal("invalidIdentifier", "/document/objects/0/path/0", Document.of(Document.object(#"[""]"#, "{}"))),
    Refusal("unknownParent", "/document/objects/1/path", Document.of(good, Document.object(#"["a","b"]"#, "{}"))),
    Refusal(
      "unknownParent",
      "/document/objects/0/path",
      Document.of(Document.object(#"["a","b"]"#, "{}"), Document.object(#"["a"]"#, "{}"))
    ),
    Refusal("unknownParent", "/document/objects/0/parent", Document.of(#"{"path":["a"],"kind":"view","parent":0}"#)),
    Refusal(
      "unknownParent",
      "/document/objects/1/parent",
      Document.of(good, #"{"path":null,"kind":"view","parent":2}"#)
    ),
    Refusal("duplicatePath", "/document/objects/1/path", Document.of(good, good)),
    Refusal(
      "invalidParams",
      "/document/objects/1/path",
      Document.of(good, #"{"path":["a"],"kind":"view","parent":0}"#)
    ),
    Refusal(
      "invalidParams",
      "/document/objects/2/path",
      Document.of(
        #"{"path":["a"],"kind":"viewController"}"#,
        #"{"path":null,"kind":"view","parent":0}"#,
        #"{"path":["a","b"],"kind":"view","parent":1}"#
      )
    ),
    Refusal(
      "reservedKey",
      "/document/objects/0/state/UIStateRestorationX",
      Document.of(Document.object(#"["a"]"#, #"{"UIStateRestorationX":1}"#))
    ),
    Refusal(
      "invalidReference",
      "/document/objects/1/state",
      Document.of(good, Document.object(#"["a"]"#, #"{"r":[{"$restorable":["b"]}]}"#))
    ),
    Refusal(
      "invalidReference",
      "/document/objects/0/state",
      Document.of(Document.object(#"["a"]"#, #"{"r":{"$restorable":1}}"#))
    ),
    Refusal(
      "invalidReference",
      "/document/objects/0/beforeClaim/state",
      Document.of(
        Document.object(
          #"["a"]"#,
          "{}",
          #""early":true,"beforeClaim":{"state":{"r":{"$restorable":["b"]}},\#(Document.writer)}"#
        )
      )
    ),
    Refusal("needsForce", nil, Document.of(#"{"path":["a"],"kind":"view","missing":"redacted"}"#)),
    Refusal(
      "needsForce",
      nil,
      Document.of(head: #""format":"restorationd.archive","version":1,"redacted":true"#)
    ),
  ]

  @Test(arguments: refusals)
  func aRefusedDocumentMakesNoArchiveAndChangesNone(_ refusal: Refusal) throws {
    let tool = driver.connect()
    let failure = try tool.fail("importArchive", tool.importing(refusal.document, into: "New"))
    #expect(failure.kind == refusal.kind, "\(failure.message)")
    #expect(failure.data["pointer"]?.string == refusal.pointer)
    #expect(driver.archives["New"] == nil)
    #expect(driver.openCount == 0)
    try tool.encode(#"["Here"]"#, #"{"x":1}"#, #""application":"Old""#)
    let before = try tool.export("Old")
    let sequence = driver.archives["Old"]?.sequence
    let force = refusal.kind == "needsForce" ? "" : #""force":true"#
    #expect(try tool.fail("importArchive", tool.importing(refusal.document, into: "Old", force)).kind == refusal.kind)
    #expect(driver.archives["Old"]?.sequence == sequence)
    #expect(try tool.export("Old") == before)
    driver.inspect()
  }

  @Test func limitsAreHitExactlyAtTheirBorder() throws {
    var limits = Limits()
    limits.stateBytesMax = 1_024
    limits.objectsPerApplicationMax = 3
    limits.pathBytesMax = 256
    limits.stateDepthMax = 4
    limits.referencesPerStateMax = 2
    let driver = CoreDriver(limits: limits)
    let tool = driver.connect()
    let fits = String(repeating: "x", count: 1_024 - 8)
    let long = String(repeating: "p", count: 127)
    let reference = #"{"$restorable":["a"]}"#
    let passing = [
      Document.of(Document.object(#"["a"]"#, #"{"x":"\#(fits)"}"#)),
      Document.of(Document.object(#"["a"]"#, "{}"), Document.object(#"["b"]"#, "{}"), Document.object(#"["c"]"#, "{}")),
      Document.of(Document.object(#"["\#(long)"]"#, "{}"), Document.object(#"["\#(long)","q\#(long)"]"#, "{}")),
      Document.of(Document.object(#"["a"]"#, #"{"x":[[[]]]}"#)),
      Document.of(Document.object(#"["a"]"#, #"{"x":[[\#(reference)]]}"#)),
      Document.of(Document.object(#"["a"]"#, #"{"x":[\#(reference),\#(reference)]}"#)),
    ]
    for (index, document) in passing.enumerated() { try tool.importDocument(document, into: "ok\(index)") }
    let failing: [(String, String)] = [
      ("stateBytesMax", Document.of(Document.object(#"["a"]"#, #"{"x":"\#(fits)y"}"#))),
      (
        "objectsPerApplicationMax",
        Document.of(
          Document.object(#"["a"]"#, "{}"),
          Document.object(#"["b"]"#, "{}"),
          Document.object(#"["c"]"#, "{}"),
          Document.object(#"["d"]"#, "{}")
        )
      ),
      (
        "pathBytesMax",
        Document.of(Document.object(#"["\#(long)"]"#, "{}"), Document.object(#"["\#(long)","qq\#(long)"]"#, "{}"))
      ),
      ("stateDepthMax", Document.of(Document.object(#"["a"]"#, #"{"x":[[[[]]]]}"#))),
      (
        "referencesPerStateMax",
        Document.of(Document.object(#"["a"]"#, #"{"x":[\#(reference),\#(reference),\#(reference)]}"#))
      ),
    ]
    for (limit, document) in failing {
      let failure = try tool.fail("importArchive", tool.importing(document, into: "no"))
      #expect(failure.kind == "limitExceeded")
      #expect(failure.data["limit"]?.string == limit)
      let max: Int64 = failure.data["max"]?.integer ?? 0
      #expect(failure.data["value"]?.integer == max + 1)
    }
    #expect(driver.archives["no"] == nil)
  }

  @Test func theArchiveLimitCountsWhatStaysReachable() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let driver = CoreDriver(limits: limits)
    let tool = driver.connect()
    func document(_ bytes: Int) -> String {
      Document.of(Document.object(#"["a"]"#, #"{"x":"\#(String(repeating: "y", count: bytes - 8))"}"#))
    }
    #expect(try tool.fail("importArchive", tool.importing(document(64 << 10 + 1), into: "App")).kind == "limitExceeded")
    #expect(driver.archives["App"] == nil)
    try tool.importDocument(document(40 << 10), into: "App")
    let failure = try tool.fail("importArchive", tool.importing(document(24 << 10 + 1), into: "App", #""force":true"#))
    #expect(failure.data["limit"] == "archiveBytesMax")
    try tool.importDocument(document(24 << 10), into: "App", #""force":true"#)
    driver.inspect()
  }

  @Test func anUploadIsCountedForWhatItsPathsTakeInMemory() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let driver = CoreDriver(limits: limits)
    let tool = driver.connect()
    func document(_ depth: Int) -> String {
      let objects = (1...depth).map { depth in
        Document.object("[" + Array(repeating: #""a""#, count: depth).joined(separator: ",") + "]", "{}")
      }
      return Document.of(objects.joined(separator: ","))
    }
    try tool.importDocument(document(20), into: "App")
    #expect(document(100).utf8.count + 100 * 512 < 128 << 10)
    let failure = try tool.fail("importArchive", tool.importing(document(100), into: "Other"))
    #expect(failure.data["limit"] == "archiveBytesMax", "\(failure)")
  }

  // MARK: What is there

  @Test func stateThatIsThereNeedsForceAndStaysAsTheNewestGeneration() throws {
    let tool = driver.connect()
    try tool.encode(#"["Old"]"#, #"{"x":1}"#, #""application":"App""#)
    let before = try tool.export("App")
    let document = Document.of(Document.object(#"["New"]"#, #"{"y":2}"#))
    #expect(try tool.fail("importArchive", tool.importing(document, into: "App")).kind == "needsForce")
    #expect(try tool.export("App") == before)
    #expect(try tool.importDocument(document, into: "App", #""force":true"#)["generation"] == 1)
    #expect(try tool.export("App", #""generation":1"#) == before)
    #expect(try tool.paths(#""application":"App""#) == ["New"])
    let kinds = try tool.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array
    #expect(kinds?.map { $0["kind"]?.string } == ["import"])
    // A head that equals the newest generation is not sealed again.
    let again = try tool.importDocument(document, into: "App", #""force":true"#)
    #expect(again["generation"] == 2)
    driver.inspect()
  }

  @Test func whatNoWalkReachesStaysAsWell() throws {
    let tool = driver.connect(pid: 7)
    let written = Document.writer
    let document = Document.of(
      Document.object(#"["A"]"#, "{}"),
      #"{"path":["Alone"],"kind":"view","state":{"x":1},\#(written)}"#
    )
    let empty = Document.of()
    try tool.importDocument(document, into: "App")
    let before = try tool.export("App")
    try tool.importDocument(empty, into: "App", #""force":true"#)
    #expect(try tool.export("App", #""generation":1"#) == before)
    // Even if the head has not changed since a generation that left something out.
    try tool.importDocument(document, into: "App", #""force":true"#)
    let peer = driver.connect()
    try peer.initialize()
    try peer.goodbye("restart")
    let startup = try tool.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array?.last
    #expect(startup?["kind"] == "startup" && startup?["objects"] == 1)
    let former = try tool.importDocument(empty, into: "App", #""force":true"#)["generation"]?.integer
    #expect(try tool.export("App", #""generation":\#(former ?? 0)"#) == before)
    driver.inspect()
  }

  @Test func subscribersAreToldOfAnImport() throws {
    let watcher = driver.connect(pid: 9)
    try watcher.call("subscribe", #"{"events":["archiveImported","generationSealed"]}"#)
    let tool = driver.connect()
    let document = Document.of(Document.object(#"["A"]"#, #"{"x":1}"#))
    try tool.importDocument(document, into: "App")
    _ = try tool.fail("importArchive", tool.importing(document, into: "App"))
    try tool.importDocument(document, into: "App", #""force":true"#)
    let events = watcher.takeNotifications("event")
    #expect(events.map { $0["name"]?.string } == ["archiveImported", "generationSealed", "archiveImported"])
    #expect(events.first?["objects"] == 1 && events.first?["bytes"] == 7)
  }

  @Test func anApplicationInUseIsLeftAlone() throws {
    let tool = driver.connect(pid: 7)
    let peer = driver.connect()
    try peer.initialize("App", #""process":"editor""#)
    let document = Document.of(Document.object(#"["New"]"#, "{}"))
    for more in ["", #""force":true"#] {
      let failure = try tool.fail("importArchive", tool.importing(document, into: "App", more))
      #expect(failure.kind == "alreadyServed")
      #expect(failure.data["owners"]?.array?.count == 1)
      #expect(failure.data["owners"]?.array?.first?["process"] == "editor")
    }
    #expect(try peer.fail("importArchive", peer.importing(document, into: "App")).kind == "alreadyServed")
    // One whose process has just ended is not in the way.
    driver.killUnnoticed(peer)
    try tool.importDocument(document, into: "App")
    #expect(try tool.paths(#""application":"App""#) == ["New"])
    driver.inspect()
  }

  @Test func importedObjectsAreClaimedAndRestoredAsOthers() throws {
    let tool = driver.connect(pid: 7)
    try tool.importDocument(
      Document.of(Document.object(#"["A"]"#, #"{"r":{"$restorable":["A"]}}"#), #"{"path":["B"],"kind":"view"}"#),
      into: "App"
    )
    let objects = try tool.objects(#""application":"App""#)
    #expect(objects.allSatisfy { $0["orphaned"] == true && $0["object"]?.isNull == true })
    let peer = driver.connect()
    let opened = try peer.initialize()
    #expect(opened["restoration"]?["reason"] == "launch")
    #expect(opened["restoration"]?["generation"] == 1)
    let handle = try peer.register("A")
    #expect(try peer.state(#"["A"]"#)?["r"]?["object"]?.integer == handle)
    try peer.encode(#"["A"]"#, "{}", #""revision":1"#)
    driver.inspect()
  }

  @Test func importedOrphansAreRetiredAfterNinetyDays() throws {
    let tool = driver.connect(pid: 7)
    let forever = Document.object(#"["C"]"#, "{}", #""keep":"forever""#)
    try tool.importDocument(
      Document.of(Document.object(#"["A"]"#, "{}"), Document.object(#"["B"]"#, "{}"), forever),
      into: "App"
    )
    driver.advance(days: 91)
    let peer = driver.connect()
    try peer.initialize()
    try peer.register("A")
    _ = try peer.state(#"["A"]"#)
    try peer.encode(#"["A"]"#, "{}")
    #expect(try peer.paths() == ["A", "C"])
  }

  // MARK: Parts

  private func part(_ objects: String..., more: String) -> String {
    #"{"application":"App","part":{"format":"restorationd.archive","version":1,"objects":[\#(objects.joined(separator: ","))]}"#
      + (more.isEmpty ? "}" : ",\(more)}")
  }

  @Test func partsMakeOneDocument() throws {
    let tool = driver.connect()
    let first = try tool.call(
      "importArchive",
      part(Document.object(#"["A"]"#, #"{"r":{"$restorable":["B"]}}"#), more: #""more":true,"progressToken":1"#)
    )
    let upload = try #require(first["upload"]?.string)
    #expect(first["objects"] == 1 && first["states"] == 1)
    #expect(driver.archives["App"] == nil)
    #expect(try tool.fail("readArchive", #"{"application":"App"}"#).kind == "unknownApplication")
    try tool.call(
      "importArchive",
      part(#"{"path":["A","I"],"kind":"view"}"#, more: #""more":true,"upload":"\#(upload)""#)
    )
    let last = part(Document.object(#"["B"]"#, "{}"), more: #""upload":"\#(upload)","progressToken":1"#)
    let result = try tool.call("importArchive", last)
    #expect(result["upload"] == nil && result["objects"] == 3 && result["states"] == 2)
    #expect(try tool.paths(#""application":"App""#) == ["A", "A/I", "B"])
    let told = tool.takeNotifications("progress")
    #expect(told.map { $0["done"]?.integer } == [1, 3])
    #expect(told.map { $0["total"]?.integer } == [nil, 3])
    #expect(try tool.fail("importArchive", last).data["pointer"] == "/upload")
    #expect(driver.timerCount == 0)
  }

  @Test func aPartThatIsWrongEndsTheUpload() throws {
    let tool = driver.connect()
    func begin() throws -> String {
      let first = try tool.call("importArchive", part(Document.object(#"["A"]"#, "{}"), more: #""more":true"#))
      return try #require(first["upload"]?.string)
    }
    var upload = try begin()
    let wrong = try tool.fail("importArchive", part(#"{"path":["B"]}"#, more: #""more":true,"upload":"\#(upload)""#))
    #expect(wrong.data["pointer"] == "/document/objects/1/kind")
    let rest = part(Document.object(#"["B"]"#, "{}"), more: #""upload":"\#(upload)""#)
    #expect(try tool.fail("importArchive", rest).data["pointer"] == "/upload")
    upload = try begin()
    // Another application, another connection, another upload, and a minute: all of them are not this upload.
    let other = rest.replacing(#""application":"App""#, with: #""application":"Other""#)
    #expect(try tool.fail("importArchive", other).data["pointer"] == "/upload")
    upload = try begin()
    let valid = part(Document.object(#"["B"]"#, "{}"), more: #""upload":"\#(upload)""#)
    #expect(try driver.connect(pid: 8).fail("importArchive", valid).data["pointer"] == "/upload")
    driver.advance(milliseconds: 61_000)
    #expect(try tool.fail("importArchive", valid).data["pointer"] == "/upload")
    #expect(driver.archives.isEmpty)
    #expect(driver.timerCount == 0)
  }

  @Test func uploadsAreBoundedInAll() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let driver = CoreDriver(limits: limits)
    let large = Document.object(#"["A"]"#, #"{"x":"\#(String(repeating: "y", count: 50_000))"}"#)
    let call = part(large, more: #""more":true"#)
    let first = driver.connect(pid: 1)
    try first.call("importArchive", call)
    try driver.connect(pid: 2).call("importArchive", call)
    #expect(try driver.connect(pid: 3).fail("importArchive", call).data["limit"] == "archiveBytesMax")
    driver.disconnect(first)
    try driver.connect(pid: 4).call("importArchive", call)
  }

  @Test func aFailedTransactionLeavesWhatWasThere() throws {
    let tool = driver.connect()
    try tool.encode(#"["Old"]"#, #"{"x":1}"#, #""application":"App""#)
    let before = try tool.export("App")
    driver.holdsCommits = true
    let document = Document.of(Document.object(#"["New"]"#, "{}"))
    let id = tool.start("importArchive", tool.importing(document, into: "App", #""force":true"#))
    driver.failCommit("App")
    #expect(try tool.failure(of: id).kind == "storeFailed")
    driver.holdsCommits = false
    #expect(try tool.export("App") == before)
    driver.inspect()
  }

  @Test func anArchiveThatDoesNotOpenTakesNothingAndForgetsTheDocument() throws {
    driver.openingFailures["App"] = ArchiveError(.unreadable, "no")
    let tool = driver.connect()
    let document = Document.of(Document.object(#"["New"]"#, "{}"))
    #expect(try tool.fail("importArchive", tool.importing(document, into: "App")).kind == "archiveUnreadable")
    driver.openingFailures["Full"] = ArchiveError(.limit(name: "applicationsMax", max: 1, value: 2), "no")
    #expect(try tool.fail("importArchive", tool.importing(document, into: "Full")).kind == "limitExceeded")
    driver.openingFailures = [:]
    #expect(try tool.importDocument(document, into: "Fine")["objects"] == 1)
  }
}
