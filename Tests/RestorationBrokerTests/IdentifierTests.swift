// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Identifiers and the uniqueness of paths (R1).
@Suite struct IdentifierTests {
  let broker = MemoryBroker()

  @Test func r1RegisteringTheSameAgainWritesNothing() throws {
    let peer = broker.connect()
    try peer.initialize()
    try peer.register("Main", below: nil, #""objectClass":"Window""#)
    broker.forgetWritten()
    try peer.register("Main", below: nil, #""objectClass":"Window""#)
    #expect(broker.written.isEmpty)
  }

  @Test func r1WhatIsInvalidIsNamed() throws {
    let peer = broker.connect()
    try peer.initialize()
    let calls = [
      ("encodeRestorableState", #"{"object":["Main","a#b"],"state":{}}"#, #"identifier: "a#b""#),
      ("registerObjectForStateRestoration", #"{"restorationIdentifier":"a/b"}"#, #"identifier: "a/b""#),
    ]
    for (method, parameters, end) in calls {
      let failure = try peer.fail(method, parameters)
      #expect(failure.kind == "invalidIdentifier" && failure.message.hasSuffix(end), "\(failure)")
    }
    let parameters = #"{"restorationIdentifier":"a","restorationParent":["No"]}"#
    let unknown = try peer.fail("registerObjectForStateRestoration", parameters)
    #expect(unknown.kind == "unknownParent" && unknown.message.contains("parent No is"))
    let failure = try peer.fail("describeApplication", #"{"application":"my app"}"#)
    #expect(failure.kind == "invalidParams" && failure.message == #""my app" is not an application name"#)
    #expect(failure.data["hint"]?.string?.contains("letters, digits") == true)
    #expect(try peer.fail("pong", "{}").message == "Method not found: pong")
  }

  @Test func r1ADeadOwnersPathIsClaimedUnderANewHandle() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    let old = try first.register("Main")
    // Its connection stays open: another process has inherited it.
    broker.killUnnoticed(first)
    let new = try second.register("Main")
    #expect(new != old)
    #expect(try second.fail("decodeRestorableState", #"{"object":\#(old)}"#).kind == "unknownObject")
    broker.inspect()
  }

  @Test func r1AnExitThatIsKnownLetsThePathBeClaimedAtOnce() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    try first.register("Main")
    broker.kill(first)
    try second.register("Main")
    broker.inspect()
    broker.advance(milliseconds: 1_000)
    broker.inspect()
    #expect(try second.objects().count == 1)
    #expect(broker.application("App")?.sessions.count == 1)
  }

  @Test func r1ALivingOwnerWithoutConnectionKeepsItsPathFromOtherProcesses() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try first.initialize()
    try second.initialize()
    try first.register("Main")
    broker.disconnect(first)
    broker.advance(milliseconds: 5_000)
    let failure = try second.fail("registerObjectForStateRestoration", second.registration("Main"))
    #expect(failure.kind == "duplicatePath")
    broker.inspect()
  }

  @Test func r1ADetachedSessionKeepsItsPathAlthoughItsProcessHasEnded() throws {
    let (first, second) = (broker.connect(pid: 1), broker.connect(pid: 2))
    let registered = try first.call(
      "registerObjectForStateRestoration",
      first.registration("Main", below: nil, #""application":"App""#)
    )
    let token = try #require(registered["session"]?.string)
    let other = broker.connect(pid: 3)
    try other.call("goodbye", #"{"application":"App","reason":"restart","session":"\#(token)"}"#)
    let again = try first.call(
      "registerObjectForStateRestoration",
      first.registration("Main", below: nil, #""application":"App""#)
    )
    #expect(again["session"] != .string(token))
    broker.killUnnoticed(first)
    let failure = try second.fail(
      "registerObjectForStateRestoration",
      second.registration("Main", below: nil, #""application":"App""#)
    )
    #expect(failure.kind == "duplicatePath")
    broker.inspect()
  }

  @Test func handlesNeverRepeatOverRestarts() throws {
    var handles: Set<Int64> = []
    for run in 1...3 {
      let peer = broker.connect(pid: Int64(run))
      try peer.initialize()
      for index in 0..<4 { #expect(handles.insert(try peer.register("o\(run).\(index)")).inserted) }
      #expect(handles.allSatisfy { $0 > 0 && $0 < 1 << 53 })
      broker.restart()
    }
  }
}
