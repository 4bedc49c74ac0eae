// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Objects that factories bring back under other paths than those they were saved at (R24).
@Suite struct AnotherPathTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  private static let document = #""restorationClass":"Docs""#

  /// Saves `Zed/Doc`, which a class makes, and other objects with states.
  private func save(_ others: [(String, String?, String, String?)] = [], state: String = #"{"v":1}"#) throws {
    let first =
      [("Zed", nil, "", nil), ("Doc", #"["Zed"]"#, Self.document, state)] as [(String, String?, String, String?)]
    try fixture.save((first + others).map { (identifier: $0.0, parent: $0.1, more: $0.2, state: $0.3) })
  }

  /// A process that answers for `Zed/Doc` with the object that `make` registers.
  private func join(_ pid: Int64, messageBytesMax: Int = 65_536, make: @escaping (Peer) throws -> Int64) throws -> Peer
  {
    let peer = try fixture.join("W", pid: pid, messageBytesMax: messageBytesMax)
    peer.serves["objectWithRestorationIdentifierPath"] = { _ in
      (try? make(peer)).map { #"{"object":\#($0)}"# } ?? "null"
    }
    try peer.call("registerRestorationClass", #"{"restorationClass":"Docs"}"#)
    return peer
  }

  private static func alphaDoc(_ peer: Peer) throws -> Int64 {
    try peer.register("Doc", below: "\(try peer.register("Alpha"))", document)
  }

  private func restore(_ peer: Peer) throws -> [String] {
    let id = peer.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 1_000)
    return outcome(try peer.result(of: id))
  }

  /// The paths there are, each with its state.
  private func states() throws -> [String] {
    broker.inspect()
    let reader = broker.connect(pid: 99)
    defer { broker.disconnect(reader) }
    let objects = try reader.call("readArchive", #"{"application":"App"}"#)["objects"]?.array ?? []
    return objects.compactMap { object in
      let state = object["state"].flatMap { $0 == .null ? nil : JSONText($0).string }
      return (object["path"]?.joined ?? "-") + (state.map { " \($0)" } ?? "")
    }
    .sorted()
  }

  @Test func r24WhatIsSavedMovesWithWhatIsVacantBelowItAndLiveObjectsStay() throws {
    try save([
      ("View", #"["Zed","Doc"]"#, "", #"{"of":"View"}"#), ("Tool", #"["Zed","Doc","View"]"#, "", #"{"of":"Tool"}"#),
      ("Live", #"["Zed","Doc","View"]"#, "", #"{"of":"Live"}"#),
      ("Main", nil, "", #"{"doc":{"$restorable":["Zed","Doc"]}}"#),
    ])
    let other = try fixture.join("O", pid: 5)
    let live = try other.register("Live", below: #"["Zed","Doc","View"]"#)
    try other.register("Main")
    let worker = try join(4, make: Self.alphaDoc)
    #expect(try restore(worker) == ["+Zed/Doc", "+Zed/Doc/View/Live", "+Main", "?Zed/Doc/View", "?Zed/Doc/View/Tool"])
    #expect(fixture.log.filter { $0.hasPrefix("W") } == ["W decode Alpha/Doc"])
    let moved = [
      "Alpha", #"Alpha/Doc {"v":1}"#, #"Alpha/Doc/View {"of":"View"}"#, #"Alpha/Doc/View/Tool {"of":"Tool"}"#,
    ]
    let left = ["Zed", "Zed/Doc", "Zed/Doc/View", #"Zed/Doc/View/Live {"of":"Live"}"#]
    #expect(try states().filter { !$0.hasPrefix("Main") } == moved + left)
    #expect(try other.state(#"["Main"]"#)?["doc"]?["$restorable"] == ["Alpha", "Doc"])
    #expect(try other.encode("\(live)", #"{"of":"Live2"}"#)["durability"] == "disk")
    #expect(other.takeNotifications("pathChanged").isEmpty)
    broker.restart()
    #expect(try states().filter { $0.hasPrefix("Alpha") } == moved)
  }

  @Test func r24AtTheNextLaunchItComesBackOnceWithItsNewestState() throws {
    try save()
    let worker = try join(4, make: Self.alphaDoc)
    #expect(try restore(worker) == ["+Zed/Doc"])
    try worker.encode(#"["Alpha","Doc"]"#, #"{"v":2}"#)
    try worker.goodbye("restart")
    let next = try join(5, make: Self.alphaDoc)
    next.serves["decodeRestorableStateWithCoder"] = { parameters in
      self.fixture.log += (parameters["objects"]?.array ?? []).map { JSONText($0["state"] ?? .null).string }
      return "{}"
    }
    #expect(try restore(next).contains("+Alpha/Doc"))
    #expect(fixture.log == ["W decode Alpha/Doc", #"{"v":2}"#])
  }

  @Test func r24WhatTheObjectHasWrittenSinceStays() throws {
    try save([("View", #"["Zed","Doc"]"#, "", #"{"of":"View"}"#)])
    let worker = try join(4, make: Self.alphaDoc)
    let id = worker.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    broker.advance(milliseconds: 600)
    #expect(fixture.log == ["W decode Alpha/Doc"])
    try worker.encode(#"["Alpha","Doc"]"#, #"{"v":2}"#)
    try worker.encode("\(try worker.register("View", below: #"["Alpha","Doc"]"#))", #"{"of":"Alpha"}"#)
    broker.advance(milliseconds: 400)
    #expect(outcome(try worker.result(of: id)) == ["+Zed/Doc", "?Zed/Doc/View"])
    // Nobody got the state of the view.
    let left = ["Zed", "Zed/Doc", #"Zed/Doc/View {"of":"View"}"#]
    #expect(try states() == ["Alpha", #"Alpha/Doc {"v":2}"#, #"Alpha/Doc/View {"of":"Alpha"}"#] + left)
  }

  @Test func r24IfTheProcessEndsBeforeTheRestorationNothingMoves() throws {
    try save()
    let other = try fixture.join("O", pid: 5)
    let worker = try join(4, make: Self.alphaDoc)
    try other.register("Zed")
    try worker.call("extendStateRestoration")
    let id = other.start("restoreApplicationState", #"{"deadlineMilliseconds":1000}"#)
    #expect(fixture.log.contains("W decode Alpha/Doc") && !other.hasAnswer(id))
    broker.crash(worker)
    broker.advance(milliseconds: 1_000)
    #expect(other.hasAnswer(id))
    #expect(try states().contains(#"Zed/Doc {"v":1}"#))
  }

  @Test func r24AStateThatIsTooLongToBeSentIsFetchedFromTheObjectThatGetsIt() throws {
    let long = String(repeating: "x", count: 3_000)
    try save(state: #"{"long":"\#(long)"}"#)
    for isFetched in [false, true] {
      let worker = try join(isFetched ? 5 : 4, messageBytesMax: 4_096, make: Self.alphaDoc)
      worker.serves["decodeRestorableStateWithCoder"] = { _ in
        if isFetched { #expect((try? worker.state(#"["Alpha","Doc"]"#))??["long"]?.string == long) }
        _ = try? worker.encode(#"["Alpha","Doc"]"#, #"{"v":2}"#)
        return "{}"
      }
      #expect(try restore(worker).contains("+Zed/Doc"))
      // What nobody has fetched is not given up.
      #expect(try states().contains { $0.hasPrefix("Zed/Doc {") } == !isFetched)
      #expect(try states().contains(#"Alpha/Doc {"v":2}"#))
      try worker.call("unregisterObject", #"{"object":["Alpha","Doc"]}"#)
      broker.crash(worker)
    }
  }

  /// The state stays stored at the other object, so the answer to a decode is as if none were there (R15).
  @Test func r15R24AnEncodeExpectsNothingOfAStateThatIsAnotherObjects() throws {
    let long = String(repeating: "x", count: 3_000)
    try save(state: #"{"long":"\#(long)"}"#)
    let worker = try join(4, messageBytesMax: 4_096, make: Self.alphaDoc)
    worker.serves["decodeRestorableStateWithCoder"] = { _ in
      let decoded = try? worker.decode(#"["Alpha","Doc"]"#)
      #expect(decoded?["state"]?["long"]?.string == long)
      #expect(decoded?["sequence"] == 0)
      _ = try? worker.encode(#"["Alpha","Doc"]"#, #"{"long":"","v":2}"#, #""expecting":0"#)
      return "{}"
    }
    #expect(try restore(worker).contains("+Zed/Doc"))
    #expect(try states().contains(#"Alpha/Doc {"long":"","v":2}"#))
  }

  @Test(arguments: [false, true]) func r24ItMayBeBelowWhatItWasSavedAtOrAbove(_ isBelow: Bool) throws {
    try save([("Doc", #"["Zed","Doc"]"#, "", #"{"of":"Child"}"#)])
    let worker = try join(4) { isBelow ? try $0.register("Deep", below: #"["Zed","Doc"]"#) : try $0.register("Zed") }
    #expect(try restore(worker).contains("+Zed/Doc"))
    let below = ["Zed", "Zed/Doc", #"Zed/Doc/Deep {"v":1}"#, #"Zed/Doc/Deep/Doc {"of":"Child"}"#]
    #expect(try states() == (isBelow ? below : [#"Zed {"v":1}"#, "Zed/Doc", #"Zed/Doc/Doc {"of":"Child"}"#]))
  }

  @Test func r24AnExcludedObjectGetsTheStateAndNothingMoves() throws {
    try save()
    let worker = try join(4) { try $0.register(nil, below: nil, #""kind":"viewController""#) }
    #expect(try restore(worker) == ["+Zed/Doc"])
    #expect(fixture.log == ["W decode -"])
    #expect(try states().contains(#"Zed/Doc {"v":1}"#))
  }

  @Test func r22R24WhatTheFactoryRegistersAtThePathItselfIsTheOne() throws {
    try save()
    let worker = try join(4) { peer in
      try peer.register("Doc", below: #"["Zed"]"#)
      return try peer.register("Another")
    }
    #expect(try restore(worker) == ["+Zed/Doc"])
    #expect(fixture.log == ["W decode Zed/Doc"])
  }

  @Test func r24R25AnObjectOfAnotherClassDoesNotGetTheStateAndNothingMoves() throws {
    try save([("Typed", nil, Self.document + #","objectClass":"Old""#, #"{"v":3}"#)])
    let worker = try join(4) { try $0.register("New", below: nil, #""objectClass":"New""#) }
    // It answers for the typed one first, and was the answer for that one then.
    #expect(try restore(worker) == ["-Zed/Doc sameObject", "-Typed classMismatch"])
    #expect(try states() == ["New", #"Typed {"v":3}"#, "Zed", #"Zed/Doc {"v":1}"#])
  }
}
