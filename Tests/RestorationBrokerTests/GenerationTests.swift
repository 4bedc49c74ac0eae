// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Kept generations outlive the broker (R16).
@Suite struct GenerationTests {
  let broker = MemoryBroker()

  private func run(_ state: String?) throws {
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("Main")
    if let state { try peer.encode(#"["Main"]"#, state) }
    try peer.goodbye("restart")
    broker.inspect()
  }

  /// Numbers of the generations, those that are pinned with a `p`.
  private func generations() throws -> [String] {
    let result = try broker.connect().call("listGenerations", #"{"application":"App"}"#)
    let generations = result["generations"]?.array ?? []
    return generations.map { "\($0["generation"]?.integer ?? 0)\($0["pinned"] == true ? "p" : "")" }
  }

  @Test func r16BlankStartsDestroyNothingAndWhatChangesNothingIsNotSealed() throws {
    for state in [#"{"good":1}"#] + (2...9).map({ #"{"blank":\#($0)}"# }) { try run(state) }
    broker.restart()
    for state in [#"{"blank":10}"#, nil, nil] { try run(state) }
    #expect(try generations() == ["1p", "8", "9", "10"])
    let kept = try broker.connect().call("readArchive", #"{"application":"App","generation":1}"#)["objects"]
    #expect(kept?.array?.map { $0["state"] } == [["good": 1]])
    try broker.connect().call("discardApplicationState", #"{"application":"App","generations":true}"#)
    broker.restart()
    for number in 1...2 { try run(#"{"n":\#(number)}"#) }
    #expect(try generations() == ["11p"], "numbers never go back")
  }
}
