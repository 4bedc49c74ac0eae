// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Whatever an archive holds: export, import and export give the same text, and every state is the same.
@Suite struct RoundTripTests {
  @Test(arguments: 100..<120 as Range<UInt64>)
  func anyArchiveComesOutAsItWentIn(_ seed: UInt64) throws {
    var flood = Flood(seed: seed)
    for round in 0..<6 {
      for _ in 0..<60 { flood.step() }
      let broker = flood.broker
      if broker.holdsCommits {
        broker.holdsCommits = false
        broker.commit()
      }
      guard case .open = broker.application("App")?.phase else { continue }
      let tool = broker.connect(pid: 1_000_000)
      let document = try tool.export("App")
      let copy = "Copy\(round)"
      try tool.importDocument(document, into: copy)
      #expect(try tool.export(copy) == document, "seed \(seed), round \(round)")
      try compareStates(tool, copy, seed)
      if let application = broker.application(copy) {
        #expect(TreeInspection(application).faults.isEmpty, "seed \(seed), round \(round)")
      }
      #expect(try tool.call("verifyArchive", #"{"application":"\#(copy)"}"#)["sound"] == true)
      #expect(try tool.call("verifyArchive", #"{"application":"App"}"#)["sound"] == true)
      // On top of what there is, and after a restart, it is the same again.
      try tool.importDocument(document, into: copy, #""force":true"#)
      #expect(try tool.export(copy) == document)
      broker.disconnect(tool)
    }
  }

  /// All readers see the same states, except for handles and numbers of changes: the copy has no live sessions, and
  /// counts its own changes.
  private func compareStates(_ tool: Peer, _ copy: String, _ seed: UInt64) throws {
    for object in try tool.objects(#""application":"App""#) {
      guard let path = object["path"], !path.isNull else { continue }
      let call = { (application: String) in
        #"{"application":"\#(application)","object":\#(JSONText(path).string)}"#
      }
      let original = try withoutHandles(tool.call("decodeRestorableState", call("App")))
      let imported = try withoutHandles(tool.call("decodeRestorableState", call(copy)))
      for member in ["status", "state", "coder", "elements", "confidential"] {
        #expect(original[member] == imported[member], "seed \(seed): \(path)")
      }
    }
  }

  private func withoutHandles(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): return .array(elements.map(withoutHandles))
    case .object(let object):
      let isReference = object["$restorable"] != nil
      return .object(
        JSONObject(
          object.members.map {
            (name: $0.name, value: isReference && $0.name == "object" ? .null : withoutHandles($0.value))
          }
        )
      )
    default: return value
    }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func textsOfStatesAreNotChanged(_ seed: UInt64) throws {
    var texts = RandomText(seed: seed)
    let broker = MemoryBroker()
    let peer = broker.connect()
    var states: [(path: String, state: String)] = []
    for index in 0..<40 {
      let path = #"["o\#(index)"]"#
      let state = texts.state()
      try peer.encode(path, state, #""application":"App""#)
      states.append((path, state))
    }
    try peer.importDocument(try peer.export("App"), into: "Copy")
    for (path, state) in states {
      let id = peer.start("decodeRestorableState", #"{"application":"Copy","object":\#(path)}"#)
      #expect(try peer.text(id).contains(#""state":\#(state),"#), "seed \(seed)")
    }
    #expect(try peer.export("App") == peer.export("Copy"))
  }
}

/// Random JSON as clients may write it, without white space.
private struct RandomText {
  private var generator: SeededGenerator

  private static let scalars = [
    "0", "-0", "-0.0", "0.1", "1e400", "1E-400", "1.50", "123456789012345678901234567890", "1e0", "true", "false",
    "null",
    #""""#, #""\u0000""#, #""\/\b\f""#, #""\ud83d\ude00😀""#, #""é e\u0301""#, #""$restorable""#, "[]", "{}", "[[],{}]",
    #"{"":{"":""}}"#, #"{"a":1,"a":2}"#, #"{"$literal":{"$restorable":["nowhere"]}}"#, #"{"$data":"AA=="}"#,
  ]

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func state() -> String {
    let count = Int.random(in: 0...6, using: &generator)
    return "{" + (0..<count).map { #""k\#($0)":\#(value(depth: 5))"# }.joined(separator: ",") + "}"
  }

  private mutating func value(depth: Int) -> String {
    let count = Int.random(in: 0...3, using: &generator)
    switch depth == 0 ? 0 : Int.random(in: 0..<4, using: &generator) {
    case 0, 1: return Self.scalars[Int.random(in: Self.scalars.indices, using: &generator)]
    case 2: return "[" + (0..<count).map { _ in value(depth: depth - 1) }.joined(separator: ",") + "]"
    default: return "{" + (0..<count).map { #""m\#($0)":\#(value(depth: depth - 1))"# }.joined(separator: ",") + "}"
    }
  }
}
