// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Thousands of random calls, crashes, failed transactions and restarts; after every one the tree must be sound and the
/// archive must say the same.
@Suite(.passesTurnstile) struct FloodTests {
  @Test(arguments: [1, 2, 3, 13, 95, 136, 334] as [UInt64])
  func anythingInAnyOrderKeepsTheTreeSoundAndTheArchiveTrue(_ seed: UInt64) throws {
    var flood = Flood(seed: seed)
    for step in 0..<1_200 {
      flood.step()
      guard flood.isSound() else {
        Issue.record("seed \(seed), step \(step): \(flood.recent.suffix(12).joined(separator: "\n"))")
        return
      }
    }
    flood.end()
    #expect(flood.unanswered.isEmpty)
    // Not a flood of refusals.
    #expect(flood.stored > 50)
  }
}

/// Random clients of one application.
struct Flood {
  let broker: MemoryBroker
  private(set) var recent: [String] = []
  private var generator: SeededGenerator
  private var peers: [Peer] = []
  private var tokens: [String] = []
  private var handles: [Int64] = []
  private var nextPID: Int64 = 1
  private var calls: [(peer: Peer, id: Int)] = []

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    var limits = Limits()
    limits.objectsPerApplicationMax = 60
    limits.pathBytesMax = 40
    broker = MemoryBroker(limits: limits)
  }

  /// States the archive holds, over all time.
  var stored: Int { broker.logs["App"]?.count { if case .state(_) = $0 { true } else { false } } ?? 0 }

  /// Calls without an answer although nothing is held back, except those of lost connections.
  var unanswered: [String] {
    calls.filter { $0.peer.isConnected && !$0.peer.hasAnswer($0.id) }.map { "client \($0.peer.id), call \($0.id)" }
  }

  func isSound() -> Bool {
    guard let application = broker.application("App") else { return true }
    guard case .open = application.phase else { return true }
    var inspection = TreeInspection(application)
    if !broker.holdsCommits, let archive = broker.disk.archive("App") { inspection.compare(with: archive) }
    for fault in inspection.faults { Issue.record("\(fault)") }
    return inspection.faults.isEmpty
  }

  /// Makes everything durable and lets all waiting end.
  mutating func end() {
    if broker.holdsCommits {
      broker.holdsCommits = false
      broker.commit()
    }
    broker.advance(milliseconds: 100_000)
  }

  // MARK: Steps

  mutating func step() {
    peers.removeAll { !$0.isConnected }
    if peers.count < 3 || chance(20) { connect() }
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<25: register()
    case 25..<50: encode()
    case 50..<58: decode()
    case 58..<72: move()
    case 72..<76: unregister()
    case 76..<79: send("completeStateRestoration", "{}")
    case 79..<83: goodbye()
    case 83..<88: leave()
    case 88..<92: broker.advance(milliseconds: Int64.random(in: 1...30_000, using: &generator))
    case 92..<95: holdOrLetGo()
    case 95..<96: restart()
    case 96..<97 where chance(4): send("discardApplicationState", #"{"generations":\#(chance(2)),"force":true}"#)
    default: send(pick(["readArchive", "describeApplication", "listGenerations"]), "{}")
    }
  }

  private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }

  private mutating func pick(_ words: [String]) -> String { words[Int.random(in: words.indices, using: &generator)] }

  private mutating func identifier() -> String { pick(["a", "b", "c", "d", "e\u{301}", "\u{e9}"]) }

  private mutating func path() -> String {
    let length = Int.random(in: 1...3, using: &generator)
    let components = (0..<length).map { _ in #""\#(identifier())\#(chance(4) ? "#\(chance(2) ? 0 : 1)" : "")""# }
    return "[\(components.joined(separator: ","))]"
  }

  private mutating func reference() -> String {
    if chance(2), let handle = handles.suffix(40).randomElement(using: &generator) { return "\(handle)" }
    return path()
  }

  /// A random client and, mostly, one of its own objects.
  private mutating func target() -> (Peer, String)? {
    guard let peer = peers.randomElement(using: &generator) else { return nil }
    let session = broker.application("App")?.sessions.values.first { $0.client == peer.id }
    let own = session?.objects.keys.sorted() ?? []
    guard !chance(4), let handle = own.randomElement(using: &generator) else { return (peer, reference()) }
    return (peer, "\(handle)")
  }

  /// Sends a call of a random client; without a session it names the application.
  @discardableResult
  private mutating func send(_ method: String, _ parameters: String, by sender: Peer? = nil) -> (Peer, Int)? {
    guard let peer = sender ?? peers.randomElement(using: &generator) else { return nil }
    let separator = parameters == "{}" ? "" : ","
    let all = #"{"application":"App"\#(separator)\#(parameters.dropFirst())"#
    recent.append("\(peer.id) \(method) \(all)")
    if recent.count > 100 { recent.removeFirst(50) }
    let id = peer.start(method, all)
    calls.append((peer, id))
    if let answer = peer.resultIfAny(of: id) {
      if let handle = answer["object"]?.integer { handles.append(handle) }
      if let token = answer["session"]?.string { tokens.append(token) }
    }
    return (peer, id)
  }

  private mutating func connect() {
    if chance(3) { nextPID += 1 }
    let peer = broker.connect(pid: Int64.random(in: max(1, nextPID - 3)...nextPID, using: &generator))
    peers.append(peer)
    guard !chance(4) else { return }
    var more = #""serves":["pathChanged","registrationReplaced"],"process":"\#(identifier())""#
    if chance(3), let token = tokens.suffix(10).randomElement(using: &generator) { more += #","session":"\#(token)""# }
    if chance(8) { more += #","delegate":true"# }
    send("initialize", "{\(more)}", by: peer)
    peers.removeAll { !$0.isConnected }
  }

  private mutating func register() {
    let kind = pick(["object", "viewController", "view"])
    let name = kind != "object" && chance(4) ? "null" : "\"\(identifier())\""
    var parameters = #"{"restorationIdentifier":\#(name),"kind":"\#(kind)""#
    if !chance(3) { parameters += #","restorationParent":\#(reference())"# }
    if chance(5) { parameters += #","position":\#(chance(2) ? 0 : 1)"# }
    if chance(6) { parameters += #","takeOver":true"# }
    if chance(6) { parameters += #","awaitParentMilliseconds":5000"# }
    if chance(6) { parameters += #","objectClass":"\#(identifier())""# }
    send("registerObjectForStateRestoration", parameters + "}")
  }

  private mutating func encode() {
    let state = chance(4) ? #"{"r":{"$restorable":\#(reference())}}"# : #"{"n":\#(calls.count)}"#
    let revision = chance(4) ? #","revision":\#(Int.random(in: 1...9, using: &generator))"# : ""
    guard let (peer, object) = target() else { return }
    send("encodeRestorableState", #"{"object":\#(object),"state":\#(state)\#(revision)}"#, by: peer)
  }

  private mutating func decode() {
    guard let (peer, object) = target() else { return }
    send("decodeRestorableState", #"{"object":\#(object)}"#, by: peer)
  }

  private mutating func unregister() {
    guard let (peer, object) = target() else { return }
    send("unregisterObject", #"{"object":\#(object),"keepState":\#(chance(2))}"#, by: peer)
  }

  private mutating func move() {
    let takeOver = chance(3) ? #","takeOver":true"# : ""
    guard let (peer, object) = target() else { return }
    switch Int.random(in: 0..<5, using: &generator) {
    case 0, 1:
      let parent = chance(4) ? "null" : reference()
      send("setRestorationParent", #"{"object":\#(object),"restorationParent":\#(parent)\#(takeOver)}"#, by: peer)
    case 2, 3:
      let name = chance(4) ? "null" : "\"\(identifier())\""
      let position = chance(4) ? #","position":0"# : ""
      send(
        "setRestorationIdentifier",
        #"{"object":\#(object),"restorationIdentifier":\#(name)\#(position)\#(takeOver)}"#,
        by: peer
      )
    default:
      arrange()
    }
  }

  /// Calls `setChildren` with the children that there are, in a random order.
  private mutating func arrange() {
    guard let application = broker.application("App"),
      let parent = application.tree.claimed.sorted(by: { $0.key < $1.key }).randomElement(using: &generator)
    else { return }
    let owner = parent.value.claim.flatMap { application.sessions[$0.session]?.client }
    guard let peer = peers.first(where: { $0.id == owner }) else { return }
    var children = parent.value.children.sorted().compactMap { application.tree.nodes[$0] }
    children.shuffle(using: &generator)
    let references = children.map { child in
      child.claim.map { "\($0.handle)" } ?? application.tree.path(of: child).map { JSONText($0.json).string } ?? "1"
    }
    send("setChildren", #"{"object":\#(parent.key),"children":[\#(references.joined(separator: ","))]}"#, by: peer)
  }

  private mutating func goodbye() {
    let reason = pick(["closed", "restart", "logout", "userQuit"])
    guard let (peer, _) = send("goodbye", #"{"reason":"\#(reason)"}"#), chance(2) else { return }
    recent.append("\(peer.id) disconnects")
    broker.disconnect(peer)
    peers.removeAll { $0 === peer }
  }

  private mutating func leave() {
    guard let peer = peers.randomElement(using: &generator) else { return }
    switch Int.random(in: 0..<4, using: &generator) {
    case 0:
      recent.append("\(peer.id) crashes")
      broker.crash(peer)
    case 1:
      recent.append("\(peer.id) is killed")
      broker.kill(peer)
      return
    case 2:
      recent.append("\(peer.id) is killed unnoticed")
      broker.killUnnoticed(peer)
      return
    default:
      recent.append("\(peer.id) disconnects")
      broker.disconnect(peer)
    }
    peers.removeAll { $0 === peer }
    nextPID += 1
  }

  private mutating func holdOrLetGo() {
    guard broker.holdsCommits else {
      broker.holdsCommits = true
      return
    }
    broker.holdsCommits = false
    let fails = chance(2)
    recent.append(fails ? "the commit fails" : "commit")
    if fails { broker.failCommit("App", thenWait: 1_000) } else { broker.commit() }
  }

  private mutating func restart() {
    recent.append("the broker restarts")
    broker.holdsCommits = false
    broker.restart()
    peers = []
  }
}
