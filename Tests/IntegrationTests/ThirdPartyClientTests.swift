// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Clients that others wrote, unmodified: each takes the steps of a session, in its own framing.
@Suite(.broker, .timeLimit(.minutes(10))) struct ThirdPartyClientTests {
  private static let application = "org.example.Others"
  private static let scope: JSONObject = ["application": .string(application)]

  @Test("A client that others wrote works unmodified", arguments: ThirdPartyClient.allCases)
  func aClientThatOthersWroteWorks(_ client: ThirdPartyClient) throws {
    try client.requireInstalled()
    let errors = broker.directory.file("client")
    let program = try ChildProcess(
      try client.command(),
      environment: ["RESTORATIOND_SOCKET": broker.socket, "RESTORATION_APPLICATION": Self.application],
      errors: errors
    )
    var lines: [String] = []
    while let line = try program.output?.next() {
      lines.append(line)
      if line == "waiting" { try Self.save(with: client) }
    }
    let end = try program.waitForEnd()
    #expect(lines == client.steps, "\((try? Files.text(errors)) ?? "")")
    #expect(end == .exit(0), "\((try? Files.text(errors)) ?? "")")
    try Self.expectStored(by: client)
  }

  /// Has a round ask the client for its state.
  private static func save(with client: ThirdPartyClient) throws {
    let caller = try broker.connect()
    let sessions = try caller.call("describeApplication", .object(scope))["sessions"]?.array ?? []
    #expect(sessions.map { $0["process"] } == [.string(client.rawValue)])
    #expect(sessions.first?["serves"] == ["applicationStateSaved", "encodeRestorableStateWithCoder"])
    let result = try caller.call("saveApplicationState", .object(scope))
    #expect(result["saved"] == true)
    #expect(result["objects"] == 1)
    #expect(result["stale"] == [])
  }

  /// The broker has the client's states, down to the digits.
  private static func expectStored(by client: ThirdPartyClient) throws {
    let reader = try broker.connect()
    try reader.request("readArchive", .object(scope))
    var answer = try reader.receive()
    // jansson cannot read a number of that size.
    if let huge = client.huge {
      let member = ",\"huge\":\(huge)"
      try #require(answer.contains(member), "\(answer)")
      answer = answer.replacing(member, with: "")
    }
    let objects = try JSONCodec.parse(Array(answer.utf8))["result"]?["objects"]?.array ?? []
    let notes = try #require(objects.first)
    #expect(notes["path"] == .path("Notes"))
    #expect(notes["state"] == .object(client.state))
    #expect(notes["objectClass"] == "Notes")
    #expect(notes["process"] == .string(client.rawValue))
    #expect(notes["orphaned"] == true)
    // The last message of nc was sent without a session.
    #expect(objects.dropFirst().map { $0["path"] } == (client == .nc ? [.path("Notes", "Script")] : []))
    #expect(objects.dropFirst().allSatisfy { $0["state"] == notes["state"] && $0["process"] == .null })
  }
}
