// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The example of Apple's guide: a tree of view controllers, one of which has no identifier.
@Suite(.broker) struct ExclusionTreeTests {
  private static let application = "org.example.Tabs"

  /// Tabs ─ First
  ///      ├ (navigation) ─ List ─ Detail
  ///      │              │      └ Rows, a view
  ///      │              └ Model, an object
  ///      └ Third ─ Table, a view
  ///              └ (frame), a view ─ Cell, a view
  private static let tree: [JSONObject] = [
    ["identifier": "Tabs", "kind": "viewController"],
    ["identifier": "First", "name": "First", "parent": "Tabs", "kind": "viewController"],
    ["identifier": .null, "name": "navigation", "parent": "Tabs", "kind": "viewController"],
    ["identifier": "List", "name": "List", "parent": "navigation", "kind": "viewController"],
    ["identifier": "Detail", "name": "Detail", "parent": "List", "kind": "viewController"],
    ["identifier": "Rows", "name": "Rows", "parent": "List", "kind": "view"],
    ["identifier": "Model", "name": "Model", "parent": "navigation", "kind": "object"],
    ["identifier": "Third", "name": "Third", "parent": "Tabs", "kind": "viewController"],
    ["identifier": "Table", "name": "Table", "parent": "Third", "kind": "view"],
    ["identifier": .null, "name": "frame", "parent": "Third", "kind": "view"],
    ["identifier": "Cell", "name": "Cell", "parent": "frame", "kind": "view"],
  ]

  private static func name(_ object: JSONObject) -> String {
    object["name"]?.string ?? object["identifier"]?.string ?? "?"
  }

  /// One round: the processes asked, in order, and the objects of the generation.
  private static func save(
    _ app: ServingClient
  ) throws -> (asked: [String], saved: Set<String>, excluded: Set<String>) {
    _ = try app.log()
    let result = try app.tell("save")
    #expect(result["saved"] == true)
    #expect(result["stale"] == [])
    let asked = try app.log().filter { $0.hasPrefix("encode ") }.map { String($0.dropFirst("encode ".count)) }
    let states = try broker.states(of: application, in: result["generation"])
    #expect(result["objects"] == .integer(Int64(states.count)))
    let excluded = (result["excluded"]?.array ?? []).map { entry in
      #expect(entry["process"] == "main")
      // What is to blame has no identifier, so that only its handle names it.
      #expect(entry["by"]?.integer != nil)
      return entry["path"]?.array?.last?.string ?? "(no path)"
    }
    return (asked, Set(states.values.compactMap { $0["name"]?.string }), Set(excluded))
  }

  @Test func r4R7R11AnExcludedObjectTakesItsSubtreeAlongUnlessItIsReferredTo() throws {
    let app = try broker.serving(.python, of: Self.application, as: "main")
    let registered = try app.register(
      Self.tree.map { object in
        var object = object
        object["state"] = ["name": .string(Self.name(object))]
        return object
      }
    )
    let included = zip(Self.tree, registered).filter { $0.1["included"] == true }.map { Self.name($0.0) }
    #expect(included == ["Tabs", "First", "Model", "Third", "Table"])

    // The walk: roots in order of registration, parents before children.
    let plain = try Self.save(app)
    #expect(plain.asked == ["Tabs", "First", "Third", "Table", "Model"])
    #expect(plain.saved == ["Tabs", "First", "Third", "Table", "Model"])
    #expect(plain.excluded == ["(no path)", "List", "Detail", "Rows", "Cell"])

    // A reference reaches an excluded object, and only that one; what it refers to itself as well.
    try app.set("First", state: ["name": "First", "open": ["$restorable": .path("List", "Detail")]])
    let one = try Self.save(app)
    #expect(one.asked == ["Tabs", "First", "Third", "Table", "Model", "Detail"])
    #expect(one.saved == ["Tabs", "First", "Third", "Table", "Model", "Detail"])
    try app.set("Detail", state: ["name": "Detail", "cell": ["deep": [["$restorable": .path("Cell")]]]])
    let two = try Self.save(app)
    #expect(two.asked == ["Tabs", "First", "Third", "Table", "Model", "Detail", "Cell"])
    #expect(two.saved == ["Tabs", "First", "Third", "Table", "Model", "Detail", "Cell"])

    // Without the reference they are out again, and what was saved of them stays in older generations.
    try app.set("First", state: ["name": "First"])
    #expect(try Self.save(app).saved == ["Tabs", "First", "Third", "Table", "Model"])

    // An identifier brings the whole subtree in.
    let navigation = try broker.connect().call("describeApplication", ["application": .string(Self.application)])
    let handle = navigation["objects"]?.array?.first { $0["path"] == .null && $0["kind"] == "viewController" }
    let parameters: JSONValue = ["object": try #require(handle?["object"]), "restorationIdentifier": "Navigation"]
    try app.tell("call", ["method": "setRestorationIdentifier", "params": parameters])
    let all = try Self.save(app)
    #expect(all.asked == ["Tabs", "First", "navigation", "List", "Detail", "Rows", "Model", "Third", "Table", "Cell"])
    #expect(all.saved == Set(all.asked))
    #expect(all.excluded == ["(no path)"])
  }
}
