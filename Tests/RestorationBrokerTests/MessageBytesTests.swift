// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Nothing longer than a client reads is sent to it unasked: `Peer` looks at every message that comes.
@Suite struct MessageBytesTests {
  private let fixture = RestoringFixture()
  private var broker: MemoryBroker { fixture.broker }
  /// A name that takes twice its bytes as JSON, so that its path takes about ten thousand.
  private static func name(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "\"", count: 255 - digits.utf8.count) + digits
  }

  /// The longest path there may be, whose last component is the given name; the objects above it are registered.
  private static func parent(_ peer: Peer) throws -> String {
    var path: [String] = []
    for depth in 0..<15 {
      let parent = path.isEmpty ? nil : JSONText(.array(path.map { .string($0) })).string
      try peer.register(name(depth), below: parent)
      path.append(name(depth))
    }
    return JSONText(.array(path.map { .string($0) })).string
  }

  private static let everything =
    RestoringFixture.served + [
      "encodeRestorableStateWithCoder", "shouldSaveApplicationState", "willEncodeRestorableState", "pathChanged",
      "modelIdentifierForElementAtIndexPath",
    ]

  /// Its bundle version takes six times its bytes as JSON.
  private func join(_ pid: Int64, _ messageBytesMax: Int, _ more: String = "") throws -> Peer {
    let peer = broker.connect(pid: pid)
    let names = Self.everything.map { "\"\($0)\"" }.joined(separator: ",")
    let version = String(repeating: #"\u0001"#, count: 1_024)
    let members = #""bundleVersion":"\#(version)","messageBytesMax":\#(messageBytesMax),"serves":[\#(names)]"#
    try peer.initialize("App", more.isEmpty ? members : members + "," + more)
    peer.serves["encodeRestorableStateWithCoder"] = { parameters in
      let states = (parameters["objects"]?.array ?? []).map { object in
        #"{"object":\#(object["object"]?.integer ?? 0),"state":{"n":1}}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    fixture.answer(peer, "P")
    peer.serves["shouldSaveApplicationState"] = { _ in "true" }
    peer.serves["willEncodeRestorableState"] = { _ in "{}" }
    return peer
  }

  /// R12, R21: however long paths and reserved keys are, each object is saved and restored.
  @Test(arguments: [4_096, 20_000, 65_536, 1_000_000])
  func batchesOfLongPathsAreSplit(_ bytesMax: Int) throws {
    let writer = try join(1, bytesMax)
    let parent = try Self.parent(writer)
    for number in 0..<70 { try writer.register(Self.name(100 + number), below: parent) }
    let saved = try writer.call("saveApplicationState")
    #expect(saved["objects"] == 85)
    #expect(saved["stale"] == [])
    broker.crash(writer)
    let reader = try join(2, bytesMax)
    _ = try Self.parent(reader)
    for number in 0..<70 { try reader.register(Self.name(100 + number), below: parent) }
    var decoded = 0
    reader.serves["decodeRestorableStateWithCoder"] = { parameters in
      decoded += parameters["objects"]?.array?.count ?? 0
      return "{}"
    }
    let result = try reader.call("restoreApplicationState")
    #expect((result["restored"]?.array?.count ?? 0) + Int(result["omitted"]?.integer ?? 0) == 85)
    #expect(decoded == 85)
    #expect(fixture.finished(reader).count == 85)
  }

  @Test func whoReadsNotEvenOneObjectIsNotWaitedFor() throws {
    try fixture.save([("A", nil, "", "{}")])
    let reader = try join(2, 150)
    try reader.register("A")
    #expect(outcome(try reader.call("restoreApplicationState")) == ["-A failed"])
  }

  /// R11: the application's own state may be larger than what its delegate reads; then the delegate fetches it.
  @Test(arguments: [700, 20_000, 65_536, 1_000_000])
  func theDelegateFetchesWhatItCannotBeSent(_ bytesMax: Int) throws {
    let text = String(repeating: "x", count: 200_000)
    let delegate = try join(1, bytesMax, #""delegate":true"#)
    delegate.serves["willEncodeRestorableState"] = { _ in #"{"state":{"t":"\#(text)"}}"# }
    var shown: [JSONValue] = []
    for method in ["shouldSaveApplicationState", "shouldRestoreApplicationState", "didDecodeRestorableState"] {
      delegate.serves[method] = { parameters in
        shown.append(parameters)
        guard parameters["deferred"] == true else { return "true" }
        #expect(parameters["state"] == .null)
        let fetched = try? delegate.decode("[]")
        #expect(fetched?["state"]?["t"]?.string?.count == 200_000)
        #expect(fetched?["coder"]?["UIApplicationStateRestorationUserInterfaceIdiomKey"] == -1)
        return "true"
      }
    }
    try delegate.encode("\(try delegate.register("A"))", "{}")
    try delegate.call("saveApplicationState")
    try delegate.encode(#"["A"]"#, #"{"n":2}"#)
    try delegate.call("saveApplicationState")
    try delegate.goodbye("restart")
    let again = try join(2, bytesMax, #""delegate":true"#)
    for (method, answer) in delegate.serves { again.serves[method] = answer }
    again.serves["shouldRestoreApplicationState"] = { parameters in
      shown.append(parameters)
      return "true"
    }
    again.serves["didDecodeRestorableState"] = again.serves["shouldRestoreApplicationState"]
    try again.register("A")
    try again.call("restoreApplicationState")
    #expect(shown.count == 4)
    #expect(shown[0] == ["state": nil, "coder": nil])
    for parameters in shown.dropFirst() {
      #expect(parameters["deferred"] == (bytesMax < 200_000 ? true : nil))
      #expect(parameters["state"]?["t"]?.string?.count == (bytesMax < 200_000 ? nil : 200_000))
    }
  }

  /// R24: a factory is called, however little its client reads, and fetches states that do not fit.
  @Test(arguments: [1_500, 20_000, 65_536])
  func aFactoryFetchesWhatItCannotBeSent(_ bytesMax: Int) throws {
    let writer = try join(1, 1_000_000)
    let more = #""restorationClass":"C","kind":"viewController""#
    let text = String(repeating: "x", count: 40_000)
    try writer.encode("\(try writer.register("Made", below: nil, more))", #"{"t":"\#(text)"}"#)
    broker.crash(writer)
    let reader = try join(2, bytesMax)
    var asked: [JSONValue] = []
    reader.serves["objectWithRestorationIdentifierPath"] = { parameters in
      asked.append(parameters)
      return (try? reader.register("Made", below: nil, more)).map { #"{"object":\#($0)}"# }
    }
    try reader.call("registerRestorationClass", #"{"restorationClass":"C"}"#)
    #expect(outcome(try reader.call("restoreApplicationState")) == ["+Made"])
    #expect(asked.first?["deferred"] == true)
    #expect(asked.first?["coder"]?.isNull == (bytesMax < 10_000))
    #expect(try reader.decode(#"["Made"]"#)["state"]?["t"]?.string?.count == 40_000)
  }

  /// R28: an element whose call would be too long stays as it is, and the others are looked up.
  @Test func elementsThatCannotBeAskedAboutStayAsTheyAre() throws {
    let long = String(repeating: "m", count: 70_000)
    let path = (0..<40_000).map { _ in "1" }.joined(separator: ",")
    let view = #""kind":"view""#
    let writer = try join(1, 65_536)
    try writer.register("C", below: nil, #""kind":"viewController""#)
    let table = try writer.register("T", below: #"["C"]"#, view)
    try writer.call("registerDataSource", #"{"view":["C","T"]}"#)
    var asked = 0
    writer.serves["modelIdentifierForElementAtIndexPath"] = { _ in
      asked += 1
      return #""model""#
    }
    let elements =
      #"[{"role":"selected","indexPath":[\#(path)]},{"role":"selected","indexPath":[3]},"#
      + #"{"role":"topVisible","indexPath":[4],"identifier":"\#(long)"}]"#
    writer.serves["encodeRestorableStateWithCoder"] = { parameters in
      let states = (parameters["objects"]?.array ?? []).compactMap { $0["object"]?.integer }.map { handle in
        handle == table
          ? #"{"object":\#(handle),"state":{},"elements":\#(elements)}"# : #"{"object":\#(handle),"state":{}}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    #expect(try writer.call("saveApplicationState")["objects"] == 2)
    #expect(asked == 1)
    broker.crash(writer)
    let reader = try join(2, 65_536)
    try reader.register("C", below: nil, #""kind":"viewController""#)
    let again = try reader.register("T", below: #"["C"]"#, view)
    try reader.call("registerDataSource", #"{"view":["C","T"]}"#)
    reader.serves["indexPathForElementWithModelIdentifier"] = { $0["identifier"] == "model" ? "[7]" : "null" }
    let back = try #require(try reader.decode("\(again)")["elements"]?.array)
    #expect(back.map { $0["indexPath"]?.array?.count } == [40_000, 1, 1])
    #expect(back[1]["indexPath"] == [7])
    #expect(back[2]["identifier"]?.string?.count == 70_000)
    #expect(back[2]["indexPath"] == [4])
  }

  @Test func aNotificationThatIsTooLongIsNotSent() throws {
    let peer = try join(1, 1_000)
    try peer.register("A")
    try peer.register("B", below: #"["A"]"#)
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    #expect(peer.takeNotifications("pathChanged").count == 1)
    let long = JSONText(.string(Self.name(1))).string
    try peer.call("setRestorationIdentifier", #"{"object":["Z"],"restorationIdentifier":\#(long)}"#)
    #expect(peer.takeNotifications("pathChanged").count == 1)
    #expect(broker.logged.isEmpty)
    let little = try join(3, 150)
    try little.register("D")
    try little.register("E", below: #"["D"]"#)
    let other = JSONText(.string(Self.name(2))).string
    try little.call("setRestorationIdentifier", #"{"object":["D"],"restorationIdentifier":\#(other)}"#)
    #expect(little.notifications.isEmpty)
    #expect(broker.logged.contains { $0.hasPrefix("pathChanged was not sent") })
  }

  /// R12: objects are named by handles alone for a client that reads little.
  @Test func aClientThatReadsLittleIsAskedWithoutPaths() throws {
    let peer = try join(1, 400)
    let parent = try Self.parent(peer)
    _ = try peer.register("Last", below: parent)
    #expect(try peer.call("saveApplicationState")["objects"] == 16)
    let paths = peer.calls.filter { $0.method == "encodeRestorableStateWithCoder" }
      .flatMap { $0.parameters["objects"]?.array ?? [] }.map { $0["path"]?.array?.count }
    #expect(paths.contains(nil))
  }

  @Test func whatAPollerFetchesFitsToo() throws {
    let poller = try Poller(broker, serves: ["encodeRestorableStateWithCoder"], #""messageBytesMax":20000"#)
    for number in 0..<64 { try poller.register("\(number)" + String(repeating: "x", count: 250)) }
    let saver = broker.connect(pid: 9)
    saver.start("saveApplicationState", #"{"application":"App"}"#)
    let peer = poller.connect()
    let id = peer.start("nextRequest", poller.scoped(""))
    #expect(try peer.text(id).utf8.count <= 20_000)
    #expect(try peer.result(of: id)["params"]?["objects"]?.array?.count ?? 0 > 10)
  }
}
