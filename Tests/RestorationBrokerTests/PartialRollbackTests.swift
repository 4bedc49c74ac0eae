// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

/// Bringing back some objects of a generation (R16).
@Suite struct PartialRollbackTests {
  let broker = MemoryBroker()
  let peer: Peer

  init() throws {
    peer = broker.connect(pid: 1)
    for path in [#"["A"]"#, #"["A","B"]"#, #"["C"]"#] { try put(path, 1) }
    try peer.call("saveApplicationState", #"{"application":"App"}"#)
  }

  private func put(_ path: String, _ number: Int) throws {
    try peer.encode(path, #"{"n":\#(number)}"#, #""application":"App""#)
  }

  private func number(_ path: String) throws -> Int64? {
    try peer.decode(path, #""application":"App""#)["state"]?["n"]?.integer
  }

  @discardableResult
  private func rollBack(_ objects: String, _ more: String = "") throws -> JSONValue {
    let result = try peer.call("rollBack", #"{"application":"App","generation":1,"objects":\#(objects)\#(more)}"#)
    broker.inspect()
    return result
  }

  @Test func r16OnlyTheNamedSubtreesComeBack() throws {
    for path in [#"["A"]"#, #"["A","B"]"#, #"["A","D"]"#, #"["C"]"#] { try put(path, 2) }
    let result = try rollBack(#"[["A"]]"#)
    #expect(try number(#"["A"]"#) == 1 && number(#"["A","B"]"#) == 1 && number(#"["C"]"#) == 2)
    #expect(try peer.paths(#""application":"App""#) == ["A", "A/B", "C"])
    // It can be undone.
    let former = try #require(result["former"]?.integer)
    try peer.call("rollBack", #"{"application":"App","generation":\#(former)}"#)
    #expect(try number(#"["A","D"]"#) == 2)
    broker.inspect()
  }

  @Test func r16WhatIsGoneComesBackWithReferencesToIt() throws {
    try peer.encode(#"["C"]"#, #"{"to":{"$restorable":["A","B"]}}"#, #""application":"App""#)
    try peer.call("unregisterObject", #"{"application":"App","object":["A"]}"#)
    try rollBack(#"[["A","B"]]"#)
    #expect(try peer.paths(#""application":"App""#) == ["A", "A/B", "C"])
    #expect(try number(#"["A","B"]"#) == 1 && number(#"["A"]"#) == nil)
    let reference = try peer.decode(#"["C"]"#, #""application":"App""#)["state"]?["to"]
    #expect(reference?["$restorable"] == ["A", "B"])
  }

  @Test func r19OwnersOfRolledBackObjectsDecodeThemAnew() throws {
    let owner = broker.connect(pid: 2)
    try owner.initialize("App", #""serves":["headReplaced"]"#)
    for name in ["A", "C"] { try owner.register(name) }
    for path in [#"["A"]"#, #"["C"]"#] {
      _ = try owner.decode(path)
      try owner.encode(path, #"{"n":3}"#)
    }
    let refused = #"{"application":"App","generation":1,"objects":[["A"]]}"#
    #expect(try peer.fail("rollBack", refused).kind == "needsForce")
    try rollBack(#"[["A"]]"#, #","force":true"#)
    #expect(owner.takeNotifications("headReplaced").count == 1)
    try owner.encode(#"["A"]"#, #"{"n":4}"#)
    #expect(try owner.state(#"["A"]"#) == ["n": 1])
    #expect(try owner.state(#"["C"]"#) == ["n": 3])
  }

  @Test func r16AnObjectThatTheGenerationDoesNotHaveIsUnknown() throws {
    try put(#"["New"]"#, 1)
    let call = #"{"application":"App","generation":1,"objects":[["C"],["New"]]}"#
    #expect(try peer.fail("rollBack", call).kind == "unknownObject")
    #expect(try peer.paths(#""application":"App""#) == ["A", "A/B", "C", "New"])
  }

  @Test func r4WhatIsExcludedTodayGetsItsStateOffTheDisk() throws {
    let owner = broker.connect(pid: 2)
    try owner.initialize("App")
    let view = #""kind":"viewController""#
    try owner.register("A", view)
    try owner.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"V"}"#)
    let handle = try owner.register("V", view)
    try owner.call("setRestorationIdentifier", #"{"object":\#(handle),"restorationIdentifier":null}"#)
    try owner.call("encodeRestorableState", #"{"object":\#(handle),"state":{"n":5}}"#)
    try rollBack(#"[["A"]]"#, #","force":true"#)
    let state = try owner.call("decodeRestorableState", #"{"object":\#(handle)}"#)["state"]
    #expect(state?["n"]?.integer == 1)
  }
}
