// SPDX-License-Identifier: Apache-2.0

// What is unwrapped is there: a session or an object that is named without being there is a fault of the model.
// swift-format-ignore-file: NeverForceUnwrap

internal import SeededRandom

/// Chooses what happens next in a history: it looks at the model, so that most of what it asks for is possible.
struct ReferenceGenerator {
  typealias Operation = ReferenceOperation
  private typealias Registration = Operation.Registration

  private static let names = ["cA", "cB", "cTab#0", "cTab#1", "cTab#2", "vA", "vB", "oA", "oB"]

  private var random: SeededGenerator
  /// As it is when the next operations are chosen.
  private var model = ReferenceModel(isDeveloperMode: true)
  private var number = 0

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// One operation, or some that belong together.
  mutating func next(_ model: ReferenceModel) -> [Operation] {
    self.model = model
    number += 1
    guard let session = pick(sessions) else { return (0..<3).map { begin($0, isFirst: $0 == 0) } }
    switch Int(random.next() % 40) {
    case 0..<10: return [register(session)]
    case 10..<15: return push(session)
    case 15..<18: return [decode(session)]
    case 18, 38, 39: return factory(session)
    case 23: return [.complete(session)]
    case 19, 20:
      return [.unregister(chance(3) ? nil : session, chance(3) ? .path(path()) : object(session), keepState: chance(2))]
    case 22: return [.rename(session, object(session), chance(4) ? nil : name(), takeOver: chance(3))]
    case 24: return [.place(session, object(session), below: parent(), takeOver: chance(3))]
    case 21, 25: return claim(session)
    case 26: return arrange(session)
    case 27: return tabs(session)
    case 28..<31: return [save()]
    case 31..<33: return [restore(session)]
    case 33: return [.wait(milliseconds: pick([500, 1_000, 6_000, 11_000, 61_000]) ?? 1)]
    case 34: return [.end(session, pick([.crash, .crash, .restart, .logout, .closed, .userQuit]) ?? .crash)]
    case 35: return sessions.count < 4 ? [begin(isFirst: model.delegate == nil)] : []
    default: return relaunch()
    }
  }

  // MARK: Choosing

  private mutating func chance(_ one: Int) -> Bool { Int(random.next() % UInt64(one)) == 0 }

  private mutating func pick<Element>(_ elements: [Element]) -> Element? { elements.randomElement(using: &random) }

  private var sessions: [Int] { model.sessions.keys.filter { !model.sessions[$0]!.isOver }.sorted() }

  private var paths: [String] { model.nodes.keys.compactMap { model.path(of: $0) }.sorted() }

  private mutating func name() -> String { pick(Self.names) ?? "cA" }

  private mutating func path() -> String { pick(paths) ?? "oA" }

  private func labels(of session: Int? = nil) -> [Int] {
    model.labels.filter { _, claim in
      let owner = model.node(ofClaim: claim).flatMap { model[$0].claim?.session }
      return owner != nil && (session == nil || owner == session)
    }.keys.sorted()
  }

  /// An object, most likely one of this session.
  private mutating func object(_ session: Int) -> Operation.Object {
    if chance(8) { return .path(path()) }
    if chance(20), let label = pick(model.labels.keys.sorted()) { return .label(label) }
    guard let label = pick(labels(of: session)) else { return .path(path()) }
    let path = model.find(.label(label)).flatMap { model.path(of: $0) }
    return path.map { chance(2) ? .path($0) : .label(label) } ?? .label(label)
  }

  private mutating func parent() -> Operation.Object? {
    if chance(3) { return nil }
    if chance(2), let label = pick(labels()) { return .label(label) }
    return .path(path())
  }

  // MARK: Single operations

  private mutating func begin(_ more: Int = 0, isFirst: Bool, as old: Int? = nil) -> Operation {
    let serves = !chance(5)
    let id = (model.sessions.keys.max() ?? -1) + 1 + more
    return .begin(
      id,
      role: chance(4) ? nil : old.flatMap { model.sessions[$0]?.role } ?? ["main", "tools"][id % 2],
      delegate: isFirst && !chance(3),
      serves: serves,
      classes: serves ? ["A", "B"].filter { _ in !chance(3) } : [],
      shared: !chance(3)
    )
  }

  private mutating func register(_ session: Int) -> Operation {
    let vacant = model.nodes.keys.filter { model[$0].claim == nil }.sorted()
    if chance(2), let path = pick(vacant).flatMap({ model.path(of: $0) }) { return register(session, number, path) }
    let name = chance(5) ? nil : name()
    let kind = name.map { Operation.Kind(of: $0) } ?? (chance(2) ? .view : .viewController)
    return register(session, number, name, parent(), kind)
  }

  /// Registers what was there before.
  private mutating func register(_ session: Int, _ label: Int, _ path: String) -> Operation {
    let components = path.split(separator: "/").map(String.init)
    let parent = components.dropLast().joined(separator: "/")
    let name = components.last ?? "oA"
    return register(session, label, name, parent.isEmpty ? nil : .path(parent), Operation.Kind(of: name))
  }

  private mutating func register(
    _ session: Int,
    _ label: Int,
    _ name: String?,
    _ parent: Operation.Object?,
    _ kind: Operation.Kind
  ) -> Operation {
    let objectClass = chance(5) ? pick(["X", "Y"]) : nil
    let made = chance(3) ? pick(["A", "B", "A", "B", ""]) : nil
    var facts = Registration(name: name, parent: parent, kind: kind, objectClass: objectClass, restorationClass: made)
    facts.takeOver = chance(6)
    return .register(session, label: label, facts)
  }

  private mutating func push(_ session: Int) -> [Operation] {
    let targets = chance(3) ? (0..<(chance(3) ? 2 : 1)).map { _ in path() } : []
    if chance(6) {
      let object = Operation.Object.path(chance(2) ? path() : path() + "/oN")
      return [.push(nil, object, number, to: targets.filter(paths.contains), revision: nil)]
    }
    let revision = !chance(3) ? Int(random.next() % 5) + 1 : nil
    let object = object(session)
    let push = Operation.push(session, object, number, to: targets, revision: revision)
    // What is not stored is shown to no reader.
    if let id = model.find(object), !model.isSaved(id) { return [push, .decode(chance(2) ? nil : session, object)] }
    return revision != nil && chance(2) ? [push, push] : [push]
  }

  private mutating func decode(_ session: Int) -> Operation {
    let excluded = model.nodes.keys.filter { model[$0].saved != nil && !model.isSaved($0) }.sorted()
    if let path = pick(excluded).flatMap({ model.path(of: $0) }) {
      return .decode(chance(2) ? nil : session, .path(path))
    }
    return .decode(chance(4) ? nil : session, object(session))
  }

  private mutating func save() -> Operation {
    let paths = paths
    var links: [String: [String]] = [:]
    let excluded = model.nodes.keys.filter { !model.isIncluded($0) }.compactMap { model.path(of: $0) }.sorted()
    for path in paths + [""] where chance(4) {
      links[path] = (0..<(chance(3) ? 2 : 1)).compactMap { _ in chance(2) ? pick(excluded) ?? pick(paths) : pick(paths)
      }
    }
    let failing = paths.filter { _ in chance(12) }
    return .save(
      number,
      isDeclined: chance(10),
      failing: failing,
      unchanged: paths.filter { _ in chance(4) },
      links: links
    )
  }

  private mutating func restore(_ session: Int, isDeclined: Bool? = nil) -> Operation {
    var making: [String: Operation.Making] = [:]
    for path in paths {
      switch Int(random.next() % 10) {
      case 0..<2: making[path] = .refused
      case 2: making[path] = .forgotten
      case 3: making[path] = .passed
      case 4..<6, 8: making[path] = .awaited
      case 6..<8: making[path] = .elsewhere(chance(3) ? self.path() : name())
      default: break
      }
    }
    return .restore(chance(3) ? nil : session, isDeclined: isDeclined ?? chance(6), making: making)
  }

  // MARK: Several operations

  /// An object moves to where another one was.
  private mutating func claim(_ session: Int) -> [Operation] {
    let vacant = model.nodes.keys.filter { model[$0].claim == nil && model[$0].name != nil }.sorted()
    let saved = vacant.filter { model[$0].saved != nil }
    let blank = labels(of: session).filter { model.find(.label($0)).map { model[$0].saved == nil } ?? false }
    guard let id = pick(saved) ?? pick(vacant), let label = pick(blank) ?? pick(labels(of: session)) else { return [] }
    let above = model[id].parent.flatMap { model.path(of: $0) }.map { Operation.Object.path($0) }
    return [
      .rename(session, .label(label), "cN", takeOver: false),
      .place(session, .label(label), below: above, takeOver: false),
      .rename(session, .label(label), model[id].name, takeOver: chance(2)),
    ]
  }

  private mutating func arrange(_ session: Int) -> [Operation] {
    let owned = model.owned(by: session).filter { !model.children(of: $0).isEmpty }
    guard let id = pick(owned), let path = model.path(of: id) else { return [] }
    let children = model.children(of: id).compactMap { model.path(of: $0) }.sorted().shuffled(using: &random)
    return [.arrange(session, .path(path), children.prefix(Int(random.next() % 4)).map { .path($0) })]
  }

  /// A container closes the gap that a child leaves whose owner has left, or that was closed.
  private mutating func tabs(_ session: Int) -> [Operation] {
    let label = number * 1_000
    func register(_ more: Int, _ name: String, _ parent: Operation.Object?) -> Operation {
      let facts = Registration(name: name, parent: parent, kind: .viewController, takeOver: true)
      return .register(session, label: label + more, facts)
    }
    let root = pick(["cA", "cB"]) ?? "cA"
    let children = (0..<3).map { register($0 + 1, "cTab#\($0)", .label(label)) }
    let isClosed = chance(3)
    let isArranged = isClosed || chance(2)
    let left = Operation.Object.path("\(root)/cTab#1")
    return [register(0, root, nil)] + children + [
      .push(session, left, number, to: [], revision: nil),
      .push(nil, .path("\(root)/cTab#1/oN"), number, to: [], revision: nil),
      .unregister(session, left, keepState: !isClosed),
    ] + (isArranged && chance(2) ? [.push(session, .label(label + 3), number, to: [], revision: nil)] : []) + [
      isArranged
        ? .arrange(session, .label(label), [.label(label + 1), .label(label + 3)])
        : .rename(session, .label(label + 3), "cTab#1", takeOver: chance(2))
    ]
  }

  /// All processes end, start again, register what they had, push something, and restore, in another order.
  private mutating func relaunch() -> [Operation] {
    let old = sessions.shuffled(using: &random).prefix(3)
    let ends = sessions.map { Operation.end($0, chance(2) ? .crash : pick([.restart, .logout]) ?? .crash) }
    let begins = old.enumerated().map { begin($0, isFirst: $0 == 0, as: $1) }
    let ids = old.indices.map { (model.sessions.keys.max() ?? -1) + 1 + $0 }
    var registrations: [Operation] = []
    for (index, path) in paths.filter({ _ in !chance(3) }).prefix(5).enumerated() {
      let (session, label) = (pick(ids) ?? 0, number * 1_000 + index)
      registrations.append(register(session, label, path))
      if chance(2) { registrations.append(.push(session, .label(label), number, to: [], revision: nil)) }
      if chance(4) { registrations.append(.decode(session, .label(label))) }
    }
    let caller = ids.first ?? 0
    let at = Int(random.next() % UInt64(registrations.count + 1))
    let isDeclined = chance(2)
    let first = restore(caller, isDeclined: isDeclined)
    let after = registrations.compactMap { operation -> Operation? in
      guard case .register(let session, let label, _) = operation else { return nil }
      return .push(session, .label(label), number + 1, to: [], revision: nil)
    }
    let again = isDeclined ? [restore(caller, isDeclined: false)] : []
    let later = pick([after, [.wait(milliseconds: 11_000), restore(caller)], [.end(pick(ids) ?? 0, .crash)]]) ?? []
    return ends + begins + registrations[..<at] + [first] + registrations[at...] + again + later
  }

  /// An object with something below it is saved; the next process makes it, or does not, and has what is below.
  private mutating func factory(_ session: Int) -> [Operation] {
    let (label, root) = (number * 1_000, pick(["cA", "cB", "oA", "oB"]) ?? "cA")
    let (id, child) = ((model.sessions.keys.max() ?? -1) + 1, root + "/oA")
    let kind = Operation.Kind(of: root)
    let facts = Registration(name: root, kind: kind, restorationClass: "A", takeOver: true)
    let below = Registration(name: "oA", parent: .path(root), kind: .object)
    func push(_ session: Int?, _ path: String, _ more: Int) -> Operation {
      .push(session, .path(path), label + more, to: [], revision: nil)
    }
    let makings: [Operation.Making?] = [.refused, .refused, .forgotten, .passed, .awaited, .elsewhere("cN"), nil]
    let making = pick(makings) ?? nil
    let saved: [Operation] = [
      .register(session, label: label, facts), push(session, root, 1), push(nil, child + "/oB", 2),
      push(nil, child, 3),
    ]
    let isDeclined = chance(4)
    let begins =
      (0..<3).map {
        let isDelegate = $0 == 0 && isDeclined
        return .begin(
          id + $0,
          role: nil,
          delegate: isDelegate,
          serves: true,
          classes: $0 == 2 ? [] : ["A"],
          shared: true
        )
      } as [Operation]
    let early: [Operation] = [.register(id + 2, label: label + 1, facts), push(id + 2, root, 4), .end(id + 2, .crash)]
    let live: [Operation] = [.register(id + 1, label: label + 2, below), push(id + 1, child, 5)]
    func restore(_ making: Operation.Making?, isDeclined: Bool = false) -> Operation {
      .restore(id, isDeclined: isDeclined, making: [root: making].compactMapValues { $0 })
    }
    return saved + sessions.map { .end($0, chance(2) ? .crash : .restart) } + begins + (chance(3) ? early : [])
      + (chance(2) ? [] : live) + (isDeclined ? [restore(nil, isDeclined: true)] : [])
      + [restore(making), push(id + 1, child, 7), .decode(id + 1, .path(child)), .complete(id + 1)]
      + (chance(2) ? [restore(chance(2) ? .awaited : nil)] : [])
      + [.register(id, label: label + 4, facts), push(id, root, 8)]
  }
}
