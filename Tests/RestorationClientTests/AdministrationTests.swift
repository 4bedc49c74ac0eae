// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import Testing

/// Calls of tools: lists, pages, figures, and any call as text.
@Suite(.timeLimit(.minutes(2))) struct AdministrationTests {
  private static func saved(_ name: String) -> String {
    #"{"object":null,"path":["\#(name)"],"kind":"view","objectClass":["A","B"],"process":"p","orphaned":true,"#
      + #""status":"available","state":{"a":1},"coder":{"UIApplicationStateRestorationTimestampKey":"#
      + #""2026-02-28T09:05:00.042Z"},"bytes":7,"modified":"2026-02-28T09:05:00.042Z","confidential":true,"#
      + #""redacted":false}"#
  }

  private static func described(_ name: String) -> String {
    #"{"node":2,"parent":1,"object":3,"path":["\#(name)"],"kind":"object","objectClass":"A","process":null,"pid":12,"#
      + #""included":true,"orphaned":false,"bytes":7,"modified":"2026-02-28T09:05:00.042Z","revision":4,"#
      + #""confidential":true}"#
  }

  /// Answers by the cursor of a call.
  private static func paged(_ pages: [String: String]) -> FakeBroker.Answer {
    { request in
      guard case .named(let parameters) = request.parameters else { return nil }
      return pages[parameters["cursor"]?.string() ?? ""].map { .text($0) }
    }
  }

  @Test(.connection) func anArchiveIsReadPageByPage() async throws {
    let pages = [
      "": #"{"generation":3,"objects":[\#(Self.saved("A")),\#(Self.saved("B"))],"cursor":"2"}"#,
      "2": #"{"generation":3,"objects":[],"cursor":"3"}"#,
      "3": #"{"generation":3,"objects":[\#(Self.saved("C"))]}"#,
    ]
    fake.answers(Self.paged(pages))
    let archive = broker.readArchive(of: "a", generation: 3, reveal: true)
    for _ in 0..<2 {
      var paths: [IdentifierPath] = []
      for try await object in archive {
        paths.append(object.path)
        #expect(object.kind == .view)
        #expect(object.classes == ["A", "B"])
        #expect(object.state?.jsonText == #"{"a":1}"#)
        #expect(object.modified?.milliseconds == 1_772_269_500_042)
        #expect(object.confidential && !object.redacted && object.orphaned)
      }
      #expect(paths == [["A"], ["B"], ["C"]])
    }
  }

  @Test(.connection) func aQuarantineReportHasTheObjectsOfAllPages() async throws {
    let states = #"[{"sequence":5,"quarantined":"2026-02-28T09:05:00.042Z","state":{"a":1},"coder":null}]"#
    let facts = #""strikes":1,"confidential":true,"redacted":false"#
    let pages = [
      "": #"{"archive":"2026-02-28T09:05:00.042Z","strikes":2,"objects":[{"object":null,"path":["A"],"#
        + #""standing":"quarantined",\#(facts),"states":\#(states)}],"cursor":"x"}"#,
      "x": #"{"archive":null,"strikes":0,"objects":[{"object":3,"path":null,"standing":"suspect",\#(facts),"#
        + #""states":[]}]}"#,
    ]
    fake.answers(Self.paged(pages))
    let report = try await broker.listQuarantine(of: "a", reveal: true)
    #expect(report.archive?.milliseconds == 1_772_269_500_042)
    #expect(report.strikes == 2)
    #expect(report.objects.map(\.standing) == [.quarantined, .suspect])
    #expect(report.objects.map(\.path) == [["A"], nil])
    #expect(report.objects[0].states.first?.state?.jsonText == #"{"a":1}"#)
    #expect(report.objects[0].confidential && report.objects[0].strikes == 1)
  }

  @Test(.connection) func releasingTellsHowManyStatesWereWithheld() async throws {
    let answer: FakeBroker.Answer = { request in
      guard case .named(let parameters) = request.parameters else { return nil }
      return .text(parameters["path"] == nil ? #"{"released":7}"# : #"{"released":1}"#)
    }
    fake.answers(answer)
    #expect(try await broker.call(ReleaseQuarantine(), of: "a").released == 7)
    #expect(try await broker.call(ReleaseQuarantine(path: ["A"]), of: "a").released == 1)
  }

  @Test(.connection) func anErrorEndsTheReadingOfAnArchive() async throws {
    fake.answers { _ in .error(.restoration(.archiveUnreadable, "m", hint: "h")) }
    let error = await thrownError {
      for try await _ in broker.readArchive(of: "a") {}
    }
    #expect((error as? RestorationError)?.code == .archiveUnreadable)
  }

  @Test(.connection) func aDescriptionHasTheObjectsOfAllPages() async throws {
    let head = #""application":"a","archive":"u","generation":2,"sequence":9,"#
    let session = #"{"process":"editor","pid":12,"delegate":true,"serves":["pathChanged"]}"#
    let pages = [
      "": #"{\#(head)"sessions":[\#(session)],"objects":[\#(Self.described("A"))],"cursor":"x"}"#,
      "x": #"{\#(head)"sessions":[],"objects":[\#(Self.described("B"))]}"#,
    ]
    fake.answers(Self.paged(pages))
    let description = try await broker.describeApplication("a")
    #expect(description.application.description == "a")
    #expect(description.archive == "u")
    #expect(description.generation == 2)
    #expect(description.sequence == 9)
    #expect(description.sessions.map(\.serves) == [[.pathChanged]])
    #expect(description.sessions.first?.delegate == true)
    #expect(description.objects.map(\.path) == [["A"], ["B"]])
    #expect(description.objects.first?.pid == 12)
    #expect(description.objects.first?.node == 2)
    #expect(description.objects.first?.parent == 1)
    #expect(description.objects.first?.revision == 4)
    #expect(description.objects.first?.confidential == true)
  }

  @Test(.connection) func listsAndFiguresAreRead() async throws {
    let results = [
      "listApplications":
        #"{"applications":[{"application":"a","sessions":1,"objects":2,"generation":null,"bytes":3,"#
        + #""state":"available","restoreAtLogin":"never","units":["a.service"]}]}"#,
      "listGenerations":
        #"{"generations":[{"generation":1,"kind":"startup","committed":"2026-02-28T09:05:00.042Z","objects":2,"#
        + #""bytes":3,"pinned":true}]}"#,
      "statistics":
        #"{"broker":{"name":"restorationd","version":"1"},"pid":5,"uptimeMilliseconds":1500,"#
        + #""counters":{"encodes":4},"gauges":{"sessions":1}}"#,
      "limits": {
        var writer = JSONWriter()
        Limits().writeJSON(to: &writer)
        return JSONText(validated: writer.bytes).string
      }(),
      "ping": "{}",
    ]
    fake.answers { results[$0.method].map { .text($0) } }
    let application = try #require(try await broker.call(ListApplications()).applications.first)
    #expect(application.application.description == "a" && application.sessions == 1 && application.objects == 2)
    #expect(application.generation == nil && application.bytes == 3 && application.state == .available)
    #expect(application.restoreAtLogin == .never && application.units == ["a.service"])
    let generation = try #require(try await broker.call(ListGenerations(), of: "a").generations.first)
    #expect(generation.generation == 1 && generation.kind == "startup" && generation.pinned)
    let statistics = try await broker.call(ReportStatistics())
    #expect(statistics.uptime == .milliseconds(1_500))
    #expect(statistics.counters == ["encodes": 4] && statistics.gauges == ["sessions": 1])
    #expect(try await broker.call(ReportLimits()).frameBytesMax == 4 << 20)
    try await broker.call(Ping())
  }

  @Test(.connection) func anyCallTakesAndGivesText() async throws {
    fake.answers { .text($0.parametersText.isEmpty ? "null" : $0.parametersText) }
    #expect(try await broker.call("x") == "null")
    #expect(try await broker.call("x", #" { "b" : 1e400, "a" : "é\u00e9" } "#) == #"{"b":1e400,"a":"é\u00e9"}"#)
    for (text, code) in [("{", ErrorCode.parseError), ("1", .invalidParams)] {
      let error = await thrownError { try await broker.call("x", text) } as? RestorationError
      #expect(error?.code == code)
    }
  }

  @Test func textIsLaidOutWithoutChangingItsValues() throws {
    let text = #"{"a":[1e400,0.10],"b":{},"c":"é"}"#
    let pretty = try JSONLayout.pretty.format(text)
    #expect(pretty == "{\n  \"a\": [\n    1e400,\n    0.10\n  ],\n  \"b\": {},\n  \"c\": \"é\"\n}")
    #expect(try JSONLayout.compact.format(pretty) == text)
  }
}
