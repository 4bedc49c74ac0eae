// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// A whole application is restored: a delegate and eight workers in three languages with 500 objects between them.
///
/// Objects have parents and references in other processes, half of the workers' are made by factories, and a table's
/// rows come from another process, if they were reordered meanwhile.
@Suite(.broker) struct WholeApplicationTests {
  private static let application = "org.example.Whole"
  private static let languages: [ServingClient.Language] = [
    .swift, .python, .perl, .swift, .python, .perl, .swift, .python,
  ]
  private static let documents = 61
  private static let table = ["Main", "W0", "Table"]
  private static let delegateObjects = ["Main", "Sidebar", "Status"]

  /// A worker's object, with everything needed to make it again.
  private struct Document {
    let worker: Int
    let number: Int

    /// Every fourth is below a worker that is another process.
    var parent: [String] { ["Main", "W\(number % 4 == 0 ? (worker + 1) % 8 : worker)"] }
    var path: [String] { parent + ["D\(worker).\(number)"] }
    /// Every second is made by a factory.
    var restorationClass: String? { number % 2 == 0 ? "Factory\(worker)" : nil }
    /// The document of the same number in the next process.
    var next: Document { Document(worker: (worker + 1) % 8, number: number) }

    var state: JSONValue {
      [
        "id": .string("D\(worker).\(number)"), "text": .string(String(repeating: "x", count: number * 13)),
        "next": ["$restorable": .strings(next.path)], "near": [["$restorable": .strings(parent)]],
      ]
    }

    func registration(withState: Bool) -> JSONObject {
      var object: JSONObject = [
        "identifier": .string(path[2]), "parent": .strings(parent), "await": 20_000, "classes": ["Document"],
      ]
      if let restorationClass { object["restorationClass"] = .string(restorationClass) }
      if withState { object["state"] = state }
      return object
    }
  }

  private static func documents(of worker: Int) -> [Document] {
    (0..<documents).map { Document(worker: worker, number: $0) }
  }

  /// The processes, each with the objects that it makes itself at its start.
  private struct Processes {
    var delegate: ServingClient
    var workers: [ServingClient]

    var all: [ServingClient] { [delegate] + workers }
  }

  private static func root(_ worker: Int) -> JSONObject {
    [
      "identifier": .string("W\(worker)"), "parent": ["Main"], "kind": "viewController", "await": 20_000,
      "state": ["worker": .integer(Int64(worker))],
    ]
  }

  private static func view(_ elements: JSONValue) -> JSONObject {
    [
      "identifier": "Table", "parent": .path("Main", "W0"), "kind": "view", "state": ["table": true],
      "elements": elements,
    ]
  }

  private static func startDelegate() throws -> ServingClient {
    let delegate = try broker.serving(.python, of: application, as: "delegate", ["delegate": true])
    try delegate.register(
      delegateObjects.map { name in
        var object: JSONObject = [
          "identifier": .string(name), "kind": "viewController", "state": ["is": .string(name)],
        ]
        if name != "Main" { object["parent"] = ["Main"] }
        return object
      }
    )
    return delegate
  }

  /// - Parameter isFirst: whether the worker makes all of its objects and gives them states, instead of some without.
  private static func startWorker(_ index: Int, _ broker: BrokerFixture, isFirst: Bool) throws -> ServingClient {
    let worker = try broker.serving(languages[index], of: application, as: "worker \(index)")
    try worker.tell("class", ["restorationClass": .string("Factory\(index)")])
    try worker.register([root(index)])
    if index == 0 {
      // The last of them no longer exists the second time.
      let elements: JSONValue = [
        ["role": "selected", "indexPath": [0, 3]], ["role": "topVisible", "indexPath": [0, 0]],
        ["role": "selected", "indexPath": [0, 5]],
      ]
      try worker.register([view(isFirst ? elements : [])])
    }
    // Some are below the root of a worker that is not started yet: the answer is taken when all are.
    let documents = documents(of: index).filter { isFirst || $0.restorationClass == nil }
    try worker.send("register", ["objects": .array(documents.map { .object($0.registration(withState: isFirst)) })])
    return worker
  }

  private static func start(isFirst: Bool) throws -> Processes {
    let delegate = try startDelegate()
    // The second time they come in another order.
    let order = isFirst ? Array(0..<8) : [5, 2, 7, 0, 3, 6, 1, 4]
    var workers: [Int: ServingClient] = [:]
    for index in order { workers[index] = try startWorker(index, broker, isFirst: isFirst) }
    for index in order {
      let answer = try workers[index]?.receive()
      guard answer?["objects"]?.array?.isEmpty == false else { throw TestFailure("\(index): \(answer?.text ?? "?")") }
    }
    let processes = Processes(delegate: delegate, workers: (0..<8).compactMap { workers[$0] })
    let items: JSONValue = isFirst ? [["a", "b", "c", "d", "e", "f"]] : [["e", "d", "c"], ["b", "a"]]
    try processes.workers[1].tell("dataSource", ["view": .strings(table), "items": items])
    return processes
  }

  /// Every object of the application: its path, and its worker, if it has one.
  private static let owners: [[String]: Int?] = {
    var owners: [[String]: Int?] = [:]
    for name in delegateObjects { owners[name == "Main" ? ["Main"] : ["Main", name]] = .some(nil) }
    for worker in 0..<8 {
      owners[["Main", "W\(worker)"]] = worker
      for document in documents(of: worker) { owners[document.path] = worker }
    }
    owners[table] = 0
    return owners
  }()

  /// Current handles by path.
  private static func handles() throws -> [[String]: JSONValue] {
    let reader = try broker.connect()
    var handles: [[String]: JSONValue] = [:]
    var parameters: JSONObject = ["application": .string(application)]
    repeat {
      let page = try reader.call("describeApplication", .object(parameters))
      for object in page["objects"]?.array ?? [] { handles[object.strings("path")] = object["object"] }
      parameters["cursor"] = page["cursor"]
    } while parameters["cursor"] != nil
    return handles
  }

  /// Everything of one worker was restored once, and its references are valid.
  private static func check(
    _ worker: ServingClient,
    _ index: Int,
    _ handles: [[String]: JSONValue],
    isLate: Bool = false
  ) throws {
    let restored = try worker.tell("restored")
    let objects = restored["objects"] ?? [:]
    for document in documents(of: index) {
      let found = objects[document.path.joined(separator: "/")]
      let state = found?["state"]
      #expect(found?["times"] == 1, "\(document.path)")
      #expect(state?["id"] == document.state["id"] && state?["text"] == document.state["text"], "\(document.path)")
      let next: JSONValue = [
        "$restorable": .strings(document.next.path), "object": handles[document.next.path] ?? "no handle",
      ]
      #expect(state?["next"] == next, "\(document.path)")
      let near: JSONValue = [
        "$restorable": .strings(document.parent), "object": handles[document.parent] ?? "no handle",
      ]
      #expect(state?["near"] == [near], "\(document.path)")
      #expect(found?["coder"]?["UIApplicationStateRestorationTimestampKey"]?.string?.count == 24, "\(document.path)")
    }
    #expect(objects["Main/W\(index)"]?["state"] == ["worker": .integer(Int64(index))])
    let names = owners.filter { $0.value == index }.keys.map { $0.joined(separator: "/") }
    #expect(Set(restored.strings("finished")) == Set(names), "worker \(index)")
    #expect(restored["finished"]?.array?.count == names.count, "worker \(index): each once")
    // Made first, then filled, then told (R21), unless it came late.
    let log = try worker.log()
    let kinds = log.compactMap { $0.split(separator: " ").first }.filter {
      ["create", "decode", "finished"].contains($0)
    }
    #expect(isLate || kinds == kinds.sorted(), "worker \(index): \(log.prefix(8))")
    #expect(kinds.filter { $0 == "create" }.count == (documents + 1) / 2, "worker \(index)")
  }

  /// R12, R14, R21, R22, R23, R24, R28
  @Test func fiveHundredObjectsOfNineProcessesComeBack() throws {
    #expect(Self.owners.count == 500)
    let first = try Self.start(isFirst: true)
    try first.delegate.tell("application", ["state": ["version": 7]])
    let saved = try first.delegate.tell("save", ["deadlineMilliseconds": 20_000])
    #expect(saved["saved"] == true)
    #expect(saved["stale"] == [])
    #expect(saved["objects"] == .integer(Int64(Self.owners.count)))
    for process in first.all { try process.kill() }
    try broker.crashAndRestart()

    let second = try Self.start(isFirst: false)
    for process in second.all { _ = try process.log() }
    let restored = try Self.restore(second)
    #expect(restored["skipped"] == [])
    #expect(restored["absent"] == [])
    let paths = (restored["restored"]?.array ?? []).map { $0.array?.compactMap(\.string) ?? [] }
    #expect(Set(paths) == Set(Self.owners.keys))
    #expect(paths.count == Self.owners.count)

    let handles = try Self.handles()
    for (index, worker) in second.workers.enumerated() {
      let names = Self.owners.filter { $0.value == index }
      try worker.awaits("finished", Int64(names.count))
      try Self.check(worker, index, handles)
    }
    let table = try second.workers[0].tell("restored")["objects"]?[Self.table.joined(separator: "/")]
    let rows = (table?["elements"]?.array ?? []).map { element in
      "\(element["role"]?.string ?? "?") \(element["identifier"]?.string ?? "?") \(element["indexPath"]?.text ?? "?")"
    }
    #expect(rows == ["selected d [0,1]", "topVisible a [1,1]"])
    #expect(table?["elements"]?.array?.allSatisfy { $0["resolved"] == true } == true)
    #expect(table?["state"] == ["table": true])
    try second.delegate.awaits("finished", 3)
    let delegate = try second.delegate.tell("restored")
    #expect(delegate["application"] == ["version": 7])
    for name in Self.delegateObjects {
      let path = name == "Main" ? name : "Main/\(name)"
      #expect(delegate["objects"]?[path]?["state"] == ["is": .string(name)])
    }
    #expect(Set(delegate.strings("finished")) == ["Main", "Main/Sidebar", "Main/Status"])
    let log = try second.delegate.log()
    #expect(log.first == "shouldRestore")
    let did = try #require(log.firstIndex(of: "didDecode"))
    #expect(log[did...].dropFirst().allSatisfy { $0.hasPrefix("finished ") })

    try Self.restartOne(2, of: second, broker)
  }

  /// One process is slow, and until it is done no other gets the finish notification (R21).
  private static func restore(_ processes: Processes) throws -> JSONValue {
    let decode = "decodeRestorableStateWithCoder"
    let slow = processes.workers[4]
    try slow.behave(decode, "hold")
    let call = try processes.delegate.tell("restore", ["deadlineMilliseconds": 20_000, "wait": false])["call"]
    try slow.awaits("decode")
    // Those without an object below the slow one, in Python and Perl.
    for index in [1, 2, 5, 7] {
      let worker = processes.workers[index]
      try worker.awaits("decode", Int64(owners.filter { $0.value == index }.count))
      // Everything the broker sends after the last answer has come when this is answered.
      try worker.tell("call", ["method": "ping"])
      #expect(try worker.count("finished") == 0, "worker \(index)")
    }
    #expect(try slow.count("finished") == 0)
    try slow.behave(decode, .null)
    try slow.tell("release")
    return try processes.delegate.tell("wait", ["call": call ?? .null])
  }

  /// R22, R29: it is given what it registers, and asked for the rest as soon as it has registered its class. The others
  /// have theirs already, and hear nothing.
  private static func restartOne(_ index: Int, of processes: Processes, _ broker: BrokerFixture) throws {
    for process in processes.all { _ = try process.log() }
    try processes.workers[index].kill()
    let again = try startWorker(index, broker, isFirst: false)
    _ = try again.receive()
    try again.awaits("finished", Int64(owners.count { $0.value == index }))
    let restored = try processes.delegate.tell("restore", ["deadlineMilliseconds": 20_000])
    #expect(restored["skipped"] == [] && restored["restored"] == [])
    try check(again, index, try handles(), isLate: true)
    for (other, worker) in processes.workers.enumerated() where other != index {
      #expect(try worker.log().filter { $0.hasPrefix("decode") || $0.hasPrefix("finished") } == [], "worker \(other)")
    }
  }
}

extension JSONValue {
  /// A path.
  fileprivate static func strings(_ components: [String]) -> JSONValue { .array(components.map { .string($0) }) }
}
