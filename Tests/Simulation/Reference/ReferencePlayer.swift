// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

internal import InMemory
internal import JSONRPC
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

/// Plays a history against the real service in memory, and tells what its clients see in the model's words.
final class ReferencePlayer {
  private let broker: MemoryBroker
  private let tool: Peer
  private var peers: [Int: Peer] = [:]
  private var handles: [Int: Int64] = [:]
  private var lastPID: Int64 = 100
  /// What clients were asked and told, in order.
  private var log: [String] = []
  /// The restoration that is not answered yet.
  private var pending: (peer: Peer, id: Int)?
  private var making: [String: ReferenceOperation.Making] = [:]
  private var answers = ReferenceModel.Answers()
  private var isDeclined = false
  /// What a client has passed on already.
  private var passed: Set<String> = []
  /// Calls that nobody waited for.
  private var noted: [Int: Set<Int>] = [:]
  /// The generation that the last round made.
  private(set) var generation: Int64?

  private static let calls = [
    "shouldSaveApplicationState", "willEncodeRestorableState", "encodeRestorableStateWithCoder",
    "shouldRestoreApplicationState", "didDecodeRestorableState", "objectWithRestorationIdentifierPath",
    "viewControllerWithRestorationIdentifierPath", "decodeRestorableStateWithCoder",
  ]
  private static let notifications = [
    "applicationFinishedRestoringState", "applicationStateSaved", "pathChanged", "registrationReplaced", "stateWanted",
  ]

  init(isDeveloperMode: Bool, record: @escaping (String) -> Void) {
    var limits = Limits()
    (limits.roundQuietMilliseconds, limits.roundIntervalMilliseconds) = (0, 0)
    // That it works in pieces must make no difference.
    broker = MemoryBroker(limits: limits, isDeveloperMode: isDeveloperMode, pieceObjects: 1, record: record)
    tool = broker.connect(pid: 1)
    // Its connection stays, and with it the archive as long as that is blank.
    let first = broker.connect(pid: 2)
    first.start("initialize", #"{"application":"App"}"#)
    first.start("goodbye", #"{"reason":"restart"}"#)
  }

  /// Does it, and returns the answer.
  func perform(_ operation: ReferenceOperation) -> String {
    switch operation {
    case .begin(let slot, let role, let isDelegate, let serves, let classes, let isShared):
      return begin(slot, role, isDelegate, serves, classes, isShared)
    case .end(let slot, let ending): return end(slot, ending)
    case .wait(let milliseconds):
      broker.advance(milliseconds: Int64(milliseconds))
      return "waited"
    case .register(let slot, let label, let facts):
      let result = register(peers[slot]!, facts)
      guard case .success(let answer) = result else { return result.words }
      handles[label] = answer["object"]?.integer
      let matches = answer["restoration"]?["classMatches"]?.bool == false ? " classMismatch" : ""
      let state = (answer["restoration"]?["state"]?.string ?? "-") + matches
      let place = "\(answer["path"]?.joined ?? "-") \(answer["included"]?.bool == true ? "included" : "excluded")"
      return "\(place) \(state) \(answer["existing"]?.bool ?? false)"
    case .unregister(let slot, let object, let keepsState):
      return call(slot, "unregisterObject", #""object":\#(json(object)),"keepState":\#(keepsState)"#).words
    case .place(let slot, let object, let parent, let takeOver):
      let parent = parent.map(json) ?? "null"
      let result = call(
        slot,
        "setRestorationParent",
        #""object":\#(json(object)),"restorationParent":\#(parent),"takeOver":\#(takeOver)"#
      )
      return result.words { $0["path"]?.joined ?? "-" }
    case .rename(let slot, let object, let name, let takeOver):
      let result = call(
        slot,
        "setRestorationIdentifier",
        #""object":\#(json(object)),\#(identifier(name)),"takeOver":\#(takeOver)"#
      )
      return result.words { "\($0["path"]?.joined ?? "-") \($0["included"]?.bool == true ? "included" : "excluded")" }
    case .arrange(let slot, let object, let children):
      let children = children.map(json).joined(separator: ",")
      let result = call(slot, "setChildren", #""object":\#(json(object)),"children":[\#(children)]"#)
      return result.words { ($0["paths"]?.array ?? []).map { $0.joined ?? "-" }.joined(separator: " ") }
    case .push(let slot, let object, let number, let targets, let revision):
      let state = #""object":\#(json(object)),"state":\#(state(number, targets))"#
      let result = call(slot, "encodeRestorableState", state + (revision.map { #","revision":\#($0)"# } ?? ""))
      return result.words {
        $0["discarded"]?.bool == true
          ? "discarded" : $0["included"]?.bool == false ? "unsaved" : $0["sequence"] == nil ? "superseded" : "stored"
      }
    case .decode(let slot, let object):
      return call(slot, "decodeRestorableState", #""object":\#(json(object))"#).words {
        $0["status"]?.string == "available" ? Self.words($0["state"]) : $0["status"]?.string ?? "-"
      }
    case .complete(let slot):
      return call(slot, "completeStateRestoration", "").words { "pending \($0["pending"]?.integer ?? -1)" }
    case .save(let number, let isDeclined, let failing, let unchanged, let links):
      return save(
        ReferenceModel.Answers(number: number, failing: failing, unchanged: unchanged, links: links),
        isDeclined
      )
    case .restore(let slot, let isDeclined, let making):
      (self.isDeclined, self.making, passed) = (isDeclined, making, [])
      let peer = slot.map { peers[$0]! } ?? tool
      pending = (peer, peer.start("restoreApplicationState", parameters(slot, "")))
      return "asked"
    }
  }

  // MARK: Sessions

  private func begin(
    _ slot: Int,
    _ role: String?,
    _ isDelegate: Bool,
    _ serves: Bool,
    _ classes: [String],
    _ isShared: Bool
  )
    -> String
  {
    lastPID += 1
    let peer = broker.connect(pid: lastPID)
    (peers[slot], noted[slot]) = (peer, nil)
    answer(peer, slot)
    let names = (serves ? Self.calls + Self.notifications : ["stateWanted"]).map { #""\#($0)""# }.joined(separator: ",")
    let id = peer.start(
      "initialize",
      #"{"application":"App","delegate":\#(isDelegate),"serves":[\#(names)]"#
        + (role.map { #","process":"\#($0)"}"# } ?? "}")
    )
    guard peer.resultIfAny(of: id) != nil else { return "failed" }
    let free = classes.filter {
      peer.resultIfAny(
        of: peer.start("registerRestorationClass", #"{"restorationClass":"\#($0)","shared":\#(isShared)}"#)
      ) != nil
    }
    return (["begun"] + free).joined(separator: " ")
  }

  private func end(_ slot: Int, _ ending: ReferenceOperation.Ending) -> String {
    guard let peer = peers.removeValue(forKey: slot) else { return "failed" }
    defer { takeNotifications(of: peer, slot) }
    if pending?.peer === peer { pending = nil }
    if ending == .crash {
      // Others end it: that proves nothing against what it was handed (R31).
      broker.crash(peer, ProcessEnd(.signalled(signal: 9)))
      return "done"
    }
    let id = peer.start("goodbye", #"{"reason":"\#(ending.rawValue)"}"#)
    defer { broker.disconnect(peer) }
    return peer.resultIfAny(of: id) == nil ? "failed" : "done"
  }

  /// Has the peer answer the calls of the broker, and notes them.
  private func answer(_ peer: Peer, _ slot: Int) {
    func serve(_ method: String, _ answer: @escaping (ReferencePlayer, JSONValue) -> String) {
      peer.serves[method] = { [unowned self] in answer(self, $0) }
    }
    for (method, word) in [
      ("shouldSaveApplicationState", "shouldSave"), ("shouldRestoreApplicationState", "shouldRestore"),
      ("didDecodeRestorableState", "didDecode"),
    ] {
      serve(method) { player, call in
        let state = Self.words(call["state"])
        player.log.append("\(slot) \(word) \(state)")
        return "\(!player.isDeclined)"
      }
    }
    serve("willEncodeRestorableState") { player, _ in
      player.log.append("\(slot) willEncode")
      return player.answers.links[""].map { #"{"state":\#(player.state(player.answers.number, $0))}"# } ?? "null"
    }
    serve("encodeRestorableStateWithCoder") { player, call in
      let states = (call["objects"]?.array ?? []).map { player.encode(slot, $0) }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    serve("decodeRestorableStateWithCoder") { player, call in
      for object in call["objects"]?.array ?? [] {
        player.log.append("\(slot) decode \(object["path"]?.joined ?? "-") \(Self.words(object["state"]))")
      }
      return "{}"
    }
    for method in ["objectWithRestorationIdentifierPath", "viewControllerWithRestorationIdentifierPath"] {
      serve(method) { player, call in player.make(peer, slot, call) }
    }
  }

  private func encode(_ slot: Int, _ object: JSONValue) -> String {
    let path = object["path"]?.joined ?? "-"
    log.append("\(slot) encode \(path)")
    let answer =
      answers.failing.contains(path)
      ? #""error":"not now""#
      : answers.unchanged.contains(path)
        ? #""unchanged":true"# : #""state":\#(state(answers.number, answers.links[path] ?? []))"#
    return #"{"object":\#(object["object"]?.integer ?? 0),\#(answer)}"#
  }

  private func make(_ peer: Peer, _ slot: Int, _ call: JSONValue) -> String {
    let path = call["identifierPath"]?.joined ?? "-"
    log.append("\(slot) make \(path) \(Self.words(call["state"]).replacing("*", with: ""))")
    var other: String?
    switch making[path] {
    case .refused: return "null"
    case .awaited: return #"{"awaited":true}"#
    case .forgotten: return #"{"object":null,"forget":true}"#
    case .passed:
      let isDelegate = call["restorationClass"] == nil
      if passed.insert(path).inserted || isDelegate { return #"{"pass":true}"# }
    case .elsewhere(let path): other = path
    case nil: break
    }
    var components = (other ?? path).split(separator: "/").map(String.init)
    let name = components.removeLast()
    let parent = components.isEmpty ? nil : ReferenceOperation.Object.path(components.joined(separator: "/"))
    let made = call["restorationClass"]?.string
    let kind = ReferenceOperation.Kind(of: name)
    let result = register(
      peer,
      ReferenceOperation.Registration(name: name, parent: parent, kind: kind, restorationClass: made)
    )
    guard case .success(let answer) = result, let handle = answer["object"]?.integer else { return "null" }
    return #"{"object":\#(handle)}"#
  }

  private func save(_ answers: ReferenceModel.Answers, _ isDeclined: Bool) -> String {
    (self.answers, self.isDeclined) = (answers, isDeclined)
    let result = call(nil, "saveApplicationState", "")
    guard case .success(let value) = result else { return result.words }
    generation = value["saved"]?.bool == true ? value["generation"]?.integer : nil
    if value["reason"]?.string == "declined" { return "declined" }
    let stale = (value["stale"]?.array ?? []).map {
      let path = $0["path"]?.joined ?? "-"
      return "\(path.isEmpty ? "application" : path) \($0["why"]?.string ?? "-")"
    }
    let excluded = (value["excluded"]?.array ?? []).map { $0["path"]?.joined ?? "-" }
    let lists = "stale \(stale.sorted()) excluded \(excluded.sorted())"
    return "\(value["reason"]?.string ?? "saved") \(value["objects"]?.integer ?? -1) \(lists)"
  }

  // MARK: What clients see

  /// Everything since the last call of this, in order; notifications and the answer to a restoration come last.
  func takeEvents() -> [String] {
    for (slot, peer) in peers { takeUnawaited(of: peer, slot) }
    for (slot, peer) in peers.sorted(by: { $0.key < $1.key }) { takeNotifications(of: peer, slot) }
    if let (peer, id) = pending, peer.hasAnswer(id) {
      pending = nil
      guard let result = peer.resultIfAny(of: id) else { return log + ["restoration failed"] }
      let lists = ["restored", "skipped", "absent"].map { name in
        let paths = (result[name]?.array ?? []).map { entry in
          entry.joined ?? "\(entry["path"]?.joined ?? "-") \(entry["reason"]?.string ?? "-")"
        }
        return "\(name) \(paths.sorted())"
      }
      log.append(result["declined"]?.bool == true ? "declined" : lists.joined(separator: " "))
    }
    defer { log = [] }
    return log
  }

  /// At the deadline the delegate is told, and its answer is not awaited.
  private func takeUnawaited(of peer: Peer, _ slot: Int) {
    for call in peer.calls where call.method == "didDecodeRestorableState" && !call.isAnswered {
      guard noted[slot, default: []].insert(call.id).inserted else { continue }
      log.append("\(slot) didDecode \(Self.words(call.parameters["state"]))")
    }
  }

  private func takeNotifications(of peer: Peer, _ slot: Int) {
    for (method, parameters) in peer.notifications {
      switch method {
      case "pathChanged": log.append("\(slot) moved \(parameters["path"]?.joined ?? "-")")
      case "registrationReplaced": log.append("\(slot) replaced \(parameters["path"]?.joined ?? "-")")
      case "stateWanted": log.append("\(slot) wanted \(parameters["path"]?.joined ?? "-")")
      case "applicationStateSaved": log.append("\(slot) saved")
      default:
        let handles = (parameters["objects"]?.array ?? []).compactMap(\.integer)
        log += handles.map { "\(slot) finished \(path(of: $0))" }
      }
    }
    _ = peer.takeNotifications("")
  }

  /// All objects that have a path: path, kind, owner, inclusion and newest state.
  func head() -> [String] {
    guard case .success(let description) = call(nil, "describeApplication", ""),
      case .success(let archive) = call(nil, "readArchive", "")
    else { return [] }
    var states: [String: String] = [:]
    for object in archive["objects"]?.array ?? [] {
      states[object["path"]?.joined ?? "-"] = Self.words(object["state"])
    }
    let slots = Dictionary(uniqueKeysWithValues: peers.map { ($0.value.connection.process.pid, $0.key) })
    return (description["objects"]?.array ?? []).compactMap { object in
      guard let path = object["path"]?.joined else { return nil }
      let owner = object["object"]?.integer == nil ? nil : object["pid"]?.integer.flatMap { slots[Int32($0)] } ?? -1
      let state = states[path]?.replacing("*", with: "") ?? "-"
      return
        "\(path) \(object["kind"]?.string ?? "") \(owner.map(String.init) ?? "-") "
        + "\(object["included"]?.bool ?? false) \(state)"
    }.sorted()
  }

  private func path(of handle: Int64) -> String {
    guard case .success(let description) = call(nil, "describeApplication", "") else { return "?" }
    return description["objects"]?.array?.first { $0["object"]?.integer == handle }?["path"]?.joined ?? "-"
  }

  /// States of the generation that the last round made.
  func generationStates() -> [String] {
    let read = call(nil, "readArchive", #""generation":\#(generation ?? 0)"#)
    guard case .success(let archive) = read else { return [] }
    return (archive["objects"]?.array ?? []).filter { $0["status"]?.string == "available" }
      .map { "\($0["path"]?.joined ?? "-") \(Self.words($0["state"]).replacing("*", with: ""))" }.sorted()
  }

  // MARK: JSON

  private enum Answer {
    case success(JSONValue)
    case failure(String)

    var words: String { words { _ in "done" } }

    func words(_ result: (JSONValue) -> String) -> String {
      switch self {
      case .success(let value): result(value)
      case .failure(let kind): "error \(kind)"
      }
    }
  }

  private func register(_ peer: Peer, _ facts: ReferenceOperation.Registration) -> Answer {
    let members: [String?] = [
      identifier(facts.name), #""kind":"\#(facts.kind.rawValue)""#,
      facts.parent.map { #""restorationParent":\#(json($0))"# }, facts.objectClass.map { #""objectClass":"\#($0)""# },
      facts.restorationClass.map { #""restorationClass":"\#($0)""# }, facts.takeOver ? #""takeOver":true"# : nil,
    ]
    return answer(peer, "registerObjectForStateRestoration", "{\(members.compactMap { $0 }.joined(separator: ","))}")
  }

  private func call(_ slot: Int?, _ method: String, _ members: String) -> Answer {
    answer(slot.map { peers[$0]! } ?? tool, method, parameters(slot, members))
  }

  private func parameters(_ slot: Int?, _ members: String) -> String {
    let application = slot == nil ? #""application":"App""# : ""
    return "{\([application, members].filter { !$0.isEmpty }.joined(separator: ","))}"
  }

  private func answer(_ peer: Peer, _ method: String, _ parameters: String) -> Answer {
    let id = peer.start(method, parameters)
    if let result = peer.resultIfAny(of: id) { return .success(result) }
    return .failure(peer.failureIfAny(of: id)?.kind ?? "none")
  }

  private func identifier(_ name: String?) -> String {
    guard let parts = name?.split(separator: "#") else { return #""restorationIdentifier":null"# }
    let position = parts.count > 1 ? #","position":\#(parts[1])"# : ""
    return #""restorationIdentifier":"\#(parts[0])"\#(position)"#
  }

  private func json(_ object: ReferenceOperation.Object) -> String {
    switch object {
    case .label(let label): "\(handles[label] ?? 9_007_199_254_740_991)"
    case .path(let path): "[\(path.split(separator: "/").map { "\"\($0)\"" }.joined(separator: ","))]"
    }
  }

  private func state(_ number: Int, _ targets: [String]) -> String {
    let optional = number % 3 == 0 ? #","optional":true"# : ""
    let references = targets.map { #"{"$restorable":\#(json(.path($0)))\#(optional)}"# }.joined(separator: ",")
    return targets.isEmpty ? #"{"n":\#(number)}"# : #"{"n":\#(number),"to":[\#(references)]}"#
  }

  private static func words(_ state: JSONValue?) -> String {
    guard let state, let number = state["n"]?.integer else { return "none" }
    let targets = (state["to"]?.array ?? []).map { target in
      target["$restorable"]?.joined.map { $0 + (target["object"]?.integer == nil ? "" : "*") } ?? "-"
    }
    return ([String(number)] + targets).joined(separator: " ")
  }
}
