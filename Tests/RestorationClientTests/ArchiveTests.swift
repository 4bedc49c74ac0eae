// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport
internal import Testing

/// Calls about whole archives: the messages, how pages and parts are joined and cut, and the progress handlers.
@Suite(.passesTurnstile, .timeLimit(.minutes(2))) struct ArchiveTests {
  private static var limits: String {
    var writer = JSONWriter()
    Limits().writeJSON(to: &writer)
    return JSONText(validated: writer.bytes).string
  }

  private static func tell(_ connection: Connection, _ progress: String) async throws {
    try await connection.onLoop { connection in
      connection.notify(method: "progress", parameters: JSONText(validated: Array(progress.utf8)))
    }
  }

  @Test(.connection) func progressIsToldToWhoAskedForIt() async throws {
    let told = Mutex<[ArchiveProgress]>([])
    let call = Task {
      try await broker.call(VerifyArchive(), of: "a") { progress in told.withLock { $0.append(progress) } }
    }
    let request = try await fake.events.request()
    #expect(request.request.method == "verifyArchive")
    let token = try #require(request.request.parametersText.split(separator: "\"").dropFirst(3).first)
    try await Self.tell(request.connection, #"{"progressToken":"\#(token)","done":1,"total":4,"message":"m"}"#)
    try await Self.tell(request.connection, #"{"progressToken":"another","done":9}"#)
    try await Self.tell(request.connection, #"{"progressToken":"\#(token)","done":4}"#)
    try await request.answer(
      #"{"sound":false,"objects":1,"states":2,"bytes":3,"problems":[{"kind":"state","path":["a"],"message":"m"}],"#
        + #""omitted":2,"milliseconds":5}"#
    )
    let found = try await call.value
    #expect(!found.sound && found.objects == 1 && found.states == 2 && found.bytes == 3)
    #expect(found.problems.map(\.path) == [["a"]] && found.omitted == 2)
    #expect(found.duration == .milliseconds(5))
    let seen = told.withLock { $0 }
    #expect(seen.map(\.done) == [1, 4])
    #expect(seen[0].total == 4 && seen[0].message == "m" && seen[1].total == nil)
  }

  @Test(.connection) func pagesAreJoinedToOneDocumentWithTheirTextsUnchanged() async throws {
    let pages = [
      "": #"{"part":{"format":"f","version":1,"redacted":false,"objects":[{"s":1e400},{"s":-0.0}]},"cursor":"1.2"}"#,
      "1.2": #"{"part":{"format":"f","version":1,"redacted":false,"objects":[{"s":0.1}]}}"#,
    ]
    let sent = Mutex<[String]>([])
    fake.answers { request in
      sent.withLock { $0.append(request.parametersText) }
      guard case .named(let parameters) = request.parameters else { return nil }
      return pages[parameters["cursor"]?.string() ?? ""].map { .text($0) }
    }
    let document = try await broker.exportArchive(of: "a", generation: 3, reveal: true)
    #expect(
      document == """
        {"format":"f","version":1,"redacted":false,"objects":[
        {"s":1e400},
        {"s":-0.0},
        {"s":0.1}
        ]}

        """
    )
    #expect(
      sent.withLock { $0 } == [
        #"{"generation":3,"reveal":true,"application":"a"}"#,
        #"{"generation":3,"cursor":"1.2","reveal":true,"application":"a"}"#,
      ]
    )
  }

  @Test(.connection) func anEmptyDocumentIsOneToo() async throws {
    let page = #"{"part":{"format":"f","version":1,"redacted":false,"objects":[]}}"#
    fake.answers { _ in .text(page) }
    #expect(try await broker.exportArchive() == #"{"format":"f","version":1,"redacted":false,"objects":["# + "\n]}\n")
  }

  @Test(.connection) func aSmallDocumentIsSentWhole() async throws {
    let sent = Mutex<[String]>([])
    let limits = Self.limits
    fake.answers { request in
      if request.method == "limits" { return .text(limits) }
      sent.withLock { $0.append(request.parametersText) }
      return .text(#"{"objects":1,"states":1,"bytes":2,"generation":4}"#)
    }
    let imported = try await broker.importArchive(#"{"objects": [ {"s":1e400} ]}"#, into: "a", force: true)
    #expect(imported.objects == 1 && imported.generation == 4)
    #expect(sent.withLock { $0 } == [#"{"document":{"objects":[{"s":1e400}]},"force":true,"application":"a"}"#])
  }

  /// By bytes and by values: the broker would skip no part.
  @Test(.connection, arguments: [(40, 100_000, 1), (3_000, 1, 90)])
  func aLargeDocumentIsCutIntoParts(_ count: Int, _ bytes: Int, _ values: Int) async throws {
    let object =
      #"{"s":"\#(String(repeating: "x", count: bytes))","v":[\#(Array(repeating: "1", count: values).joined(separator: ","))]}"#
    let parts = Mutex<[(count: Int, bytes: Int, upload: String?, more: Bool)]>([])
    let limits = Self.limits
    fake.answers { request in
      if request.method == "limits" { return .text(limits) }
      guard case .named(let parameters) = request.parameters else { return nil }
      let objects = parameters["part"]?["objects"]?.elements?.count ?? 0
      let more = parameters["more"]?.bool() ?? false
      let upload = parameters["upload"]?.string()
      parts.withLock { $0.append((objects, request.parametersText.utf8.count, upload, more)) }
      return .text(#"{\#(more ? #""upload":"u","# : "")"objects":1,"states":1,"bytes":2}"#)
    }
    let text = #"{"format":"f","objects":[\#(Array(repeating: object, count: count).joined(separator: ","))],"x":1}"#
    _ = try await broker.importArchive(text)
    let sent = parts.withLock { $0 }
    #expect(sent.count > 3)
    #expect(sent.reduce(0) { $0 + $1.count } == count)
    #expect(sent.allSatisfy { $0.bytes < 2 << 20 })
    #expect(sent.first?.upload == nil && sent.dropFirst().allSatisfy { $0.upload == "u" })
    #expect(sent.dropLast().allSatisfy(\.more) && sent.last?.more == false)
  }

  @Test(.connection) func textThatIsNoJSONIsNotSent() async throws {
    let limits = Self.limits
    fake.answers { _ in .text(limits) }
    let error = await thrownError { _ = try await broker.importArchive(#"{"objects":["#) }
    #expect((error as? RestorationError)?.code == .parseError)
  }

  @Test(.connection) func copiesSayWhereTheyAre() async throws {
    fake.answers { request in
      let isFile = request.parametersText.contains("/x")
      return .text(#"{"to":\#(isFile ? #""/x""# : "null"),"bytes":7,"milliseconds":1}"#)
    }
    #expect(try await broker.call(BackupArchive(to: "/x"), of: "a").to == "/x")
    let own = try await broker.call(BackupArchive(), of: "a")
    #expect(own.to == nil && own.bytes == 7)
  }
}
