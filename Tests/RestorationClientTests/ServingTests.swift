// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Synchronization
internal import TestSupport
internal import Testing

/// A session's answers to a broker's calls.
@Suite(.timeLimit(.minutes(2))) struct ServingTests {
  /// Calls the session as a broker does, and waits for its answer.
  private func ask(_ method: String, _ parameters: String, _ scene: ServingScene) async throws -> Response.Outcome {
    try await scene.call(method, parameters)
    return try await scene.broker.events.response()
  }

  private func result(_ method: String, _ parameters: String, _ scene: ServingScene) async throws -> String {
    switch try await ask(method, parameters, scene) {
    case .result(let slice): return slice.compactText.string
    case .error(let slice): throw TestFailure("\(method) was answered with \(slice.compactText.string)")
    }
  }

  private func failure(_ method: String, _ parameters: String, _ scene: ServingScene) async throws -> Int64? {
    switch try await ask(method, parameters, scene) {
    case .result(let slice): throw TestFailure("\(method) was answered with \(slice.compactText.string)")
    case .error(let slice): return slice["code"]?.integer()
    }
  }

  @Test("R11 The delegate decides", .scene) func theDelegateIsAsked() async throws {
    let saved = #"{"state":{"v":1},"coder":null}"#
    #expect(try await result("shouldSaveApplicationState", saved, scene) == "true")
    #expect(try await result("shouldRestoreApplicationState", saved, scene) == "false")
    #expect(try await result("willEncodeRestorableState", #"{"round":3}"#, scene) == #"{"state":{"own":true}}"#)
    #expect(try await result("didDecodeRestorableState", saved, scene) == "{}")
    #expect(
      await scene.model.log == [#"shouldSave {"v":1}"#, #"shouldRestore {"v":1}"#, "willEncode", #"didDecode {"v":1}"#]
    )
  }

  @Test("R11 States are given in the order asked for, with elements and revisions", .scene)
  func objectsAreEncoded() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    await scene.model.set("B", ObjectState(.empty, elements: [RestorableElement(.selected, at: [0, 2])]))
    let objects =
      #"{"round":1,"objects":[{"object":\#(b.handle),"path":["B"]},{"object":\#(a.handle),"path":["A"]}]}"#
    #expect(
      try await result("encodeRestorableStateWithCoder", objects, scene)
        == #"{"states":[{"object":\#(b.handle),"state":{},"elements":[{"role":"selected","indexPath":[0,2]}],"#
        + #""revision":1},{"object":\#(a.handle),"state":{"name":"A"},"revision":2}]}"#
    )
  }

  @Test("R12 An object that throws or is unknown fails alone", .scene) func anObjectFailsAlone() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    await scene.model.set("A", nil)
    let objects = #"{"round":1,"objects":[{"object":\#(a.handle)},{"object":\#(b.handle)},{"object":99}]}"#
    let answer = try await result("encodeRestorableStateWithCoder", objects, scene)
    #expect(answer.hasPrefix(#"{"states":[{"object":\#(a.handle),"error":{"message":"nothing to encode"}},"#))
    #expect(answer.contains(#"{"object":\#(b.handle),"state":{"name":"B"},"revision":1}"#))
    #expect(answer.contains(#"{"object":99,"error":{"message":"nothing in this process answers for "#))
  }

  @Test("R12 What an object without a StateRestoring has pushed is its state", .scene)
  func pushedObjectsAreCurrent() async throws {
    let (pushed, a) = (try await scene.session.register(ObjectRegistration("P")), try await scene.register("A"))
    let objects = #"[{"object":\#(pushed.handle)},{"object":\#(a.handle)}]"#
    let round = try await result("encodeRestorableStateWithCoder", #"{"round":1,"objects":\#(objects)}"#, scene)
    let kept = #"{"states":[{"object":\#(pushed.handle),"unchanged":true},{"object":\#(a.handle),"state":"#
    #expect(round.hasPrefix(kept))
    // It was reported as changed, but nothing can be asked.
    let pull = try await result("encodeRestorableStateWithCoder", #"{"round":0,"objects":\#(objects)}"#, scene)
    #expect(pull.hasPrefix(#"{"states":[{"object":\#(pushed.handle),"error":"#))
  }

  /// The broker skips a message over its limits, and would get no answer at all.
  @Test(.scene(limits: { $0.frameBytesMax = 64 << 10 })) func whatAnErrorSaysIsCutShort() async throws {
    let object = try await scene.register("A")
    await scene.model.fail(String(repeating: "x", count: 70_000))
    let encode = #"{"round":1,"objects":[{"object":\#(object.handle)}]}"#
    let answer = try await result("encodeRestorableStateWithCoder", encode, scene)
    #expect(answer.contains(#""error""#) && answer.utf8.count < 1_200)
    try await scene.registerClass("Document")
    let make =
      #"{"restorationClass":"Document","identifierPath":["A"],"kind":"object","objectClass":null,"state":null}"#
    guard case .error(let error) = try await ask("objectWithRestorationIdentifierPath", make, scene) else {
      throw TestFailure("no error")
    }
    #expect(error.compactText.count < 1_200)
  }

  @Test("R12 A save that would wait for the answer from which it is made is refused at once", .scene)
  func aSaveWithinAnAnswerIsRefused() async throws {
    try await scene.session.registerRestorationClass("Saver") { [weak session = scene.session] _ in
      try await session?.saveApplicationState()
      return nil
    }
    let make = #"{"restorationClass":"Saver","identifierPath":["A"],"kind":"object","objectClass":null,"state":null}"#
    guard case .error(let error) = try await ask("objectWithRestorationIdentifierPath", make, scene) else {
      throw TestFailure("no error")
    }
    #expect(error.compactText.string.contains("a save would wait for the answer"))
  }

  /// A state that can be pushed can be pulled.
  @Test(.scene(limits: { $0.valuesPerFrameMax = 400 })) func aStateOfManyValuesIsAnAnswerByItself() async throws {
    let object = try await scene.register("A")
    let many = Array(repeating: "1", count: 300).joined(separator: ",")
    await scene.model.set("A", ObjectState(try RestorableState(jsonText: #"{"a":[\#(many)]}"#)))
    let parameters = #"{"round":1,"objects":[{"object":\#(object.handle)}]}"#
    let answer = try await result("encodeRestorableStateWithCoder", parameters, scene)
    #expect(answer.contains(#""state""#), "\(answer.prefix(200))")
  }

  @Test(.scene(limits: { $0.frameBytesMax = 64 << 10 })) func whatDoesNotFitIsPutOff() async throws {
    var entries: [String] = []
    for name in ["A", "B", "C"] {
      entries.append(#"{"object":\#(try await scene.register(name).handle)}"#)
      let pad = String(repeating: "x", count: 20_000)
      await scene.model.set(name, ObjectState(try RestorableState(jsonText: #"{"pad":"\#(pad)"}"#)))
    }
    let objects = #"{"round":1,"objects":[\#(entries.joined(separator: ","))]}"#
    let answer = try await result("encodeRestorableStateWithCoder", objects, scene)
    #expect(answer.utf8.count < 32 << 10)
    #expect(answer.hasSuffix(#"\#(entries[1].dropLast()),"later":true},\#(entries[2].dropLast()),"later":true}]}"#))
    // States that could not be postponed again were not asked for uselessly.
    #expect(await scene.model.log == ["encode A", "encode B"])
  }

  @Test(.scene(limits: { $0.frameBytesMax = 64 << 10 })) func whatTheBrokerWouldNotReadFailsAlone() async throws {
    let object = try await scene.register("A")
    let deep = String(repeating: "[", count: 61) + String(repeating: "]", count: 61)
    for text in [#"{"a":1,"a":2}"#, #"{"a":\#(deep)}"#, #"{"pad":"\#(String(repeating: "x", count: 40_000))"}"#] {
      await scene.model.set("A", ObjectState(try RestorableState(jsonText: text)))
      let parameters = #"{"round":1,"objects":[{"object":\#(object.handle)}]}"#
      #expect(try await result("encodeRestorableStateWithCoder", parameters, scene).contains(#""error""#))
    }
  }

  @Test("R21 States are taken back in their order, and those deferred are fetched", .scene)
  func objectsAreDecoded() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    let elements = #"[{"role":"topVisible","indexPath":[4],"identifier":"x","resolved":true}]"#
    try await scene.call(
      "decodeRestorableStateWithCoder",
      #"{"objects":[{"object":\#(a.handle),"path":["A"],"deferred":true},"#
        + #"{"object":\#(b.handle),"path":["B"],"state":{"b":1},"coder":null,"elements":\#(elements)}]}"#
    )
    let fetch = try await scene.broker.events.request()
    #expect(fetch.text == #"decodeRestorableState {"object":\#(a.handle)}"#)
    try await fetch.answer(#"{"status":"available","state":{"a":1},"coder":null,"elements":[]}"#)
    guard case .result = try await scene.broker.events.response() else { throw TestFailure("not decoded") }
    try await scene.notify("applicationFinishedRestoringState", #"{"objects":[\#(b.handle),99,\#(a.handle)]}"#)
    await scene.model.reached(4)
    #expect(await scene.model.log == [#"decode A {"a":1}"#, #"decode B {"b":1}"#, "finished B", "finished A"])
    var element = RestorableElement(.topVisible, at: [4], identifier: "x")
    element.resolved = true
    #expect(await scene.model.elements == [element])
  }

  @Test(.scene) func oneThatCannotBeFetchedKeepsNoOtherFromItsState() async throws {
    let (a, b) = (try await scene.register("A"), try await scene.register("B"))
    try await scene.call(
      "decodeRestorableStateWithCoder",
      #"{"objects":[{"object":\#(a.handle),"path":["A"],"deferred":true},"#
        + #"{"object":\#(b.handle),"path":["B"],"state":{"b":1},"coder":null,"elements":[]}]}"#
    )
    try await scene.broker.events.request().refuse(ErrorObject.restoration(.storeFailed, "no", hint: "h"))
    guard case .error = try await scene.broker.events.response() else { throw TestFailure("no error") }
    #expect(await scene.model.log == [#"decode B {"b":1}"#])
  }

  @Test("R24 A restoration class makes objects during the call", .scene) func factoriesMakeObjects() async throws {
    try await scene.registerClass("Document")
    try await scene.call(
      "objectWithRestorationIdentifierPath",
      #"{"restorationClass":"Document","identifierPath":["Main","Doc#2"],"kind":"viewController","#
        + #""objectClass":"Doc","state":{"n":1},"coder":null}"#
    )
    guard case .result(let slice) = try await scene.broker.events.response() else { throw TestFailure("refused") }
    let handle = try #require(slice["object"]?.integer())
    #expect(scene.script.name(of: handle) == "Doc#2")
    #expect(
      scene.script.registrations.last
        == #"{"restorationIdentifier":"Doc","restorationParent":["Main"],"kind":"viewController","objectClass":"Doc","#
        + #""restorationClass":"Document","position":2,"awaitParentMilliseconds":10000}"#
    )
    let nothing = #""identifierPath":["No"],"kind":"object","objectClass":null,"state":null}"#
    let refused = #"{"restorationClass":"Document",\#(nothing)"#
    #expect(try await result("objectWithRestorationIdentifierPath", refused, scene) == "null")
    let answers = [
      "Later": #"{"awaited":true}"#, "Theirs": #"{"pass":true}"#, "Never": #"{"object":null,"forget":true}"#,
    ]
    for (name, instead) in answers.sorted(by: { $0.key < $1.key }) {
      let question = refused.replacing("No", with: name)
      #expect(try await result("objectWithRestorationIdentifierPath", question, scene) == instead)
    }
    let unknown = #"{"restorationClass":"Other",\#(nothing)"#
    #expect(try await failure("objectWithRestorationIdentifierPath", unknown, scene) == -32603)
    let controller = #"{"identifierPath":["Main"],"kind":"viewController","objectClass":null,"state":null}"#
    #expect(try await result("viewControllerWithRestorationIdentifierPath", controller, scene) == "null")
    #expect(
      await scene.model.log == [
        #"create Main/Doc#2 {"n":1}"#, "create No -", "create Later -", "create Never -", "create Theirs -",
        "create Main -",
      ]
    )
  }

  @Test("R28 A data source is asked while another call waits", .scene) func dataSourcesAnswer() async throws {
    let a = try await scene.register("A")
    try await scene.registerDataSource(["Main", "List"])
    // The fetched state has elements, which the broker first has resolved here.
    try await scene.call("decodeRestorableStateWithCoder", #"{"objects":[{"object":\#(a.handle),"deferred":true}]}"#)
    let fetch = try await scene.broker.events.request()
    let model = #"{"view":["Main","List"],"indexPath":[0,1],"role":"selected"}"#
    #expect(try await result("modelIdentifierForElementAtIndexPath", model, scene) == #""0.1""#)
    let index = #"{"view":["Main","List"],"identifier":"3.4","role":"topVisible"}"#
    #expect(try await result("indexPathForElementWithModelIdentifier", index, scene) == "[3,4]")
    let gone = #"{"view":["Main","List"],"identifier":"gone","role":"topVisible"}"#
    #expect(try await result("indexPathForElementWithModelIdentifier", gone, scene) == "null")
    let other = #"{"view":["Other"],"identifier":"3.4","role":"topVisible"}"#
    #expect(try await failure("indexPathForElementWithModelIdentifier", other, scene) == -32603)
    try await fetch.answer(#"{"status":"none","state":null,"coder":null,"elements":[]}"#)
    guard case .result = try await scene.broker.events.response() else { throw TestFailure("not decoded") }
    #expect(await scene.model.log == [])
  }

  @Test(.scene) func whatMakesNoSenseIsRefused() async throws {
    #expect(try await failure("somethingNew", "{}", scene) == -32601)
    #expect(try await failure("pathChanged", "{}", scene) == -32601)
    #expect(try await failure("encodeRestorableStateWithCoder", #"{"objects":7}"#, scene) == -32602)
    #expect(try await failure("shouldSaveApplicationState", "[]", scene) == -32602)
  }
}
