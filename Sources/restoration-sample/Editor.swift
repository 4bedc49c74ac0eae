// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationClient

/// A process's objects, and the commands on them.
struct Editor {
  private static let application = "org.restorationd.Try"

  private let broker: BrokerConnection
  private let journal: Journal
  private let objects: [EditedObject]
  /// The same order as `objects`.
  private let references: [ObjectReference]

  /// Connects, opens a session and registers the objects; parents may come later.
  init(role: String, objects: [EditedObject], socket: String, journal: Journal) async throws {
    (self.objects, self.journal) = (objects, journal)
    broker = try await BrokerConnection.connect(to: socket)
    let session = try await broker.initialize(
      SessionOptions(application: Self.application, process: role, isDelegate: role == "windows")
    )
    references = try await Self.each(objects.indices) { [broker] index in
      let object = objects[index]
      let registration = ObjectRegistration(
        object.identifier,
        restorationParent: object.parent.map { .path([$0]) },
        kind: object.isWindow ? .viewController : .object,
        classes: [object.isWindow ? "Window" : "Document"],
        awaitParent: .seconds(30)
      )
      return try await broker.register(registration).reference
    }
    report("registered", #""objects":\#(objects.count),"reason":"\#(session.restoration.reason.rawValue)""#)
  }

  func obey(_ command: [String]) async throws {
    switch (command.first, command.count) {
    case ("save", 1): try await save()
    case ("type", 2): try await type(Int(command[1]) ?? 0)
    case ("decode", 1): try await decode()
    case ("move", 3): try await move(command[1], to: command[2])
    case ("told", 2): await waitForNewPaths(Int(command[1]) ?? 0)
    case ("goodbye", 1): try await leave()
    default: throw UnknownCommand(command: command)
    }
  }

  private func save() async throws {
    _ = try await Self.each(objects.indices, save)
    report("saved", #""objects":\#(objects.count)"#)
  }

  private func type(_ count: Int) async throws {
    for number in 1...max(1, count) {
      try await save(Int.random(in: objects.indices))
      if number % 50 == 0 { report("typing", #""states":\#(number)"#) }
    }
    report("typed", #""states":\#(count)"#)
  }

  private func save(_ index: Int) async throws {
    let state = objects[index].nextState()
    journal.note("sent", objects[index].key, state)
    try await broker.encode(RestorableState(jsonText: state), for: references[index])
    journal.note("done", objects[index].key)
  }

  private func decode() async throws {
    _ = try await Self.each(objects.indices) { index in
      let state = try await broker.decode(references[index]).state
      journal.note("back", objects[index].key, state?.jsonText ?? "null")
    }
    try await broker.call(CompleteStateRestoration())
    report("decoded", #""objects":\#(objects.count)"#)
  }

  private func move(_ key: String, to parent: String) async throws {
    guard let index = objects.firstIndex(where: { $0.key == key }) else { throw UnknownCommand(command: [key]) }
    let moved = try await broker.call(SetRestorationParent(object: references[index], restorationParent: [parent]))
    report("moved", #""path":\#(quoted(moved.path))"#)
  }

  /// Waits for `count` notifications of new paths.
  private func waitForNewPaths(_ count: Int) async {
    var paths: [String] = []
    for await notification in broker.notifications {
      if case .pathChanged(let facts) = notification { paths.append(quoted(facts.path)) }
      if paths.count >= count { break }
    }
    report("told", #""paths":[\#(paths.joined(separator: ","))]"#)
  }

  private func leave() async throws {
    try await broker.goodbye(.logout)
    await broker.close()
    report("left", #""objects":\#(objects.count)"#)
  }

  /// Makes a call for each index, several at once, which share the wait for the disk. Gives the results in order.
  private static func each<Result: Sendable>(
    _ indices: Range<Int>,
    _ call: @escaping @Sendable (Int) async throws -> Result
  ) async throws -> [Result] {
    try await withThrowingTaskGroup(of: (Int, Result).self) { group in
      var waiting = indices
      var results: [Int: Result] = [:]
      for index in waiting.prefix(64) { group.addTask { (index, try await call(index)) } }
      waiting = waiting.dropFirst(64)
      while let (index, result) = try await group.next() {
        results[index] = result
        if let next = waiting.popFirst() { group.addTask { (next, try await call(next)) } }
      }
      return indices.compactMap { results[$0] }
    }
  }

  /// A line on standard output, at once.
  private func report(_ event: String, _ members: String) {
    print(#"{"event":"\#(event)",\#(members)}"#)
    fflush(nil)
  }
}

struct UnknownCommand: Error {
  let command: [String]
}
