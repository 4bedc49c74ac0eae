// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import TestSupport
internal import Testing

/// A session that answers calls keeps doing so with the next connection and the next broker.
@Suite(.timeLimit(.minutes(2))) struct ServingSurvivalTests {
  /// Ends the connection, and returns the session's messages on the next one, up to and including a ping, and at least
  /// `count`.
  private func lose(_ scene: ServingScene, count: Int = 0) async throws -> [String] {
    try await scene.model.connection?.onLoop { $0.close(afterOutput: false) }
    try await scene.follow()
    scene.script.change { $0.silent = [Ping.method] }
    async let ping = scene.session.call(Ping.method)
    var said: [String] = []
    while !said.contains("ping ") || said.count < count {
      let request = try await scene.broker.events.request()
      said.append(request.text)
      try await request.answer(request.request.method == ExtendStateRestoration.method ? #"{"pending":1}"# : "{}")
    }
    _ = try? await ping
    return said
  }

  private func serve(_ scene: ServingScene) async throws -> RestorableObject {
    let view = try await scene.register("List")
    try await scene.registerClass("Document", shared: true)
    try await scene.session.registerDataSource(scene.model, for: view.reference)
    try await scene.registerDataSource(["Other"])
    return view
  }

  @Test(.scene(answersServing: { $0 == 1 })) func whatIsServedIsSaidAgainToABrokerThatKnowsTheSession() async throws {
    let view = try await serve(scene)
    #expect(
      try await lose(scene) == [
        #"registerRestorationClass {"restorationClass":"Document","shared":true}"#,
        #"registerDataSource {"view":\#(view.handle)}"#, #"registerDataSource {"view":["Other"]}"#, "ping ",
      ]
    )
    #expect(scene.script.registrations.count == 1)
  }

  @Test(.scene(answersServing: { $0 == 1 })) func toABrokerThatDoesNotTheObjectsAreFirst() async throws {
    let view = try await serve(scene)
    let former = view.handle
    scene.script.change { $0.token = "another" }
    // A call of the program may come before or after those that wait for the view to be registered again.
    let said = try await lose(scene, count: 4).filter { $0 != "ping " }
    #expect(view.handle != former)
    #expect(
      said == [
        #"registerRestorationClass {"restorationClass":"Document","shared":true}"#,
        #"registerDataSource {"view":\#(view.handle)}"#,
        #"registerDataSource {"view":["Other"]}"#,
      ]
    )
    try await scene.call("encodeRestorableStateWithCoder", #"{"round":1,"objects":[{"object":\#(view.handle)}]}"#)
    guard case .result(let slice) = try await scene.broker.events.response() else { throw TestFailure("an error") }
    #expect(slice.compactText.string.contains(#""state":{"name":"List"}"#))
  }

  @Test("R9 What another session serves meanwhile is reported", .scene(answersServing: { $0 == 1 }))
  func whatIsLostIsReported() async throws {
    _ = try await serve(scene)
    try await scene.model.connection?.onLoop { $0.close(afterOutput: false) }
    try await scene.follow()
    for _ in 0..<3 {
      let served = ErrorObject.restoration(.alreadyServed, "another session serves it", hint: "h")
      try await scene.broker.events.request().refuse(served)
    }
    var notifications = scene.session.notifications.makeAsyncIterator()
    guard case .restorationClassLost("Document", let refusal) = await notifications.next() else {
      throw TestFailure("the class is not reported")
    }
    #expect(refusal.code == .alreadyServed)
    guard case .dataSourceLost(.object, _) = await notifications.next(),
      case .dataSourceLost(.path(["Other"]), _) = await notifications.next()
    else { throw TestFailure("the data sources are not reported") }
  }

  @Test(.scene) func anAnswerToALostConnectionGoesNowhereAndTheNextCallWaitsForIt() async throws {
    let object = try await scene.register("A")
    await scene.model.block()
    let parameters = #"{"round":1,"objects":[{"object":\#(object.handle)}]}"#
    try await scene.call("encodeRestorableStateWithCoder", parameters)
    try await scene.call("encodeRestorableStateWithCoder", parameters)
    await scene.model.reached(1)
    try await scene.model.connection?.onLoop { $0.close(afterOutput: false) }
    try await scene.follow()
    try await scene.call("shouldSaveApplicationState", #"{"state":null,"coder":null}"#)
    await scene.model.unblock()
    guard case .result(let slice) = try await scene.broker.events.response() else { throw TestFailure("an error") }
    #expect(slice.compactText.string == "true")
    #expect(await scene.model.log == ["encode A", "shouldSave -"])
  }

  /// R21: which objects have been restored is known, whatever a broker calls them by then.
  @Test(.scene) func aFinishCallbackComesAlsoAfterTheBrokerHasLostTheSession() async throws {
    let object = try await scene.register("A")
    let former = object.handle
    await scene.model.block()
    try await scene.call("encodeRestorableStateWithCoder", #"{"round":1,"objects":[{"object":\#(former)}]}"#)
    await scene.model.reached(1)
    try await scene.notify("applicationFinishedRestoringState", #"{"objects":[\#(former)]}"#)
    scene.script.change { $0.token = "another" }
    _ = try await lose(scene)
    #expect(object.handle != former)
    await scene.model.unblock()
    await scene.model.reached(2)
    #expect(await scene.model.log == ["encode A", "finished A"])
  }

  @Test(.scene) func callsAreAnsweredWhileOwnCallsArePending() async throws {
    let object = try await scene.register("A")
    async let saving = scene.session.saveApplicationState(reason: "menu", deadline: .seconds(2))
    let save = try await scene.broker.events.request()
    #expect(save.text == #"saveApplicationState {"reason":"menu","deadlineMilliseconds":2000}"#)
    try await scene.call("encodeRestorableStateWithCoder", #"{"round":1,"objects":[{"object":\#(object.handle)}]}"#)
    guard case .result = try await scene.broker.events.response() else { throw TestFailure("an error") }
    try await save.answer(
      #"{"saved":true,"generation":7,"objects":2,"bytes":30,"stale":[{"object":4,"path":[],"process":"p","pid":5,"#
        + #""why":"late"}],"excluded":[{"object":8,"path":null,"process":null,"pid":9,"by":8}],"milliseconds":12}"#
    )
    let result = try await saving
    #expect(result.saved && result.generation == 7 && result.duration == .milliseconds(12))
    #expect(result.stale.map(\.why) == ["late"] && result.stale.first?.path == [])
    #expect(result.excluded.map(\.by) == [.handle(8)])
  }

  @Test("R21 Extensions are said again to a broker that has lost the session", .scene) func extensionsSurvive()
    async throws
  {
    for _ in 0..<2 {
      async let extending = scene.session.extendStateRestoration()
      try await scene.broker.events.request().answer(#"{"pending":1}"#)
      #expect(try await extending == 1)
    }
    scene.script.change { $0.token = "another" }
    #expect(try await lose(scene) == ["extendStateRestoration ", "extendStateRestoration ", "ping "])
    for expected in ["completeStateRestoration {}", "completeStateRestoration {}"] {
      async let completing = scene.session.completeStateRestoration()
      let request = try await scene.broker.events.request()
      #expect(request.text == expected)
      try await request.answer(#"{"pending":0}"#)
      _ = try await completing
    }
    scene.script.change { $0.token = "a third" }
    #expect(try await lose(scene) == ["completeStateRestoration ", "ping "])
    async let extending = scene.session.extendStateRestoration()
    try await scene.broker.events.request().answer(#"{"pending":1}"#)
    _ = try await extending
    scene.script.change { $0.token = "a fourth" }
    #expect(try await lose(scene) == ["completeStateRestoration ", "extendStateRestoration ", "ping "])
  }

  @Test(.connection) func aConnectionAnswersCallsAsText() async throws {
    let script = SessionScript()
    fake.answers(script.answer)
    let connection = try await fake.events.opened()
    let options = SessionOptions(application: "a", notifications: [])
    await #expect(throws: RestorationError.self) {
      try await broker.initialize(options, serving: ["somethingNew"]) { _, _ in "{}" }
    }
    try await broker.initialize(options, serving: ["shouldSaveApplicationState"]) { method, parameters in
      guard method == "shouldSaveApplicationState" else { throw TestFailure("not that") }
      return parameters.contains("yes") ? "true" : "no JSON"
    }
    func ask(_ method: String, _ parameters: JSONValue) async throws -> Response.Outcome {
      try await connection.onLoop { _ = $0.call(method: method, parameters: JSONText(parameters)) }
      return try await fake.events.response()
    }
    guard case .result(let answer) = try await ask("shouldSaveApplicationState", ["state": "yes"]) else {
      throw TestFailure("an error")
    }
    #expect(answer.bool() == true)
    for method in ["shouldSaveApplicationState", "willEncodeRestorableState"] {
      guard case .error(let error) = try await ask(method, ["state": nil]) else { throw TestFailure("no error") }
      #expect(error["code"]?.integer() == -32603)
    }
    await broker.close()
  }
}
