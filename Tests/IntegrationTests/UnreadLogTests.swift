// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Standard error that is a pipe which is not read, as of a pager or of a container's log that was stopped; a terminal
/// after Ctrl-S is the same.
@Suite(.scratch) struct UnreadLogTests {
  /// A pipe that a program opens by its name, and that keeps its reader.
  private struct Pipe {
    let path: String
    let descriptor: FileDescriptor

    init(_ name: String) throws {
      path = directory.file(name)
      guard mkfifo(path, 0o600) == 0 else { throw TestFailure("mkfifo: \(SystemError.current)") }
      let number = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
      guard number >= 0 else { throw TestFailure("open \(path): \(SystemError.current)") }
      descriptor = FileDescriptor(owning: number)
    }

    /// Leaves no room in it.
    func fill() {
      let line = Array((String(repeating: "x", count: 99) + "\n").utf8)
      while write(descriptor.number, line, line.count) > 0 {}
      while write(descriptor.number, "\n", 1) > 0 {}
    }
  }

  private static func start(_ arguments: [String] = []) throws -> (broker: BrokerFixture, log: Pipe) {
    let log = try Pipe("log")
    return (BrokerFixture(in: directory, arguments: arguments), log)
  }

  @Test func aBrokerServesAndEndsAlthoughItsLogIsNotRead() throws {
    let (broker, log) = try Self.start()
    log.fill()
    try broker.start()
    let client = try broker.session()
    try client.register("Main")
    try client.encode("Main", state: ["n": 1])
    try broker.connect().call("ping")
    #expect(try broker.terminate() == .exit(0))
  }

  @Test func entriesThatWereNotReadAreCountedOnceThereIsRoom() throws {
    let (broker, log) = try Self.start(["--log-level", "debug"])
    try broker.start()
    let client = try broker.connect()
    // More than the pipe and the broker keep.
    let count = 8_000
    for _ in 1...count / 100 {
      for id in try (1...100).map({ _ in try client.request("ping") }) { _ = try client.answer(to: id) }
    }
    let lines = LineReader(log.descriptor)
    var pings = 0
    var lost: Int?
    while lost == nil {
      let line = try #require(try lines.next())
      if line.contains("method=ping") { pings += 1 }
      let loss = try /(\d+) entries of the log were lost: they were not read in time/.wholeMatch(in: line)
      lost = loss.flatMap { Int($0.1) }
    }
    #expect(pings + (lost ?? 0) == count)
    // It goes on with the next one.
    try client.call("limits")
    while try lines.next()?.contains("method=limits") != true {}
    #expect(try broker.terminate() == .exit(0))
  }

  @Test func aGatewayServesAndEndsAlthoughItsLogIsNotRead() throws {
    let log = try Pipe("log")
    log.fill()
    let nowhere = #"{"conninfo": "host=/nonexistent connect_timeout=1", "host": "here"}"#
    let configuration = try directory.write(nowhere, to: "gateway.json")
    let socket = directory.file("gateway.sock")
    let process = try ChildProcess(
      [Products.gateway, "--config", configuration, "--socket", socket],
      errors: log.path
    )
    try Wait.until("the socket is there") { Files.exists(socket) }
    let client = try WireClient(socket)
    try client.call("attach", ["version": 1, "broker": "b", "term": 15_000])
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
  }
}
