// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import TestSupport
internal import Testing

/// How a session leads to the program's own objects, and what it does when the program has released them.
@Suite(.timeLimit(.minutes(2))) struct ProgramObjectTests {
  private func decode(_ object: RestorableObject, as answer: String) async throws -> DecodedState {
    async let decoded = scene.session.decode(object)
    let request = try await scene.broker.events.request()
    #expect(request.request.method == "decodeRestorableState")
    try await request.answer(#"{"status":"available","state":\#(answer),"coder":null,"elements":[]}"#)
    return try await decoded
  }

  @Test("R14 A reference in a decoded state leads to the program's own object", .scene)
  func referencesLeadToObjects() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    let decoded = try await decode(
      a,
      as:
        #"{"front":{"$restorable":["B"],"object":\#(b.handle)},"moved":{"$restorable":["Old"],"object":\#(b.handle)},"#
        + #""byPath":[{"$restorable":["A"],"object":null}],"theirs":{"$restorable":["C"],"object":9}}"#
    )
    let state = try #require(decoded.state)
    #expect(state["front"]?.reference == .object(b))
    #expect(state.values["moved"]?.reference == .object(b))
    #expect(state["byPath"]?.array?.first?.reference == .object(a))
    #expect(state["theirs"]?.reference == .path(["C"]))
    #expect(state["front"]?.reference?.restoring === b.restoring && b.restoring != nil)
    #expect(state["front"]?.reference?.path == ["B"] && state["theirs"]?.reference?.path == ["C"])
    #expect(state["theirs"]?.reference?.restoring == nil)
    // Without a session, and in comparisons, a state is its text.
    let text = try RestorableState(jsonText: state.jsonText)
    #expect(text == state && text["front"]?.reference == .path(["B"]))
  }

  @Test("An object of the session is found at its present path", .scene) func objectsAreFoundByPath() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    #expect(scene.session.object(at: ["A"]) === a && scene.session.object(at: ["C"]) == nil)
    try await scene.notify("pathChanged", #"{"object":\#(a.handle),"path":["B"]}"#)
    try await scene.notify("pathChanged", #"{"object":\#(b.handle),"path":["A","B"]}"#)
    for await notification in scene.session.notifications {
      if case .pathChanged(let object, _) = notification, object === b { break }
    }
    #expect(scene.session.object(at: ["A"]) == nil)
    #expect(scene.session.object(at: ["B"]) === a && scene.session.object(at: ["A", "B"]) === b)
    try await scene.notify(
      "registrationReplaced",
      #"{"object":\#(a.handle),"path":["B"],"by":{"process":null,"pid":1}}"#
    )
    for await notification in scene.session.notifications {
      if case .registrationReplaced = notification { break }
    }
    #expect(scene.session.object(at: ["B"]) == nil)
  }

  @Test("What the program has released is unregistered in the next round, and not asked", .scene)
  func aRoundUnregistersWhatWasReleased() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    await scene.model.drop("B")
    #expect(b.restoring == nil && b.isRegistered)
    let objects = #"{"round":1,"objects":[{"object":\#(a.handle)},{"object":\#(b.handle)}]}"#
    try await scene.call("encodeRestorableStateWithCoder", objects)
    let request = try await scene.broker.events.request()
    #expect(request.text.hasPrefix(#"unregisterObject {"object":\#(b.handle)"#))
    try await request.answer("{}")
    let outcome = try await scene.broker.events.response()
    guard case .result(let answer) = outcome else { throw TestFailure("no states") }
    #expect(answer["states"]?.elements?.map { $0["object"]?.integer() } == [a.handle, b.handle])
    #expect(answer["states"]?.elements?.last?["error"] != nil)
    #expect(!b.isRegistered)
    #expect(await scene.model.log == ["encode A"])
  }

  @Test("What the program has released is unregistered if the session lives on, as soon as it can be", .scene)
  func aLivingSessionUnregistersWhatWasReleased() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    await scene.model.drop("B")
    let refused = try await scene.broker.events.request()
    try await refused.refuse(WithoutBrokerScene.storeFailed)
    let request = try await scene.broker.events.request()
    #expect(request.text == refused.text)
    #expect(request.text.hasPrefix(#"unregisterObject {"object":\#(b.handle)"#))
    try await request.answer("{}")
    // It comes before the next call's answer.
    async let pong = scene.session.completeStateRestoration()
    try await scene.broker.events.request().answer(#"{"pending":0}"#)
    _ = try await pong
    #expect(!b.isRegistered && a.isRegistered)
  }

  @Test("What is released at the end of the session stays saved", .scene) func anEndKeepsWhatIsReleased() async throws {
    for name in ["A", "B"] { _ = try await scene.register(name) }
    for name in ["A", "B"] { await scene.model.drop(name) }
    async let ended = scene.session.end(.restart)
    let request = try await scene.broker.events.request()
    #expect(request.text == #"goodbye {"reason":"restart"}"#)
    try await request.answer("{}")
    #expect(await ended)
  }
}
