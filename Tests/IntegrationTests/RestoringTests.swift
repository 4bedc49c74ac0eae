// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Restorations by the real broker (R21 – R24).
@Suite(.broker) struct RestoringTests {
  private static let application = "org.example.Editor"
  private static let make: JSONValue = "objectWithRestorationIdentifierPath"

  /// A view controller that a restoration class makes, and a plain object below it.
  private static func save() throws {
    let writer = try broker.session(application, process: "writer")
    try writer.register("Main", with: ["kind": "viewController", "restorationClass": "Pages"])
    try writer.register("Tool", in: "Main")
    for path in [JSONValue.path("Main"), .path("Main", "Tool")] {
      try writer.call("encodeRestorableState", ["object": path, "state": ["n": 1]])
    }
    try writer.call("goodbye", ["reason": "restart"])
  }

  /// R21: a process that is killed while it is handed its state is not waited for.
  @Test func r21AKilledProcessHoldsNobodyUp() throws {
    try Self.save()
    let caller = try broker.session(Self.application, process: "caller")
    let worker = try broker.client(.python)
    try worker.initialize(Self.application, ["process": "worker", "serves": [Self.make]])
    try worker.call("registerRestorationClass", ["restorationClass": "Pages"])
    let id = try caller.request("restoreApplicationState", ["deadlineMilliseconds": 2_000])
    try worker.kill()
    let other = try broker.session(Self.application, process: "other", ["serves": [Self.make]])
    try Wait.until("the class is free") {
      (try? other.call("registerRestorationClass", ["restorationClass": "Pages"])) != nil
    }
    let call = try other.receiveMessage()
    #expect(call["method"] == Self.make)
    try other.send((["jsonrpc": "2.0", "id": call["id"] ?? .null, "result": .null] as JSONValue).text + "\n")
    let result = try caller.answer(to: id)
    #expect(result["restored"] == [] && result["absent"] == [])
    let reasons = result["skipped"]?.array?.compactMap { $0["reason"]?.string }
    #expect(reasons == ["refused", "parentSkipped"])
  }
}
