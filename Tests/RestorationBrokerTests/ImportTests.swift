// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import TestSupport
internal import Testing

/// Limits of imports, and what an import leaves if it fails.
@Suite struct ImportTests {
  let broker = MemoryBroker()

  /// Otherwise everybody would wait when a client leaves, or an import ends: there may be millions of components.
  @Test func anUploadOfLongPathsIsLetGoOfAsFastAsOneOfShortPaths() throws {
    /// Nanoseconds of this thread that it takes when the client of an upload with such paths leaves.
    func nanoseconds(components: Int) throws -> Int64 {
      let tool = broker.connect()
      let above = String(repeating: #""n","#, count: components - 1)
      var upload = ""
      for part in 0..<20 {
        let objects = (0..<20).map { Document.object("[\(above)\"o\(part)-\($0)\"]", "{}") }.joined(separator: ",")
        let document = #"{"format":"restorationd.archive","version":1,"objects":[\#(objects)]}"#
        let more = #""more":true\#(upload)"#
        let call = tool.start("importArchive", #"{"application":"App","part":\#(document),\#(more)}"#)
        tool.connection.wait { tool.hasAnswer(call) }
        upload = #","upload":"\#(try tool.result(of: call)["upload"]?.string ?? "")""#
      }
      let begin = ThreadTime.now
      broker.disconnect(tool)
      return ThreadTime.now - begin
    }
    var quotient = Double.infinity
    for _ in 1...3 where quotient >= 4 {
      let short = try nanoseconds(components: 2)
      quotient = min(quotient, Double(try nanoseconds(components: 1_500)) / Double(short))
    }
    #expect(quotient < 4)
  }

  @Test func limitsAreHitExactlyAtTheirBorder() throws {
    var limits = Limits()
    limits.stateBytesMax = 1_024
    limits.objectsPerApplicationMax = 3
    limits.pathBytesMax = 256
    limits.stateDepthMax = 4
    limits.referencesPerStateMax = 2
    let broker = MemoryBroker(limits: limits)
    let tool = broker.connect()
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
    #expect(broker.disk.archive("no") == nil)
  }

  @Test func theArchiveLimitCountsTheHeadThatAnImportMakes() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let broker = MemoryBroker(limits: limits)
    let tool = broker.connect()
    func document(_ bytes: Int) -> String {
      Document.of(Document.object(#"["a"]"#, #"{"x":"\#(String(repeating: "y", count: bytes - 8))"}"#))
    }
    #expect(try tool.fail("importArchive", tool.importing(document(64 << 10 + 1), into: "App")).kind == "limitExceeded")
    #expect(broker.disk.archive("App") == nil)
    try tool.importDocument(document(40 << 10), into: "App")
    let failure = try tool.fail("importArchive", tool.importing(document(64 << 10), into: "App", #""force":true"#))
    #expect(failure.data["limit"] == "archiveBytesMax")
    try tool.importDocument(document(60 << 10), into: "App", #""force":true"#)
    broker.inspect()
  }

  @Test func anUploadIsCountedForWhatItsPathsTakeInMemory() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let broker = MemoryBroker(limits: limits)
    let tool = broker.connect()
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

  @Test func aSessionWhoseProcessHasJustEndedIsNotInTheWay() throws {
    let peer = broker.connect()
    try peer.initialize()
    broker.killUnnoticed(peer)
    let tool = broker.connect(pid: 7)
    try tool.importDocument(Document.of(Document.object(#"["New"]"#, "{}")), into: "App")
    #expect(try tool.paths(#""application":"App""#) == ["New"])
    broker.inspect()
  }

  @Test func importedOrphansAreRetiredAfterNinetyDaysAndTwentyRestorations() throws {
    let tool = broker.connect(pid: 7)
    let forever = Document.object(#"["C"]"#, "{}", #""keep":"forever""#)
    try tool.importDocument(
      Document.of(Document.object(#"["A"]"#, "{}"), Document.object(#"["B"]"#, "{}"), forever),
      into: "App"
    )
    broker.advance(days: 91)
    var left: [[String]] = []
    for _ in 1...20 {
      let peer = broker.connect()
      try peer.initialize()
      try peer.register("A")
      _ = try peer.state(#"["A"]"#)
      try peer.encode(#"["A"]"#, "{}")
      left.append(try peer.paths())
      try peer.goodbye("restart")
    }
    #expect(left == Array(repeating: ["A", "B", "C"], count: 19) + [["A", "C"]])
  }

  @Test func aDryRunFailsAsAnImportWouldAndChangesNothing() throws {
    let tool = broker.connect(pid: 7)
    let (one, two) = (Document.object(#"["A"]"#, #"{"n":1}"#), Document.object(#"["A"]"#, "{}"))
    func refusal(_ document: String, _ more: String = "") throws -> String {
      try tool.fail("importArchive", tool.importing(document, into: "App", #""dryRun":true\#(more)"#)).kind
    }
    let found = try tool.importDocument(Document.of(one), into: "App", #""dryRun":true"#)
    #expect(try refusal(Document.of(one, two)) == "duplicatePath")
    #expect(broker.removed == ["App"] && broker.disk.archive("App") == nil)
    #expect(try tool.importDocument(Document.of(one), into: "App") == found)
    let before = try tool.export("App")
    #expect(try refusal(Document.of(two)) == "needsForce")
    try tool.importDocument(Document.of(two), into: "App", #""dryRun":true,"force":true"#)
    try broker.connect(pid: 1).initialize()
    #expect(try refusal(Document.of(two), #","force":true"#) == "alreadyServed")
    #expect(try tool.export("App") == before)
    broker.inspect()
  }

  // MARK: Parts

  private func part(_ objects: String..., more: String) -> String {
    #"{"application":"App","part":{"format":"restorationd.archive","version":1,"objects":[\#(objects.joined(separator: ","))]}"#
      + (more.isEmpty ? "}" : ",\(more)}")
  }

  @Test func anUploadEndsAfterAMinute() throws {
    let tool = broker.connect()
    let upload = try #require(
      try tool.call("importArchive", part(Document.object(#"["A"]"#, "{}"), more: #""more":true"#))["upload"]?.string
    )
    broker.advance(milliseconds: 61_000)
    let rest = part(Document.object(#"["B"]"#, "{}"), more: #""upload":"\#(upload)""#)
    #expect(try tool.fail("importArchive", rest).data["pointer"] == "/upload")
    #expect(broker.names.isEmpty)
    #expect(broker.timerCount == 0)
  }

  @Test func uploadsAreBoundedInAll() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let broker = MemoryBroker(limits: limits)
    let large = Document.object(#"["A"]"#, #"{"x":"\#(String(repeating: "y", count: 50_000))"}"#)
    let call = part(large, more: #""more":true"#)
    let first = broker.connect(pid: 1)
    try first.call("importArchive", call)
    try broker.connect(pid: 2).call("importArchive", call)
    #expect(try broker.connect(pid: 3).fail("importArchive", call).data["limit"] == "archiveBytesMax")
    broker.disconnect(first)
    try broker.connect(pid: 4).call("importArchive", call)
  }

  @Test func aFailedTransactionLeavesWhatWasThere() throws {
    let tool = broker.connect()
    try tool.encode(#"["Old"]"#, #"{"x":1}"#, #""application":"App""#)
    let before = try tool.export("App")
    broker.holdsCommits = true
    let document = Document.of(Document.object(#"["New"]"#, "{}"))
    let id = tool.start("importArchive", tool.importing(document, into: "App", #""force":true"#))
    broker.failCommit("App")
    #expect(try tool.failure(of: id).kind == "storeFailed")
    broker.holdsCommits = false
    #expect(try tool.export("App") == before)
    broker.inspect()
  }

  @Test func anArchiveThatDoesNotOpenTakesNothingAndForgetsTheDocument() throws {
    broker.openingFailures["App"] = ArchiveError(.unreadable, "no")
    let tool = broker.connect()
    let document = Document.of(Document.object(#"["New"]"#, "{}"))
    #expect(try tool.fail("importArchive", tool.importing(document, into: "App")).kind == "archiveUnreadable")
    broker.openingFailures["Full"] = ArchiveError(.limit(name: "applicationsMax", max: 1, value: 2), "no")
    #expect(try tool.fail("importArchive", tool.importing(document, into: "Full")).kind == "limitExceeded")
    broker.openingFailures = [:]
    #expect(try tool.importDocument(document, into: "Fine")["objects"] == 1)
  }

  // MARK: Pieces

  /// Takes longer than what is done at once; each state refers to another object, and the last one to the first.
  private var large: String {
    let count = 1_000
    return (1...count).map { number in
      Document.object(#"["n\#(number)"]"#, #"{"next":{"$restorable":["n\#(number % count + 1)"]}}"#)
    }.joined(separator: ",")
  }

  private func startLarge(_ tool: Peer, _ more: String = "") -> Int {
    tool.start("importArchive", tool.importing(Document.of(large), into: "App", more))
  }

  @Test func othersAreServedWhileALargeDocumentIsRead() throws {
    let (tool, other) = (broker.connect(), broker.connect(pid: 7))
    let id = startLarge(tool)
    #expect(!tool.hasAnswer(id))
    try other.encode(#"["A"]"#, "{}", #""application":"Other""#)
    #expect(broker.names == ["Other"])
    broker.advance(milliseconds: 100)
    #expect(try tool.result(of: id)["objects"] == 1_000)
    broker.inspect()
  }

  @Test func messagesBehindALargePartWait() throws {
    let tool = broker.connect()
    let first = tool.start("importArchive", part(large, more: #""more":true"#))
    let ping = tool.start("ping")
    #expect(tool.unanswered == [first, ping])
    broker.advance(milliseconds: 100)
    #expect(tool.answered == [first, ping])
    let upload = try #require(try tool.result(of: first)["upload"]?.string)
    let rest = part(Document.object(#"["B"]"#, #"{"b":{"$restorable":["n7"]}}"#), more: #""upload":"\#(upload)""#)
    let last = tool.start("importArchive", rest)
    broker.advance(milliseconds: 100)
    #expect(try tool.result(of: last)["objects"] == 1_001)
    #expect(try tool.call("statistics")["counters"]?["requests"] == 4)
    broker.inspect()
  }

  @Test func aLargeImportCanBeCancelled() throws {
    let tool = broker.connect()
    let id = startLarge(tool)
    tool.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    broker.advance(milliseconds: 2)
    #expect(try tool.failure(of: id).kind == "requestCancelled")
    #expect(broker.names.isEmpty)
    #expect(broker.timerCount == 0)
    #expect(try tool.importDocument(Document.of(Document.object(#"["A"]"#, "{}")), into: "App")["objects"] == 1)
  }

  @Test func aLargeImportEndsWithItsConnection() throws {
    let tool = broker.connect()
    let id = startLarge(tool)
    #expect(!tool.hasAnswer(id))
    broker.disconnect(tool)
    broker.advance(milliseconds: 100)
    #expect(broker.names.isEmpty)
    #expect(broker.timerCount == 0)
  }

  @Test func aLargeImportIsRefusedWhenTheBrokerEnds() throws {
    let tool = broker.connect()
    let id = startLarge(tool)
    broker.saveBeforeEnd()
    #expect(try tool.failure(of: id).kind == "shuttingDown")
    #expect(broker.names.isEmpty)
    #expect(broker.timerCount == 0)
  }

  @Test func objectsMayComeWhileALargeDocumentIsRead() throws {
    let (tool, other) = (broker.connect(), broker.connect(pid: 7))
    try other.encode(#"["A"]"#, "{}", #""application":"App""#)
    let id = startLarge(tool, #""force":true"#)
    for number in 1...100 where !tool.hasAnswer(id) {
      try other.encode(#"["B\#(number)"]"#, "{}", #""application":"App""#)
      broker.advance(milliseconds: 1)
    }
    #expect(try tool.result(of: id)["objects"] == 1_000)
    try tool.importDocument(Document.of(large), into: "Copy")
    #expect(try tool.export("App") == tool.export("Copy"))
    #expect(try tool.call("verifyArchive", #"{"application":"App"}"#)["sound"] == true)
    broker.inspect()
  }

  @Test func anImportThatWasCancelledWhileItsArchiveOpenedIsForgotten() throws {
    broker.holdsOpenings = true
    let tool = broker.connect()
    let old = Document.of(Document.object(#"["Old"]"#, "{}"))
    let id = tool.start("importArchive", tool.importing(old, into: "App"))
    tool.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    broker.openHeld()
    #expect(try tool.failure(of: id).kind == "requestCancelled")
    try tool.importDocument(Document.of(Document.object(#"["New"]"#, "{}")), into: "App")
    #expect(try tool.paths(#""application":"App""#) == ["New"])
  }
}
