// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Archives of former builds, in `Tests/Archives`.
@Suite(.broker) struct FormerArchiveTests {
  private static let application = "org.example.Old"

  /// In `undelivered`, as a build that noted no deliveries left it when it was killed: states that are confirmed, early
  /// (R19), withheld after two crashes (R31) and closed (R13). Each said "older" before; the owner of the early one has
  /// pushed "newer" without having read that.
  @Test func statesOfABuildWithoutDeliveriesAreWhereTheRulesSay() throws {
    let folder = "\(Products.repository)/Tests/Archives/undelivered"
    _ = try broker.terminate()
    for name in Files.list(folder) {
      try Files.write(try Files.read("\(folder)/\(name)"), to: "\(broker.archives)/\(name)")
    }
    try broker.start()
    let reader = try broker.connect()
    func found(_ name: String) throws -> JSONValue? {
      try reader.decode(name, of: Self.application)["state"]?["text"]
    }
    #expect(try found("Confirmed") == "older")
    #expect(try found("Early") == "newer")
    #expect(try found("Withheld") == "older")
    let withheld = try reader.call("listQuarantine", ["application": .string(Self.application)])["objects"]?.array
    #expect(withheld?.map { $0["path"] } == [.path("Withheld")])
    let owner = try broker.session(Self.application, process: "main")
    for name in ["Confirmed", "Early", "Withheld"] { try owner.register(name) }
    #expect(try owner.decode("Confirmed")["state"]?["text"] == "older")
    #expect(try owner.decode("Early")["state"]?["text"] == "older")
    #expect(try owner.decode("Withheld")["status"] == "quarantined")
    try owner.call("reopenObject", ["path": .path("Closed")])
    #expect(try found("Closed") == "closed")
    // It has been shown the older one, which counts from then on.
    #expect(try found("Early") == "older")
  }
}
