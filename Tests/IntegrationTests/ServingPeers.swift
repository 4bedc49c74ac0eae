// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport

/// Verbs that tests of rounds and restorations share.
extension BrokerFixture {
  /// A process that the broker calls, with a session of the application.
  func serving(
    _ language: ServingClient.Language,
    of application: String,
    as process: String,
    _ more: JSONObject = [:]
  ) throws -> ServingClient {
    let client = try ServingClient(language, socket: socket, errors: directory.file("log"))
    var members: JSONObject = ["application": .string(application), "process": .string(process)]
    for (name, value) in more.members { members[name] = value }
    try client.tell("open", members)
    return client
  }

  func states(of application: String, in generation: JSONValue? = nil) throws -> [[String]: JSONValue] {
    try connect().states(of: application, in: generation)
  }

  /// Saves a state of a root object, and has it withheld: two processes crash of it.
  func withhold(_ object: String, of application: String) throws {
    let watcher = try connect()
    try watcher.encode(object, state: ["poison": 1], of: application)
    for _ in 1...2 {
      let process = try client(.python)
      try process.initialize(application)
      try process.register(object)
      try process.send("restore", ["objects": [.path(object)]])
      if (try? process.receive(Deadline(.seconds(60)))) != nil { throw TestFailure("\(object) crashes nothing") }
      try Wait.until("the session has ended") {
        try watcher.call("listApplications")["applications"]?.array?.first?["sessions"] == 0
      }
    }
  }
}

extension BrokerCaller {
  /// States by path, of the head or of a generation; all pages.
  func states(of application: String, in generation: JSONValue? = nil) throws -> [[String]: JSONValue] {
    var states: [[String]: JSONValue] = [:]
    var parameters: JSONObject = ["application": .string(application)]
    parameters["generation"] = generation
    repeat {
      let page = try call("readArchive", .object(parameters), Deadline())
      for object in page["objects"]?.array ?? [] {
        guard let state = object["state"], !state.isNull else { continue }
        states[object.strings("path")] = state
      }
      parameters["cursor"] = page["cursor"]
    } while parameters["cursor"] != nil
    return states
  }
}

extension ServingClient {
  /// Registers objects; `members` are those of the command's `objects`.
  @discardableResult
  func register(_ objects: [JSONObject]) throws -> [JSONValue] {
    try tell("register", ["objects": .array(objects.map { .object($0) })])["objects"]?.array ?? []
  }

  /// How many of these events have happened in it so far.
  func count(_ what: String) throws -> Int64 {
    try tell("await", ["what": .string(what), "count": 0])["count"]?.integer ?? 0
  }

  func set(_ name: String, state: JSONValue) throws { try tell("set", ["name": .string(name), "state": state]) }

  /// How calls of this method are answered from now on; null: well.
  func behave(_ method: String, _ behaviour: JSONValue) throws {
    try tell("behave", ["method": .string(method), "as": behaviour])
  }
}

extension JSONValue {
  /// The member's elements that are strings.
  func strings(_ name: String) -> [String] { self[name]?.array?.compactMap(\.string) ?? [] }
}
