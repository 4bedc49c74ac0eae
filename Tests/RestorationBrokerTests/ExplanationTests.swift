// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Why an object was saved, or was not, if its row is damaged.
@Suite struct ExplanationTests {
  @Test func r32ADamagedStateIsTheVerdict() throws {
    let driver = CoreDriver()
    let peer = driver.connect()
    try peer.initialize()
    let row = try #require(try peer.encode(#"["Main"]"#, #"{"n":1}"#)["sequence"]?.integer)
    driver.tamper("App") { $0.damaged = [row] }
    #expect(try peer.decode(#"["Main"]"#)["status"] == "unreadable")
    #expect(try peer.call("explainRestoration", #"{"object":["Main"]}"#)["verdict"] == "unreadable")
  }
}
