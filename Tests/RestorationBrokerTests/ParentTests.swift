// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Restoration parents when owners crash, and registrations that wait for them (R3, R4).
@Suite struct ParentTests {
  let broker = MemoryBroker()

  @Test func r3ThePathOfACrashedOwnerIsAParentAndIsClaimedWithItsChildren() throws {
    let (main, editor) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try main.initialize()
    try editor.initialize()
    let old = try main.register("Main")
    let child = try editor.register("Editor", below: #"["Main"]"#)
    broker.crash(main)
    broker.inspect()
    try editor.register("Ruler", below: #"["Main"]"#)
    let next = broker.connect(pid: 3)
    try next.initialize()
    #expect(try next.register("Main") != old)
    try editor.encode("\(child)", #"{"a":1}"#)
    #expect(try next.paths() == ["Main", "Main/Editor", "Main/Ruler"])
    broker.inspect()
  }

  @Test func r3ManyWaitingForOneParentAreLetInWithoutDeepStack() throws {
    var limits = Limits()
    limits.parkedMax = 20_000
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect()
    try peer.initialize()
    for index in 0..<3_000 {
      peer.notify(
        "registerObjectForStateRestoration",
        peer.registration("n\(index)", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
      )
    }
    try peer.register("Main")
    #expect(broker.application("App")?.tree.count == 1 + 256, "the others are let in by the next events")
    broker.advance(milliseconds: 11)
    #expect(broker.application("App")?.tree.count == 3_001)
  }

  @Test func onlySoManyRegistrationsOfAConnectionWait() throws {
    var limits = Limits()
    limits.parkedMax = 3
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect()
    try peer.initialize()
    let call = peer.registration("a", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    for _ in 0..<3 { peer.notify("registerObjectForStateRestoration", call) }
    let failure = try peer.fail("registerObjectForStateRestoration", call)
    #expect(failure.kind == "limitExceeded")
    #expect(failure.data["limit"] == "parkedMax")
    #expect(failure.data["value"] == 4)
  }

  @Test func aWaitingCallOfALostConnectionIsForgotten() throws {
    let (peer, main) = (broker.connect(pid: 1), broker.connect(pid: 2))
    try peer.initialize()
    try main.initialize()
    peer.start(
      "registerObjectForStateRestoration",
      peer.registration("Editor", below: #"["Main"]"#, #""awaitParentMilliseconds":1000"#)
    )
    broker.disconnect(peer)
    try main.register("Main")
    #expect(try main.paths() == ["Main"])
    broker.inspect()
  }

  @Test func r4WhatIsExcludedGoesWithItsOwner() throws {
    for run in 1...3 {
      let peer = broker.connect(pid: Int64(run))
      try peer.initialize()
      let excluded = try peer.register(nil, below: nil, #""kind":"view""#)
      try peer.encode("\(excluded)", #"{"a":1}"#)
      let middle = try peer.register(nil, below: nil, #""kind":"viewController""#)
      try peer.register("Child", below: "\(middle)", #""kind":"view""#)
      broker.inspect()
      #expect(try peer.objects().count == 3)
      broker.crash(peer)
      broker.advance(milliseconds: 1_000)
      broker.inspect()
    }
    #expect(broker.application("App") == nil && broker.disk.archive("App") == nil)
  }
}
