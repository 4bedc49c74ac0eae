// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The application's own state, which its delegate gives in a round: kept as any other (R11).
@Suite struct ApplicationStateTests {
  let broker = MemoryBroker()

  @Test func r11ItOutlivesTheBroker() throws {
    for state in [#"{"tab":3}"#, "null"] {
      let peer = broker.connect()
      peer.serves["willEncodeRestorableState"] = { _ in #"{"state":\#(state)}"# }
      peer.serves["shouldSaveApplicationState"] = { _ in "true" }
      try peer.initialize(
        "App",
        #""delegate":true,"serves":["shouldSaveApplicationState","willEncodeRestorableState"]"#
      )
      try peer.encode(#"["A"]"#, "{}")
      try peer.call("saveApplicationState")
      let listed = try peer.call("listApplications")["applications"]?.array?.first
      #expect(listed?["objects"] == 1, "the application itself is not an object")
      let shown = peer.calls.last { $0.method == "shouldSaveApplicationState" }?.parameters["state"]
      #expect(shown == (state == "null" ? ["tab": 3] : .null))
      broker.inspect()
      try peer.goodbye("restart")
      broker.restart()
    }
  }
}
