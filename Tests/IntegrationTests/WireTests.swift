// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The bytes on the socket (`Protocol/README.md`, Framing and JSON-RPC).
@Suite(.broker) struct WireTests {
  /// R15; the state is the text that was sent, whatever its numbers are.
  @Test(arguments: [
    "0.1", "1e300", "-0.0", "9223372036854775807", "18446744073709551615", "1e400", "-0", "1E-7", "1.10",
    "123456789012345678901234567890", "0.10000000000000001", "5e-324", #""\u0000""#, #""\ud83d\ude00""#, #""\/""#,
    "\"Grüße, 世界 👩‍👩‍👧 e\u{301}\"", #"{"":{"":{"":[[],{},""]}}}"#, #"{"a":1,"a":2}"#, "[null,true,false]",
    #"{"$literal":{"$restorable":5}}"#,
  ])
  func aValueComesBackAsItWasSent(_ value: String) throws {
    let client = try broker.connect()
    let state = #"{"v":\#(value),"":"empty key"}"#
    let address = #""application":"a","object":["A"]"#
    try client.send(
      #"{"jsonrpc":"2.0","id":1,"method":"encodeRestorableState","params":{\#(address),"state":\#(state)}}"#
    )
    #expect(try client.receive().utf8Contains(#""durability":"disk""#))
    for round in 1...2 {
      let reader = try broker.connect()
      try reader.send(#"{"jsonrpc":"2.0","id":1,"method":"decodeRestorableState","params":{\#(address)}}"#)
      let line = try reader.receive()
      #expect(line.utf8Contains(#""state":\#(state)"#), "round \(round): \(line)")
      // The second time it comes from the disk.
      if round == 1 { try broker.crashAndRestart() }
    }
  }

  /// R15: even the last message before the end of input is on disk when the connection closes.
  @Test func everythingIsAnsweredAfterHalfClose() throws {
    let client = try broker.connect()
    for number in 1...500 {
      try client.request(
        "encodeRestorableState",
        ["application": "a", "object": .path("O\(number)"), "state": ["n": .integer(Int64(number))]]
      )
    }
    client.halfClose()
    let lines = try client.receiveToEnd()
    #expect(lines.count == 500)
    #expect(lines.allSatisfy { $0.utf8Contains(#""durability":"disk""#) })
  }

  @Test func aClientThatClosesAtOnceHarmsNobody() throws {
    for _ in 1...200 {
      let client = try broker.connect()
      for _ in 1...20 { try client.request("ping") }
    }
    try broker.connect().call("ping")
  }

  @Test func nothingIsSentBeforeAClientAsks() throws {
    let quiet = try broker.connect()
    let busy = try broker.session("a", process: "one")
    try busy.register("Main")
    quiet.halfClose()
    #expect(try quiet.receiveToEnd().isEmpty)
  }
}

extension String {
  /// Whether the bytes of `part` are in this text; characters may combine with those around them.
  func utf8Contains(_ part: String) -> Bool {
    let (text, part) = (Array(utf8), Array(part.utf8))
    guard part.count <= text.count else { return false }
    return (0...(text.count - part.count)).contains { text[$0..<($0 + part.count)].elementsEqual(part) }
  }
}
