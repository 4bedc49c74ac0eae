// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import NIOCore
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Calls about so many objects that they are done in pieces.
@Suite struct LongTurnTests {
  /// More than there are in one piece.
  private static let count = 100

  let broker = MemoryBroker(pieceObjects: 80)
  let owner: Peer
  private let children: [Int64]

  init() throws {
    owner = broker.connect()
    try owner.initialize()
    try owner.register("Main")
    let owner = owner
    children = try (0..<Self.count).map { try owner.register("Tab", below: #"["Main"]"#, #""position":\#($0)"#) }
  }

  private var reversed: String { order(children.reversed()) }

  private func order(_ children: [Int64]) -> String {
    #"{"object":["Main"],"children":[\#(children.map(String.init).joined(separator: ","))]}"#
  }

  /// The child that is the first one now; its state is written.
  private func first() throws -> Int64? {
    try owner.encode(#"["Main","Tab#0"]"#, #"{"is":"first"}"#)
    return try children.first { try owner.decode("\($0)")["state"] == ["is": "first"] }
  }

  /// Calls `body` in turns of the loop for as long as a call is done in pieces, with the number of the turn.
  private func whileLong(_ body: @escaping (Int) -> Void) {
    let (broker, loop) = (NIOLoopBoundBox(broker, eventLoop: broker.loop), broker.loop)
    let turns = NIOLoopBoundBox((all: 0, long: 0, body: body), eventLoop: loop)
    @Sendable func look() {
      turns.value.all += 1
      let isLong = broker.value.holdings["long turns"] != nil
      if isLong {
        turns.value.long += 1
        turns.value.body(turns.value.long)
      }
      // It begins soon, or never does.
      if isLong || turns.value.long == 0 && turns.value.all < 100 { loop.execute(look) }
    }
    loop.execute(look)
  }

  @Test func r6ManyChildrenChangePlacesInPiecesAndOthersSeeThemAllAtOnce() throws {
    var turns = 0
    whileLong { turns = $0 }
    let call = owner.start("setChildren", reversed)
    // It waits, and finds the object where it is afterwards.
    let encode = owner.start("encodeRestorableState", #"{"object":["Main","Tab#0"],"state":{"n":1}}"#)
    #expect(turns > 3)
    #expect(try owner.result(of: call)["paths"]?.array?.last == ["Main", .string("Tab#\(Self.count - 1)")])
    _ = try owner.result(of: encode)
    #expect(try owner.decode("\(children[Self.count - 1])")["state"] == ["n": 1])
  }

  @Test func r6WhatCannotWaitHasTheRestDoneFirst() throws {
    let other = broker.connect(pid: 200)
    try other.initialize()
    var turns = 0
    whileLong { number in
      turns = number
      if number == 1 { other.connection.cut() }
    }
    let call = owner.start("setChildren", reversed)
    #expect((1...3).contains(turns))
    #expect(try owner.result(of: call)["paths"]?.array?.count == Self.count)
    #expect(try first() == children.last)
  }

  @Test func r15NothingOfItIsStoredIfATransactionBeforeItFails() throws {
    broker.holdsCommits = true
    let encode = owner.start("encodeRestorableState", #"{"object":["Main"],"state":{"n":1}}"#)
    let broker = broker
    whileLong { if $0 == 1 { broker.disk.failCommit("App") } }
    let call = owner.start("setChildren", reversed)
    broker.holdsCommits = false
    broker.commit()
    broker.advance(milliseconds: 1_000)
    #expect(try owner.failure(of: encode).code == -32012)
    #expect(try owner.failure(of: call).code == -32012)
    #expect(try first() == children[0])
    #expect(try owner.call("setChildren", reversed)["paths"]?.array?.count == Self.count)
  }

  @Test func r16AGenerationOfManyObjectsReturnsInPiecesAndIsSeenAllAtOnce() throws {
    try owner.encode(#"["Main"]"#, #"{"n":1}"#)
    let save = owner.start("saveApplicationState")
    broker.advance(milliseconds: 60_000)
    _ = try owner.result(of: save)
    _ = try owner.call("setChildren", reversed)
    try owner.encode(#"["Main"]"#, #"{"n":2}"#)
    let generations = try owner.call("listGenerations")["generations"]?.array
    let oldest = try #require(generations?.compactMap { $0["generation"]?.integer }.min())
    var turns = 0
    whileLong { turns = $0 }
    let call = owner.start("rollBack", #"{"generation":\#(oldest),"force":true}"#)
    let decode = owner.start("decodeRestorableState", #"{"object":["Main"]}"#)
    #expect(turns > 3)
    #expect(try owner.result(of: call)["unreadable"] == [])
    #expect(try owner.result(of: decode)["state"] == ["n": 1])
    #expect(try first() == children[0])
  }

  @Test func aDocumentOfManyObjectsBecomesTheHeadInPiecesAndIsSeenAllAtOnce() throws {
    for child in children { try owner.encode("\(child)", #"{"n":\#(child)}"#) }
    let (tool, other) = (broker.connect(pid: 200), broker.connect(pid: 300))
    let document = try tool.export("App")
    // The archive is there.
    try tool.encode(#"["A"]"#, "{}", #""application":"Copy""#)
    var turns = 0
    var decode = 0
    whileLong {
      turns = $0
      if $0 == 1 {
        decode = other.start("decodeRestorableState", #"{"application":"Copy","object":["Main","Tab#0"]}"#)
      }
    }
    let call = tool.start("importArchive", tool.importing(document, into: "Copy", #""force":true"#))
    #expect(turns > 3)
    #expect(try tool.result(of: call)["objects"] == .integer(Int64(1 + Self.count)))
    #expect(try other.result(of: decode)["state"] == ["n": .integer(children[0])])
  }

  @Test func r21ManyObjectsAreLookedForInPiecesAndSoIsTheEndOfTheirRestoration() throws {
    for child in children { try owner.encode("\(child)", #"{"n":\#(child)}"#) }
    broker.crash(owner)
    let next = broker.connect(pid: 200)
    var turns: [Int] = []
    next.serves["decodeRestorableStateWithCoder"] = { _ in
      // After the last one the restoration ends.
      whileLong { _ in turns[turns.count - 1] += 1 }
      turns.append(0)
      return "{}"
    }
    try next.initialize("App", #""serves":["decodeRestorableStateWithCoder","applicationFinishedRestoringState"]"#)
    try next.register("Main")
    for position in children.indices { try next.register("Tab", below: #"["Main"]"#, #""position":\#(position)"#) }
    whileLong { _ in turns[turns.count - 1] += 1 }
    turns.append(0)
    let call = next.start("restoreApplicationState")
    #expect(turns.first ?? 0 > 3)
    #expect(turns.last ?? 0 > 3)
    #expect(try next.result(of: call)["restored"]?.array?.count == 1 + Self.count)
    #expect(next.takeNotifications("applicationFinishedRestoringState").count == 1)
  }

  @Test func r13AnApplicationThatIsForgottenMeanwhileLeavesNoCallWithoutAnAnswer() throws {
    let other = broker.connect(pid: 200)
    var forget = 0
    whileLong { if $0 == 1 { forget = other.start("forgetApplication", #"{"application":"App","force":true}"#) } }
    let call = owner.start("setChildren", reversed)
    #expect(try owner.result(of: call)["paths"]?.array?.count == Self.count)
    _ = try other.result(of: forget)
    #expect(owner.unanswered.isEmpty)
  }

  @Test func aSubscriberThatComesMeanwhileHearsNothingOfIt() throws {
    let other = broker.connect(pid: 200)
    var subscribe = 0
    whileLong {
      if $0 == 1 { subscribe = other.start("subscribe", #"{"application":"App","events":["pathChanged"]}"#) }
    }
    let call = owner.start("setChildren", reversed)
    _ = try owner.result(of: call)
    _ = try other.result(of: subscribe)
    #expect(other.takeNotifications("event").isEmpty)
    _ = try owner.call("setChildren", order(children))
    #expect(other.takeNotifications("event").count == Self.count)
  }

  @Test func r21ARestorationThatWaitedForAnotherOneBeginsInPiecesAtItsEnd() throws {
    let loose = try owner.register("Loose")
    for object in children + [loose] { try owner.encode("\(object)", #"{"n":\#(object)}"#) }
    broker.crash(owner)
    let next = broker.connect(pid: 200)
    try next.initialize("App", #""serves":["decodeRestorableStateWithCoder"]"#)
    try next.register("Main")
    for position in children.indices { try next.register("Tab", below: #"["Main"]"#, #""position":\#(position)"#) }
    try next.register("Loose")
    let first = next.start("restoreApplicationState", #"{"objects":[["Loose"]]}"#)
    let second = next.start("restoreApplicationState")
    let decode = try #require(next.openCalls("decodeRestorableStateWithCoder").first)
    var turns = 0
    whileLong { turns = $0 }
    next.answer(decode.id, "{}")
    #expect(turns > 1)
    #expect(try next.result(of: first)["restored"]?.array == [["Loose"]])
    #expect(!next.hasAnswer(second))
    while let decode = next.openCalls("decodeRestorableStateWithCoder").first { next.answer(decode.id, "{}") }
    #expect(try next.result(of: second)["restored"]?.array?.count == 1 + Self.count)
  }
}
