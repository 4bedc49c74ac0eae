// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationWire
internal import TestSupport
internal import Testing

/// `restorationctl inspect --live`, running.
private struct LivePage {
  struct Response {
    let status: Int
    let head: String
    let body: String

    /// The data of a page.
    var json: JSONValue { get throws { try JSONCodec.parse(Array(body.utf8)) } }
  }

  let tool: ChildProcess
  let address: String
  let host: String
  let port: UInt16
  /// The path of the page, with its token.
  let path: String

  /// Starts it, and waits until it has said where the page is.
  init(_ arguments: [String] = []) throws {
    tool = try ChildProcess(
      [Products.control, "inspect", "--live"] + arguments,
      environment: ControlTool.environment(),
      errors: broker.directory.file("live")
    )
    guard let line = try tool.output?.next() else {
      throw TestFailure(try Files.text(broker.directory.file("live")))
    }
    address = line
    let parts = try #require(address.wholeMatch(of: /http:\/\/(127\.[0-9.]+):([0-9]+)(\/[0-9a-f]{32}\/)/))
    (host, port, path) = (String(parts.1), try #require(UInt16(parts.2)), String(parts.3))
  }

  /// A connection to its port; `nil` if nothing listens there.
  ///
  /// - Parameter host: another address than the page's.
  func connected(to host: String? = nil) throws -> FileDescriptor? {
    try FileDescriptor.connected(to: host ?? self.host, port: port)
  }

  func connect() throws -> FileDescriptor { try #require(try connected()) }

  /// Sends the lines of a request; its response comes later.
  func send(_ lines: [String]) throws -> LineReader {
    let connection = try connect()
    try connection.write(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
    return LineReader(connection)
  }

  func response(_ reader: LineReader) throws -> Response {
    let text = try reader.rest()
    let end = try #require(text.firstRange(of: "\r\n\r\n"))
    let head = String(text[..<end.lowerBound])
    let status = try #require(head.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    return Response(status: status, head: head, body: String(text[end.upperBound...]))
  }

  func get(_ path: String? = nil, _ headers: [String] = []) throws -> Response {
    try response(try send(["GET \(path ?? self.path) HTTP/1.1", "Host: \(host):\(port)"] + headers))
  }

  /// Begins to wait for what differs from these data.
  func wait(after data: JSONValue) throws -> LineReader {
    try send(["GET \(path)changes/\(data["made"]?.string ?? "") HTTP/1.1", "Host: \(host):\(port)"])
  }

  /// What the page shows when it is loaded.
  func data() throws -> JSONValue { try get(path + "changes/").json }
}

@Suite(.broker) struct LiveInspectTests {
  private static func state(_ data: JSONValue, _ name: String = "Main") -> String? {
    data["objects"]?.array?.first { $0["path"] == [.string(name)] }?["state"]?.string
  }

  private static func session(_ text: JSONValue = 1) throws -> WireClient {
    let client = try broker.session("a", process: "editor")
    try client.register("Main")
    try client.encode("Main", state: ["n": text])
    return client
  }

  // MARK: what is served

  @Test func thePageIsServedWhereItSays() throws {
    try InspectedPage.fill()
    let live = try LivePage()
    let page = try live.get()
    #expect(page.status == 200 && page.body.hasPrefix("<!DOCTYPE html>"))
    #expect(page.body.contains("TextEditor") && !page.body.contains("hunter2"))
    try InspectedPage.expectHashes(in: page.body, scripts: 2)
    #expect(page.body.contains("form-action 'none'; connect-src 'self'\">"))
    for header in [
      "Content-Type: text/html; charset=utf-8", "Cache-Control: no-store", "X-Content-Type-Options: nosniff",
      "Referrer-Policy: no-referrer", "Cross-Origin-Resource-Policy: same-origin", "Connection: close",
    ] { #expect(page.head.contains("\r\n\(header)"), "\(header)") }
    #expect(page.head.contains(/\r\nContent-Security-Policy: default-src 'none'; .*; frame-ancestors 'none'/))
    #expect(try LivePage(["--reveal"]).get().body.contains("hunter2"))
    let other = try LivePage()
    #expect(other.path != live.path && other.host != live.host)
    // The file stays as it is.
    #expect(!(try InspectedPage.write().contains("connect-src")))
  }

  @Test func inJSONTheAddressIsAMember() throws {
    try InspectedPage.fill()
    let tool = try ChildProcess(
      [Products.control, "inspect", "--live", "--json=short"],
      environment: ControlTool.environment()
    )
    let line = try JSONCodec.parse(Array(try #require(try tool.output?.next()).utf8))
    #expect(line["application"] == "a" && line["address"]?.string?.hasPrefix("http://127.") == true)
    let both = try ControlTool.run(["inspect", "--live", "-o", "page.html"], status: 64)
    #expect(both.errors.contains("Give --live or -o, not both."))
  }

  // MARK: who is refused

  /// A request that differs from that of a reader in one thing.
  private struct Request {
    let name: String
    let status: Int
    var method = "GET"
    /// `HOST`, `PORT` and `PATH` stand for those of the page, and `PART` for most of its path.
    var path = "PATH"
    var headers = ["Host: HOST:PORT"]
  }

  private static let host = "Host: HOST:PORT"

  private static let requests = [
    Request(name: "the reader's", status: 200),
    Request(name: "by the name of this machine", status: 403, headers: ["Host: localhost:PORT"]),
    Request(name: "from the address bar", status: 200, headers: [host, "Sec-Fetch-Site: none"]),
    Request(name: "of the page itself", status: 200, headers: [host, "Sec-Fetch-Site: same-origin"]),
    Request(name: "without a token", status: 404, path: "/"),
    Request(name: "with another token", status: 404, path: "/\(String(repeating: "0", count: 32))/"),
    Request(name: "with a part of the token", status: 404, path: "PART/"),
    Request(name: "for changes without a token", status: 404, path: "/changes/x"),
    Request(name: "for something else", status: 404, path: "PATHfavicon.ico"),
    Request(name: "POST", status: 405, method: "POST"),
    Request(name: "HEAD", status: 405, method: "HEAD"),
    Request(name: "OPTIONS", status: 405, method: "OPTIONS"),
    Request(name: "to a name that leads here", status: 403, headers: ["Host: example.org:PORT"]),
    Request(name: "to another address of this machine", status: 403, headers: ["Host: 127.0.0.1:PORT"]),
    Request(name: "to another port", status: 403, headers: ["Host: HOST:1"]),
    Request(name: "to no port", status: 403, headers: ["Host: HOST"]),
    Request(name: "to no host", status: 403, headers: ["X: y"]),
    Request(name: "to two hosts", status: 403, headers: [host, "Host: example.org"]),
    Request(name: "of another site", status: 403, headers: [host, "Sec-Fetch-Site: cross-site"]),
    Request(name: "of another port", status: 403, headers: [host, "Sec-Fetch-Site: same-site"]),
    Request(name: "with a body", status: 400, headers: [host, "Content-Length: 1"]),
    Request(name: "with a body of chunks", status: 400, headers: [host, "Transfer-Encoding: chunked"]),
    Request(
      name: "that is too long",
      status: 431,
      headers: [host, "X: \(String(repeating: "x", count: 9_000))"]
    ),
    Request(name: "that is no HTTP", status: 400, method: "G\u{1}T"),
  ]

  @Test func aRequestIsAnsweredOnlyIfAllOfItIsRight() throws {
    try InspectedPage.fill()
    let live = try LivePage()
    let fill = { (text: String) in
      text.replacing("PATH", with: live.path).replacing("PART", with: live.path.dropLast(2))
        .replacing("Host: HOST", with: "Host: \(live.host)").replacing("PORT", with: "\(live.port)")
    }
    for request in Self.requests {
      let lines = ["\(request.method) \(fill(request.path)) HTTP/1.1"] + request.headers.map(fill)
      let response = try live.response(try live.send(lines))
      #expect(response.status == request.status, "\(request.name)")
      #expect(response.head.contains("\r\nAllow: GET") == (request.status == 405), "\(request.name)")
      #expect(response.head.contains("\r\nContent-Security-Policy: default-src 'none'"), "\(request.name)")
      #expect(response.body.contains("Editor") == (request.status == 200), "\(request.name)")
      #expect(response.body.isEmpty == (request.method == "HEAD"), "\(request.name)")
      #expect(!response.head.contains("Access-Control"), "\(request.name)")
    }
  }

  /// Another page is at another one: what a browser keeps of one it does not give to the next.
  @Test func itListensAtAnAddressOfItsOwnOfThisMachineAlone() throws {
    try InspectedPage.fill()
    let live = try LivePage()
    #expect(live.host != "127.0.0.1")
    for host in ["127.0.0.1", "127.0.0.2"] { #expect(try live.connected(to: host) == nil) }
    let port = ":" + String(live.port, radix: 16, uppercase: true)
    #expect(!(try Files.text("/proc/net/tcp6").contains("\(port) 0000")))
    #expect(try live.get().status == 200)
  }

  /// The oldest of them give way.
  @Test func connectionsThatSendNothingStopNoReader() throws {
    try InspectedPage.fill()
    let live = try LivePage()
    let waiting = try live.wait(after: try live.data())
    let descriptors = ProcessStatus(live.tool.pid).descriptors
    let silent = try (0..<100).map { _ in try live.connect() }
    #expect(try live.get().status == 200)
    // Sooner than all that send nothing are closed.
    try Wait.until("the oldest have given way", Deadline(.seconds(5))) {
      ProcessStatus(live.tool.pid).descriptors < descriptors + 80
    }
    #expect(try silent[0].read(Deadline()) == [])
    // Who waits for a change is not the oldest of those without a request.
    try broker.connect().encode("Late", state: ["n": 7], of: "a")
    #expect(Self.state(try live.response(waiting).json, "Late") == #"{"n":7}"#)
    withExtendedLifetime(silent) {}
  }

  // MARK: following

  @Test func whoWaitsIsToldOfAChangeAndNeverTwiceInHalfASecond() throws {
    let client = try Self.session()
    let live = try LivePage()
    var data = try live.data()
    #expect(Self.state(data) == #"{"n":1}"#)
    var times = [data["made"]?.string.flatMap { Timestamp($0) } ?? Timestamp(milliseconds: 0)]
    for number in 2...4 {
      let waiting = try live.wait(after: data)
      try client.encode("Main", state: ["n": .integer(Int64(number))])
      data = try live.response(waiting).json
      #expect(Self.state(data) == "{\"n\":\(number)}")
      times.append(try #require(data["made"]?.string.flatMap { Timestamp($0) }))
    }
    // The first one was not made for somebody who waited.
    for (former, next) in zip(times.dropFirst(), times.dropFirst(2)) {
      #expect(next.milliseconds - former.milliseconds >= 500)
    }
  }

  // MARK: the end

  @Test(arguments: [SIGINT, SIGTERM]) func itEndsWhenItIsInterrupted(signal: Int32) throws {
    try InspectedPage.fill()
    let live = try LivePage()
    let waiting = try live.wait(after: try live.data())
    live.tool.send(signal: signal)
    #expect(try live.tool.waitForEnd() == .exit(0))
    #expect(try waiting.rest() == "")
    #expect(try live.connected() == nil)
  }

  @Test func itEndsWithTheBroker() throws {
    try InspectedPage.fill()
    let live = try LivePage()
    try broker.kill()
    #expect(try live.tool.waitForEnd() == .exit(69))
    #expect(try Files.text(broker.directory.file("live")).contains("ended or closed the connection"))
    #expect(try live.connected() == nil)
  }

  @Test func itEndsWhenTheReaderOfItsOutputHasGone() throws {
    try InspectedPage.fill()
    let command = "\(Products.control) inspect --live | head -n 1; echo \"${PIPESTATUS[0]}\""
    let result = try ChildProcess.run(["bash", "-c", command], environment: ControlTool.environment())
    #expect(result.output.hasSuffix("/\n74\n"))
  }
}

/// A live page in a browser.
@Suite(.broker, .enabled(if: Browser.isUsable, "chromium is not installed")) struct LivePageTests {
  @Test func thePageFollowsAndWhatWasChosenStays() throws {
    let client = try broker.session("a", process: "editor")
    for window in ["Side", "Main"] {
      try client.register(window)
      for number in 0..<60 { try client.register("Editor\(number)", in: window) }
    }
    let edit = { (number: Int64) in
      _ = try client.encode("Main", "Editor40", state: ["n": .integer(number), "of": ["$restorable": .path("Main")]])
    }
    for number: Int64 in 0...1 {
      try edit(number)
      try client.call("saveApplicationState")
    }
    let live = try LivePage()
    let page = try BrowserPage(in: broker.directory)
    // Its time passes when the test says so.
    let timer = "const timers = []; setInterval = (...timer) => timers.push(timer)"
    try page.open(live.address + "#Main/Editor40", after: timer)
    #expect(try page.run("details.textContent.includes('\"n\": 1')") == true)
    try page.run("toggle(places.get('Side')); slider.value = 0; generation(0); tree.scrollTop = 700")
    let look = "[location.hash, objects[selected].link, tree.scrollTop, rows.length, slider.value, search.value].join()"
    #expect(try page.run(look) == "#Main/Editor40,Main/Editor40,700,62,0,")
    try page.run("details.querySelector('a[href=\"#Main\"]').focus()")
    try edit(2)
    try page.wait(until: "details.textContent.includes('\"n\": 2')")
    try client.register("Late")
    try client.call("saveApplicationState")
    try page.wait(until: "document.getElementById('facts').textContent.startsWith('123 objects') && slider.max === '3'")
    #expect(try page.run(look) == "#Main/Editor40,Main/Editor40,700,63,0,")
    try page.run("search.value = 'editor4'; filter()")
    #expect(try page.run("document.activeElement.hash + details.contains(document.activeElement)") == "#Maintrue")
    try edit(3)
    try page.wait(until: "details.textContent.includes('\"n\": 3')")
    #expect(try page.run("[search.value, rows.length].join()") == "editor4,24")
    #expect(try page.run("timers.map(([tick, milliseconds]) => milliseconds).join()") == "10000")
    let ages = """
      [list.querySelector('[aria-selected=true] .number'), details.querySelector('[data-since]')]
        .map(told => told.textContent).join()
      """
    #expect(try page.run("select(places.get('Main/Editor40')); \(ages)") != "3 h,3 h")
    let later = "const before = Date.now; Date.now = () => before() + 3 * 3600000; timers[0][0](); \(ages)"
    #expect(try page.run(later) == "3 h,3 h")
    live.tool.send(signal: SIGTERM)
    try page.wait(until: "document.querySelector('[role=status]').textContent.startsWith('not live since 20')")
    try page.run("select(places.get('Late'))")
    #expect(try page.run("details.textContent.includes('Late')") == true)
  }

  @Test func namesAndStatesOfAttackersRunNothingInALivePageEither() throws {
    let client = try broker.session("a", process: InspectedPage.attacks[1])
    try InspectedPage.attack(0..<50, by: client)
    let live = try LivePage()
    let body = try live.get().body
    #expect(body.matches(of: /<script/).count == 3 && body.matches(of: /<\/script/).count == 3)
    let page = try BrowserPage(in: broker.directory)
    try page.open(live.address)
    try InspectedPage.attack(50..<100, by: client)
    try page.wait(until: "objects.length === 100")
    let visited = try page.run(
      """
      objects.forEach((object, index) => select(index));
      for (const item of document.querySelectorAll('a')) item.dispatchEvent(new Event('mouseover'));
      [...new Set(objects.map(object => object.link))].length + ' ' + document.documentElement.dataset.run
      """
    )
    #expect(visited == "100 undefined")
  }

  @Test func aPageOfAnotherOriginGetsNothing() throws {
    try InspectedPage.fill()
    let live = try LivePage()
    let page = try BrowserPage(in: broker.directory)
    try page.open("file://\(try broker.directory.write("<title>other</title>", to: "other.html"))")
    for options in ["{}", "{ mode: 'no-cors' }"] {
      let got = try page.run("fetch('\(live.address)', \(options)).then(() => 'read', error => error.name)")
      #expect(got == "TypeError", "\(options)")
    }
    // Nor does it lead there: that ends the script that waits.
    #expect(throws: TestFailure.self) { try page.run("new Promise(() => { location.href = '\(live.address)' })") }
    try page.waitUntilLoaded()
    #expect(try page.run("location.href + document.title") == .string(live.address))
    try page.open(live.address)
    #expect(try page.run("document.title") == "a – restorationctl inspect")
  }
}
