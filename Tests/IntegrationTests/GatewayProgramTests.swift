// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The real gateway, without a database.
@Suite(.scratch) struct GatewayProgramTests {
  private static func write(_ text: String) throws -> String { try directory.write(text, to: "gateway.json") }

  private static func start(_ arguments: [String] = []) throws -> (process: ChildProcess, socket: String) {
    let configuration = try write(#"{"conninfo": "host=/nonexistent connect_timeout=1", "host": "here"}"#)
    let socket = directory.file("gateway.sock")
    let process = try ChildProcess([Products.gateway, "--config", configuration, "--socket", socket] + arguments)
    try Wait.until("the socket is there") { Files.exists(socket) }
    return (process, socket)
  }

  @Test func itServesEachUserByNameAndEndsInOrder() throws {
    let (process, socket) = try Self.start()
    #expect(Files.mode(socket) == 0o666)
    let client = try WireClient(socket)
    let user = try #require(getpwuid(geteuid())).pointee.pw_name
    let attached = try client.call("attach", ["version": 1, "broker": "b", "term": 15_000])
    #expect(try attached["user"]?.string == String(cString: #require(user)))
    #expect(try client.failure("acquire", ["application": "draw", "reader": 1]).kind == "away")
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
    #expect(!Files.exists(socket))
    #expect(try client.receiveToEnd() == [])
  }

  @Test func whatIsWrongWithItsConfigurationIsSaid() throws {
    for (text, complaint) in [
      (#"{"conninfo": "x", "pool": 17}"#, "pool is not an integer from 1 to 16"),
      (#"{"conninfo": "x", "tenant": 1}"#, "unknown setting tenant"),
      (#"{"pool": 4}"#, "conninfo is missing"),
      (#"{"conninfo": "x", "logLevel": "loud"}"#, "unknown log level loud"),
      ("{", "gateway.json: "),
    ] {
      let result = try ChildProcess.run([Products.gateway, "--config", Self.write(text)])
      #expect(result.end == .exit(64) && result.errors.contains(complaint), "\(result.errors)")
    }
    let absent = try ChildProcess.run([Products.gateway, "--config=/nonexistent/gateway.json"])
    #expect(absent.end == .exit(64) && absent.errors.contains("does not exist"), "\(absent.errors)")
  }

  @Test func aDatabaseThatCannotBeReachedIsReported() throws {
    let configuration = try Self.write(#"{"conninfo": "host=/nonexistent connect_timeout=1"}"#)
    for arguments in [["--check"], ["erase", "--user", "nobody"]] {
      let result = try ChildProcess.run([Products.gateway, "--config", configuration] + arguments)
      #expect(result.end == .exit(1) && !result.errors.isEmpty, "\(result.errors)")
    }
  }
}
