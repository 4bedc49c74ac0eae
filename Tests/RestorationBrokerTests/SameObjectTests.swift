// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Factories that answer with objects whose paths are others than those that were asked for (R24).
@Suite struct SameObjectTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  /// Saves `Zed/Doc`, which a class makes.
  private func save() throws {
    try fixture.save([("Zed", nil, "", nil), ("Doc", #"["Zed"]"#, #""restorationClass":"Docs""#, #"{"v":1}"#)])
  }

  /// A process that answers for `Zed/Doc` with the object that `make` registers.
  private func join(make: @escaping (Peer) throws -> Int64) throws -> Peer {
    let peer = try fixture.join("W", pid: 4)
    peer.serves["objectWithRestorationIdentifierPath"] = { _ in
      (try? make(peer)).map { #"{"object":\#($0)}"# } ?? "null"
    }
    try peer.call("registerRestorationClass", #"{"restorationClass":"Docs"}"#)
    return peer
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

  @Test func r24AnObjectAtAnotherPathGetsNothingAndWhatIsSavedStays() throws {
    try save()
    let worker = try join { try $0.register("Doc", below: "\(try $0.register("Alpha"))") }
    #expect(try restore(worker) == ["-Zed/Doc sameObject"])
    #expect(fixture.log.isEmpty)
    try worker.encode(#"["Alpha","Doc"]"#, #"{"v":2}"#)
    #expect(try states() == ["Alpha", #"Alpha/Doc {"v":2}"#, "Zed", #"Zed/Doc {"v":1}"#])
  }

  @Test(arguments: [false, true])
  func r24AProgramThatHasRenamedAnObjectMakesItAtTheSavedPathAndRenamesIt(_ isAtOnce: Bool) throws {
    let rename = { (peer: Peer) in
      try peer.call("setRestorationIdentifier", #"{"object":["Zed","Doc"],"restorationIdentifier":"Text"}"#)
    }
    try save()
    let worker = try join { peer in
      defer { if isAtOnce { _ = try? rename(peer) } }
      return try peer.register("Doc", below: #"["Zed"]"#)
    }
    #expect(try restore(worker) == ["+Zed/\(isAtOnce ? "Text" : "Doc")"])
    #expect(fixture.log == ["W decode Zed/\(isAtOnce ? "Text" : "Doc")"])
    if !isAtOnce { _ = try rename(worker) }
    #expect(try states() == ["Zed", #"Zed/Text {"v":1}"#])
  }

  @Test func r22R24AFactoryThatRegistersThePathItselfHasMadeTheObject() throws {
    try save()
    let worker = try join { peer in
      try peer.register("Doc", below: #"["Zed"]"#)
      return try peer.register("Another")
    }
    #expect(try restore(worker) == ["+Zed/Doc"])
    #expect(fixture.log == ["W decode Zed/Doc"])
  }
}
