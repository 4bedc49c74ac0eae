// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Kept generations outlive the broker (R16, R17).
@Suite struct GenerationTests {
  let driver = CoreDriver()

  private func run(_ state: String?) throws {
    let peer = driver.connect()
    try peer.initialize()
    try peer.register("Main")
    if let state { try peer.encode(#"["Main"]"#, state) }
    try peer.goodbye("restart")
    driver.inspect()
  }

  /// Numbers of the generations, those that are pinned with a `p`.
  private func generations() throws -> [String] {
    let result = try driver.connect().call("listGenerations", #"{"application":"App"}"#)
    let generations = result["generations"]?.array ?? []
    return generations.map { "\($0["generation"]?.integer ?? 0)\($0["pinned"] == true ? "p" : "")" }
  }

  @Test func r16R17BlankStartsDestroyNothingAndWhatChangesNothingIsNotSealed() throws {
    for state in [#"{"good":1}"#] + (2...9).map({ #"{"blank":\#($0)}"# }) { try run(state) }
    driver.restart()
    for state in [#"{"blank":10}"#, nil, nil] { try run(state) }
    #expect(try generations() == ["1p", "8", "9", "10"])
    let kept = try driver.connect().call("readArchive", #"{"application":"App","generation":1}"#)["objects"]
    #expect(kept?.array?.map { $0["state"] } == [["good": 1]])
    try driver.connect().call("discardApplicationState", #"{"application":"App","generations":true}"#)
    driver.restart()
    for number in 1...2 { try run(#"{"n":\#(number)}"#) }
    #expect(try generations() == ["11p"], "numbers never go back")
  }
}
