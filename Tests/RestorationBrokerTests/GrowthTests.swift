// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import TestSupport
internal import Testing

/// Whatever the broker is asked to do, with whatever tree: with four times as many objects it has about four times as
/// much to do, not sixteen times, and a call about one object costs about the same.
@Suite struct GrowthTests {
  @Test(arguments: GrowingTree.Shape.allCases)
  func noWorkGrowsFasterThanTheTree(_ shape: GrowingTree.Shape) throws {
    let count = Environment.isLong ? 1_024 : 48
    var few: [GrowingTree.Work] = []
    var many: [GrowingTree.Work] = []
    // The least of several runs counts: whatever else the machine does only adds to one, and may for a while. Work that
    // grows too fast does so in all of them.
    for _ in 1...10 {
      few = try GrowingTree(shape, of: count).work(orLess: few)
      many = try GrowingTree(shape, of: 4 * count).work(orLess: many)
      if zip(few, many).allSatisfy({ $1.isInBounds(comparedWith: $0) }) { return }
    }
    for (few, many) in zip(few, many) where !many.isInBounds(comparedWith: few) {
      let work = "\(few.nanoseconds) ns for \(count) objects, \(many.nanoseconds) ns for \(4 * count)"
      Issue.record("\(many.name): \(work), more than \(many.bound.rawValue) times as much")
    }
  }
}

/// An application with a tree, to which everything is done, one after the other.
final class GrowingTree {
  /// What a tree may look like.
  enum Shape: CaseIterable {
    /// All below one.
    case wide
    /// Chains of 32. Longer ones have longer paths, which is work of its own.
    case chains
    /// One chain, in which every second object has no identifier.
    case halfNameless
    /// All below one, and none has an identifier.
    case nameless
    /// A chain without identifiers, with a plain object below each.
    case comb
    /// Below one are objects without identifiers, below each of these is one that only the state of the one before
    /// refers to.
    case references
  }

  /// How many times as much work four times as many objects may be.
  enum Bound: Double {
    /// Of what is done to the whole tree: half of what is in proportion to the square of the objects.
    case tree = 8
    /// Of what is done to as many objects of either tree: half of what is in proportion to all of them.
    case call = 2
  }

  struct Work {
    let name: String
    let bound: Bound
    fileprivate(set) var nanoseconds: Int64

    func isInBounds(comparedWith few: Self) -> Bool {
      Double(nanoseconds) < bound.rawValue * Double(max(few.nanoseconds, 200_000))
    }
  }

  private let shape: Shape
  private let count: Int
  private let broker: MemoryBroker
  private var owner: Peer
  private let tool: Peer
  private var handles: [Int64] = []
  private var done: [Work] = []
  private var worked: Int64 = 0

  init(_ shape: Shape, of count: Int) throws {
    (self.shape, self.count) = (shape, count)
    var limits = Limits()
    // A document comes at once.
    limits.valuesPerFrameMax = 1 << 20
    broker = MemoryBroker(limits: limits)
    tool = broker.connect(pid: 900)
    owner = tool
    broker.meter = { [unowned self] body in
      let begin = ThreadTime.now
      body()
      worked += ThreadTime.now - begin
    }
    try begin(pid: 100, serves: false)
  }

  deinit { broker.meter = nil }

  /// Does everything; returns how much work each was, or how much it was before if that is less.
  func work(orLess former: [Work]) throws -> [Work] {
    try measure("register", .tree) { try registerAll() }
    try measureCalls()
    let generation = try #require(
      try measure("save", .tree) { try finish(owner, "saveApplicationState") }["generation"]?.integer
    )
    try measureReading(generation)
    try measureMoves()
    try measureNextRuns()
    // The first one may have given way.
    let generations = try tool.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array ?? []
    let kept = generations.compactMap { $0["generation"]?.integer }.min() ?? 0
    try measure("roll back", .tree) { try finish(owner, "rollBack", #"{"generation":\#(kept),"force":true}"#) }
    try measureEnd()
    return zip(done, former + done.dropFirst(former.count)).map { $0.nanoseconds < $1.nanoseconds ? $0 : $1 }
  }

  // MARK: The tree

  /// The application runs (again), in another process.
  private func begin(pid: Int64, serves: Bool) throws {
    owner = broker.connect(pid: pid)
    owner.serves["decodeRestorableStateWithCoder"] = { _ in "{}" }
    owner.serves["encodeRestorableStateWithCoder"] = { call in
      let objects = call["objects"]?.array?.compactMap { $0["object"]?.integer } ?? []
      let states = objects.map { #"{"object":\#($0),"state":{"n":3}}"# }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    let served = serves ? #""encodeRestorableStateWithCoder","decodeRestorableStateWithCoder""# : ""
    try owner.initialize("App", #""serves":[\#(served)]"#)
  }

  private func registerAll(_ more: String = "") throws {
    handles = []
    for number in 0..<count { handles.append(try register(number, more)) }
  }

  private func register(_ number: Int, _ more: String = "") throws -> Int64 {
    let parent = parent(of: number).map { "\(handles[$0])" }
    let kind = shape == .comb && name(number) != nil && number > 0 ? "object" : "viewController"
    let request = owner.registration(name(number), below: parent, #""kind":"\#(kind)"\#(more)"#)
    let result = try finish(owner, "registerObjectForStateRestoration", request)
    return try #require(result["object"]?.integer)
  }

  private func parent(of number: Int) -> Int? {
    guard number > 0 else { return nil }
    return switch shape {
    case .wide, .nameless: 0
    case .chains: number % 32 == 0 ? 0 : number - 1
    case .halfNameless: number - 1
    case .comb: number % 2 == 1 ? max(0, number - 2) : number - 1
    case .references: number % 2 == 1 ? 0 : number - 1
    }
  }

  private func name(_ number: Int) -> String? {
    let isNameless =
      switch shape {
      case .wide, .chains: false
      case .halfNameless, .comb, .references: number % 2 == 1
      case .nameless: number > 0
      }
    return isNameless ? nil : "n\(number)"
  }

  private func state(_ number: Int, _ content: Int) -> String {
    let next = handles[(number / 2 * 2 + 2) % count]
    return #"{"n":\#(content)\#(shape == .references ? #","next":{"$restorable":\#(next)}"# : "")}"#
  }

  // MARK: Everything

  private func measureCalls() throws {
    for number in 0..<count { try encode(number, 0) }
    try measure("encode", .call) { for number in last { try encode(number, 1) } }
    try measureEach("decode", "decodeRestorableState")
    try measureEach("explain", "explainRestoration")
    try measure("unregister and register", .call) {
      for number in last.reversed() { try finish(owner, "unregisterObject", #"{"object":\#(handles[number])}"#) }
      handles.removeLast(last.count)
      for number in last { handles.append(try register(number)) }
    }
    for number in last { try encode(number, 2) }
  }

  private func measureReading(_ generation: Int64) throws {
    for method in ["describeApplication", "readArchive"] {
      try measure(method, .tree) { try pages(method, #""application":"App""#) }
    }
    try measure("compare", .tree) { try pages("diffGenerations", #""application":"App","from":\#(generation)"#) }
    try measure("verify", .tree) { try finish(tool, "verifyArchive", #"{"application":"App"}"#) }
    try measure("components", .tree) { try finish(tool, "listPathComponents", #"{"application":"App","path":["n0"]}"#) }
  }

  private func measureMoves() throws {
    let other = try owner.register("Other", #""kind":"viewController""#)
    for parent in ["\(other)", "null"] {
      try measure("move all to \(parent == "null" ? "the top" : "another")", .tree) {
        try finish(owner, "setRestorationParent", #"{"object":\#(handles[0]),"restorationParent":\#(parent)}"#)
      }
    }
    for name in [#""Main""#, "null", #""n0""#] {
      try measure("rename the root to \(name)", .tree) { try rename(0, name) }
    }
    // What is included may be another part of the tree then, so all of it is looked at.
    try measure("rename", .tree) {
      for number in last { try rename(number, #""r\#(number)""#) }
      for number in last { try rename(number, name(number).map { "\"\($0)\"" } ?? "null") }
    }
    // A restoration would wait for it.
    try finish(owner, "unregisterObject", #"{"object":\#(other)}"#)
  }

  private func rename(_ number: Int, _ name: String) throws {
    try finish(
      owner,
      "setRestorationIdentifier",
      #"{"object":\#(handles[number]),"restorationIdentifier":\#(name)}"#
    )
  }

  private func measureNextRuns() throws {
    measure("crash", .tree) { broker.crash(owner) }
    try begin(pid: 200, serves: true)
    try measure("claim", .tree) { try registerAll() }
    try measure("restore", .tree) { try finish(owner, "restoreApplicationState") }
    try measure("save by asking", .tree) { try finish(owner, "saveApplicationState") }
    try measureEach("invalidate", "invalidateRestorableState")
    if shape == .wide {
      try measure("order", .tree) {
        let children = handles.dropFirst().reversed().map { "\($0)" }.joined(separator: ",")
        try finish(owner, "setChildren", #"{"object":\#(handles[0]),"children":[\#(children)]}"#)
      }
    }
    broker.crash(owner)
    try begin(pid: 300, serves: true)
    try measure("claim what is new", .tree) { try registerAll(#","fresh":true"#) }
  }

  private func measureEnd() throws {
    var document = ""
    try measure("export", .tree) { document = try tool.export("App") }
    measure("close", .tree) { _ = owner.start("unregisterObject", #"{"object":\#(handles[0])}"#) }
    measure("reopen", .tree) { _ = owner.start("reopenObject", #"{"path":["n0"]}"#) }
    try measure("say goodbye", .tree) { try owner.goodbye("restart") }
    try measure("import", .tree) { try tool.importDocument(document, into: "Copy", #""force":true"#) }
    let all = #""generations":true,"force":true"#
    try measure("discard", .tree) { try finish(tool, "discardApplicationState", #"{"application":"App",\#(all)}"#) }
    try measure("forget", .tree) { try finish(tool, "forgetApplication", #"{"application":"Copy","force":true}"#) }
  }

  // MARK: Calls

  /// A few objects, as deep and as late as there are.
  private var last: Range<Int> { count - 16..<count }

  private func encode(_ number: Int, _ content: Int) throws {
    try finish(owner, "encodeRestorableState", owner.encoding("\(handles[number])", state(number, content)))
  }

  private func measureEach(_ name: String, _ method: String) throws {
    try measure(name, .call) { for number in last { try finish(owner, method, #"{"object":\#(handles[number])}"#) } }
  }

  /// Lets the time pass that the call takes.
  @discardableResult
  private func finish(_ peer: Peer, _ method: String, _ parameters: String = "{}") throws -> JSONValue {
    let call = peer.start(method, parameters)
    peer.connection.wait { peer.hasAnswer(call) }
    return try peer.result(of: call)
  }

  private func pages(_ method: String, _ members: String) throws {
    var cursor: String?
    repeat {
      let more = cursor.map { #","cursor":"\#($0)""# } ?? ""
      cursor = try finish(tool, method, "{\(members)\(more)}")["cursor"]?.string
    } while cursor != nil
  }

  @discardableResult
  private func measure<Value>(_ name: String, _ bound: Bound, _ body: () throws -> Value) rethrows -> Value {
    let before = worked
    defer { done.append(Work(name: name, bound: bound, nanoseconds: worked - before)) }
    return try body()
  }
}
