// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl doctor`: what is wrong, each with what to run.
@Suite struct DoctorTests {
  private static let tools = Products.control.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    .joined(separator: "/")

  /// Of a person without restorers or a terminal, who finds the tool.
  private static func environment(_ home: String, _ more: [String: String?] = [:]) -> [String: String?] {
    let own: [String: String?] = [
      "HOME": home, "PATH": "\(tools):/usr/bin:/bin", "TMUX": nil, "SSH_CONNECTION": nil, "XDG_RUNTIME_DIR": home,
    ]
    return own.merging(more) { $1 }
  }

  private static func findings(_ more: [String: String?] = [:], status: Int32) throws -> [JSONValue] {
    let environment = environment(broker.directory.path, more)
    let json = try ControlTool.run(["doctor", "-j"], environment: environment, status: status).json
    return json["findings"]?.array ?? []
  }

  private static func finding(_ subject: String, _ findings: [JSONValue]) throws -> JSONValue {
    try #require(findings.first { $0["subject"]?.string == subject }, "\(findings)")
  }

  @Test(.broker) func whatIsWellHasALineEachAndTheStatusIs0() throws {
    try broker.connect().encode("Main", state: ["n": 1], of: "a")
    let environment = Self.environment(broker.directory.path)
    let lines = try ControlTool.run(["doctor"], environment: environment, status: 0).output.split(separator: "\n")
    for line in [
      "ok    socket    \(broker.socket)", "ok    withheld  no state", "ok    PATH      \(Products.control)",
    ] {
      #expect(lines.contains(Substring(line)), "\(lines)")
    }
    #expect(lines.contains { $0.hasPrefix("ok    broker    restorationd ") })
    #expect(lines.contains { $0.hasPrefix("ok    archives  1, ") })
    #expect(lines.last == "Nothing to do.")
    let subjects = Set(try Self.findings(status: 0).compactMap { $0["subject"]?.string })
    #expect(subjects.isSuperset(of: ["socket", "broker", "archives", "withheld", "PATH"]))
    // The units are not those of this socket.
    #expect(subjects.isDisjoint(with: ["units", "linger"]))
  }

  @Test(.broker) func aDirectoryThatOthersWriteIsToldWithTheCommandThatKeepsThemOut() throws {
    let folder = broker.socket.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    let mode = Files.mode(folder)
    chmod(folder, 0o777)
    defer { chmod(folder, mode) }
    let found = try Self.finding("socket", Self.findings(status: 1))
    #expect(found["command"]?.string == "chmod go-w \(folder)")
  }

  @Test(.broker) func aToolThatPATHDoesNotLeadToIsTold() throws {
    let found = try Self.finding("PATH", Self.findings(["PATH": "/usr/bin:/bin"], status: 1))
    #expect(found["command"]?.string == "export PATH=\"$PATH\":\(Self.tools)")
  }

  @Test(.scratch) func withoutABrokerItSaysHowToStartOne() throws {
    let socket = directory.file("b.sock")
    let environment = Self.environment(directory.path, ["RESTORATIOND_SOCKET": nil])
    let result = try ChildProcess.run([Products.control, "--socket", socket, "doctor"], environment: environment)
    #expect(result.end == .exit(1))
    #expect(result.output.contains("!!    broker    no broker listens on \(socket)"), "\(result.output)")
    #expect(result.output.contains("\n                  restorationd --socket \(socket)\n"), "\(result.output)")
    #expect(result.output.hasSuffix("\n1 thing to do.\n"), "\(result.output)")
  }

  @Test(.scratch) func aVariableThatNamesAPlainFileIsToldAsOne() throws {
    let file = try directory.write("", to: "file")
    let environment = Self.environment(directory.path, ["RESTORATIOND_SOCKET": file])
    let result = try ChildProcess.run([Products.control, "doctor"], environment: environment)
    #expect(result.end == .exit(1))
    #expect(result.output.contains("!!    broker    \(file) is a file, not a socket"), "\(result.output)")
    #expect(result.output.contains("\n                  unset RESTORATIOND_SOCKET\n"), "\(result.output)")
  }

  @Test(.scratch) func withoutAVariableThatNamesTheSocketItSaysWhichToSet() throws {
    var environment = Self.environment(directory.path, ["RESTORATIOND_SOCKET": nil])
    environment["XDG_RUNTIME_DIR"] = .some(nil)
    let result = try ChildProcess.run([Products.control, "doctor"], environment: environment)
    #expect(result.end == .exit(1))
    #expect(result.output.contains(#"export XDG_RUNTIME_DIR="/run/user/$(id -u)""#), "\(result.output)")
  }
}
