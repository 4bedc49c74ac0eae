// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Why an object was saved, or was not, where the broker has restarted, or the row is damaged.
@Suite struct ExplanationTests {
  @Test func stepsAreThoseOfThisBroker() throws {
    let broker = MemoryBroker()
    func saved() throws -> [JSONValue] {
      let call = #"{"application":"App","object":["Main"]}"#
      return try #require(try broker.connect().call("explainRestoration", call)["saved"]?.array)
    }
    try broker.connect().encode(#"["Main"]"#, #"{"n":1}"#, #""application":"App""#)
    #expect(try saved().map { $0["step"] } == ["pushed"])
    broker.restart()
    #expect(try saved().isEmpty)
  }

  @Test func r32ADamagedStateIsTheVerdict() throws {
    let broker = MemoryBroker()
    let row = try broker.connect().encode(#"["Main"]"#, #"{"n":1}"#, #""application":"App""#)["sequence"]?.integer
    broker.restart()
    broker.disk.damage("App", [try #require(row)])
    let peer = broker.connect()
    try peer.initialize()
    #expect(try peer.decode(#"["Main"]"#)["status"] == "unreadable")
    #expect(try peer.call("explainRestoration", #"{"object":["Main"]}"#)["verdict"] == "unreadable")
  }
}
