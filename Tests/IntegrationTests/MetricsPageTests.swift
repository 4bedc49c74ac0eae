// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The metrics by a GET on the broker's socket.
@Suite struct MetricsPageTests {
  private static let application = "org.example.Notes"
  private static let mediaType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

  private static func request(_ line: String, _ headers: String..., body: String = "") -> String {
    ([line + " HTTP/1.1", "Host: x"] + headers).joined(separator: "\r\n") + "\r\n\r\n" + body
  }

  private static func get(_ target: String, from client: FramedClient) throws -> FramedClient.Reply? {
    try client.send(bytes: Array(request("GET \(target)").utf8))
    return try client.receive()
  }

  /// Without what differs from one moment to the next.
  private static func steady(_ text: String) -> [String] {
    text.split(separator: "\n").map(String.init).filter { line in
      line.hasPrefix("#") || !line.contains(/_(uptime|conn|loop|commit|requests|open_archives|timers|files|cached)/)
    }
  }

  @Test(
    .broker,
    .enabled(if: PythonPackages.areUsable("prometheus_client"), Comment(rawValue: PythonPackages.requirement))
  )
  func curlGetsWhatTheCommandPrints() throws {
    try broker.connect().encode("A", state: ["a": 1], of: Self.application)
    for (page, arguments) in [("/metrics", []), ("/metrics/applications", ["--applications"])] {
      let command = ["curl", "-sS", "--fail", "--unix-socket", broker.socket, "http://broker\(page)"]
      let result = try ChildProcess.run(command)
      #expect(result.end == .exit(0), "\(result.errors)")
      let families = try MetricFamily.all(in: result.output)
      #expect(families["restorationd_up"]?.samples.map(\.value) == [1])
      #expect(families["restorationd_encodes"]?.samples.map(\.value) == [1])
      let printed = try ControlTool.run(["metrics"] + arguments, status: 0).output
      #expect(Self.steady(result.output) == Self.steady(printed))
      #expect(result.output.contains("application=\"\(Self.application)\"") == !arguments.isEmpty)
    }
  }

  @Test(.broker, .enabled(if: Products.isOptimised, "is about the release programs of Tests/run.sh"))
  func whoAsksOnceASecondTakesAtMostAHundredthOfAProcessorWith50Clients() throws {
    for number in 0..<50 {
      let client = try broker.session("\(Self.application)\(number % 5)", process: "\(number)")
      try client.call("encodeRestorableState", ["object": .path("O\(number)"), "state": ["a": 1]])
    }
    let status = ProcessStatus(try broker.pid)
    let client = try FramedClient(broker.socket, .http)
    let before = try status.processorNanoseconds
    for _ in 1...50 { #expect(try Self.get("/metrics/applications", from: client)?.status == 200) }
    let each = (try status.processorNanoseconds - before) / 50
    #expect(each <= 10_000_000, "\(each) ns")
    print("a page of metrics takes \(each / 1000) µs of a processor")
  }

  @Test(.broker) func aConnectionServesPagesAndMessagesInOrder() throws {
    let client = try FramedClient(broker.socket, .http)
    let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
    let requests = [
      Self.request("GET /metrics"), String(decoding: FramedClient.Framing.http.frame(ping), as: UTF8.self),
      Self.request("GET http://broker/metrics?x=/y", "Content-Length: 2", body: "{}"), Self.request("GET /metrics"),
    ]
    try client.send(bytes: Array(requests.joined().utf8))
    for isPage in [true, false, true, true] {
      let reply = try #require(try client.receive())
      #expect(reply.status == 200)
      #expect(reply.headers["Content-Type"] == (isPage ? Self.mediaType : "application/json"))
      #expect(reply.text.hasSuffix(isPage ? "\n# EOF\n" : #""result":{}}"#), "\(reply.text)")
    }
  }

  @Test(.broker) func aPageIsAnsweredAfterTheClientHasEndedItsRequests() throws {
    let client = try FramedClient(broker.socket, .http)
    try client.send(bytes: Array((Self.request("GET /metrics") + Self.request("GET /metrics")).utf8))
    client.halfClose()
    #expect(try client.receiveToEnd().map(\.status) == [200, 200])
  }

  @Test(.broker) func aResponseToHEADIsThatToGETWithoutItsBody() throws {
    let client = try broker.connect()
    try client.send(Self.request("HEAD /metrics", "Connection: close"))
    let response = try client.receiveToEnd().joined(separator: "\n")
    #expect(response.hasPrefix("HTTP/1.1 200 OK"))
    #expect(response.contains("Content-Type: \(Self.mediaType)") && response.contains(/Content-Length: [1-9]/))
    #expect(!response.contains("# EOF"), "\(response)")
  }

  @Test(.broker, arguments: ["GET /metric", "GET /metrics/", "GET /", "PUT /metrics", "OPTIONS /metrics/applications"])
  func whatIsNoPageIsRefusedAndSaysWhatIsAllowed(_ line: String) throws {
    let client = try FramedClient(broker.socket, .http)
    try client.send(bytes: Array(Self.request(line).utf8))
    let reply = try #require(try client.receive())
    #expect(reply.status == 405)
    #expect(reply.headers["Allow"] == (line.hasPrefix("GET") ? "POST" : "GET, HEAD, POST"))
    #expect(try client.receive() == nil)
  }

  /// A sandbox sees what `statistics` and `listApplications` show it.
  @Test(.broker) func aClientInASandboxGetsWhatItsApplicationsAreDoing() throws {
    let host = try broker.connect()
    for name in [Self.application, "org.example.Other"] { try host.encode("A", state: [:], of: name) }
    let opened = try host.call("openApplicationSocket", ["application": .string(Self.application)])
    let socket = try #require(opened["socket"]?.string)
    let client = try FramedClient(socket, .http)
    let text = try #require(try Self.get("/metrics/applications", from: client)).text
    #expect(text.contains("\nrestorationd_applications 1\n") && text.contains("application=\"\(Self.application)\""))
    #expect(!text.contains("org.example.Other") && !text.contains(/_(total|bucket)/))
    let printed = try ControlTool.run(["--socket", socket, "metrics", "--applications"], status: 0).output
    #expect(Self.steady(text) == Self.steady(printed))
  }
}
