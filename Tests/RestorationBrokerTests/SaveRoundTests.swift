// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Save rounds as clients see them: who is asked, in which order, which states are saved and which are stale (R7, R11,
/// R12).
@Suite struct SaveRoundTests {
  let driver = CoreDriver()

  static let encode = "encodeRestorableStateWithCoder"

  /// A client that automatically answers with the entry of `states` for each path, or with a state that contains the
  /// path's name.
  private func worker(_ pid: Int64, _ role: String = "worker", _ more: String = "") throws -> Peer {
    let peer = driver.connect(pid: pid)
    peer.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    try peer.initialize("App", #""process":"\#(role)","serves":["\#(Self.encode)","applicationStateSaved"]"# + more)
    return peer
  }

  private func archived(_ generation: Int64?) throws -> [String: JSONValue] {
    let reader = driver.connect(pid: 1)
    let number = generation.map { #","generation":\#($0)"# } ?? ""
    let result = try reader.call("readArchive", #"{"application":"App"\#(number)}"#)
    var states: [String: JSONValue] = [:]
    for object in result["objects"]?.array ?? [] { states[object["path"]?.joined ?? ""] = object["state"] ?? .null }
    return states
  }

  private func stale(_ reply: JSONValue) -> [String] {
    (reply["stale"]?.array ?? []).map { "\($0["path"]?.joined ?? "null"): \($0["why"]?.string ?? "")" }
  }

  private func paths(_ call: Peer.BrokerCall) -> [String] {
    (call.parameters["objects"]?.array ?? []).map { $0["path"]?.joined ?? "null" }
  }

  // MARK: R11, R12

  @Test func r12AllStatesAreOfOneGeneration() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B", below: #"["A"]"#)
    let reply = try a.call("saveApplicationState", #"{"reason":"test"}"#)
    #expect(reply["saved"] == true)
    #expect(reply["reason"] == nil)
    #expect(reply["generation"] == 1)
    #expect(reply["objects"] == 2)
    #expect(reply["bytes"] == 22)
    #expect(reply["stale"] == [])
    #expect(reply["excluded"] == [])
    #expect(try archived(1) == ["A": ["of": "A"], "A/B": ["of": "A/B"]])
    #expect(a.takeNotifications("applicationStateSaved") == [["generation": 1]])
    #expect(b.takeNotifications("applicationStateSaved") == [["generation": 1]])
    driver.inspect()
  }

  @Test func r12TheRoundIsOneTransaction() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    b.serves = [:]
    driver.forgetWritten()
    let id = a.start("saveApplicationState")
    #expect(driver.writtenStates == 0, "no state is written before the last answer")
    driver.holdsCommits = true
    b.answerEncode { _ in #"{"b":1}"# }
    #expect(driver.writtenStates == 2)
    #expect(!a.hasAnswer(id))
    #expect(a.takeNotifications("applicationStateSaved").isEmpty)
    driver.holdsCommits = false
    driver.commit()
    #expect(try a.result(of: id)["saved"] == true)
    #expect(a.takeNotifications("applicationStateSaved").count == 1)
  }

  /// A state pushed by a client that is asked as well is current, and its references are saved.
  @Test func r12AnObjectWhoseOwnerSaysThatNothingHasChangedIsNotStale() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("Pushed")
    try a.register("Never")
    try b.register("Root", below: nil, #""kind":"viewController""#)
    let hole = try b.register(nil, below: #"["Root"]"#, #""kind":"viewController""#)
    try b.register("Far", below: "\(hole)", #""kind":"viewController""#)
    try a.encode(#"["Pushed"]"#, #"{"far":{"$restorable":["Far"]}}"#)
    a.serves[Self.encode] = { parameters in
      let handles = (parameters["objects"]?.array ?? []).compactMap { $0["object"]?.integer }
      return #"{"states":[\#(handles.map { #"{"object":\#($0),"unchanged":true}"# }.joined(separator: ","))]}"#
    }
    let reply = try a.call("saveApplicationState")
    #expect(reply["saved"] == true)
    #expect(reply["stale"] == [])
    #expect(reply["objects"] == 3)
    #expect(try archived(1)["Far"] == ["of": "Far"])
    #expect(try archived(1)["Pushed"]?["far"]?["$restorable"] == ["Far"])
    driver.inspect()
  }

  @Test func r11OwnersAreAskedInTheOrderOfTheWalk() throws {
    let peer = try worker(1)
    for name in ["B", "A"] { try peer.register(name) }
    for name in ["Y", "X"] { try peer.register(name, below: #"["A"]"#) }
    try peer.register("Z", below: #"["B"]"#)
    try peer.call("saveApplicationState")
    let call = try #require(peer.calls.first)
    #expect(paths(call) == ["B", "B/Z", "A", "A/Y", "A/X"])
    #expect(call.parameters["round"] == 1)
    try peer.call("saveApplicationState")
    #expect(peer.calls.last?.parameters["round"] == 2)
  }

  @Test func r11TheDelegateIsAskedFirstAndGivesTheApplicationsState() throws {
    let worker = try worker(1)
    let delegate = driver.connect(pid: 2)
    try delegate.initialize(
      "App",
      #""delegate":true,"bundleVersion":"7","serves":["shouldSaveApplicationState","willEncodeRestorableState"]"#
    )
    let handle = try worker.register("A")
    let id = worker.start("saveApplicationState")
    let asked = try #require(delegate.openCalls("shouldSaveApplicationState").first)
    #expect(asked.parameters["state"] == .null)
    delegate.answer(asked.id, "true")
    let prepare = try #require(delegate.openCalls("willEncodeRestorableState").first)
    #expect(prepare.parameters == ["round": 1])
    #expect(worker.calls.isEmpty)
    delegate.answer(prepare.id, #"{"state":{"own":{"$restorable":["A"]}}}"#)
    #expect(try worker.result(of: id)["objects"] == 1, "the application is no object")
    #expect(try worker.paths() == ["A"])
    let second = worker.start("saveApplicationState")
    let again = try #require(delegate.openCalls("shouldSaveApplicationState").first)
    #expect(again.parameters["state"] == ["own": ["$restorable": ["A"], "object": .integer(handle)]])
    #expect(again.parameters["coder"]?["UIApplicationStateRestorationBundleVersionKey"] == "7")
    delegate.answer(again.id, "false")
    let reply = try worker.result(of: second)
    #expect(reply["saved"] == false)
    #expect(reply["reason"] == "declined")
    #expect(reply["generation"] == 1)
    driver.inspect()
  }

  @Test func r11TheDelegatesFailureKeepsNobodyFromBeingSaved() throws {
    let worker = try worker(1)
    let delegate = driver.connect(pid: 2)
    let serves = #""serves":["shouldSaveApplicationState","willEncodeRestorableState"]"#
    try delegate.initialize("App", #""delegate":true,"process":"main","# + serves)
    try worker.register("A")
    let id = worker.start("saveApplicationState")
    delegate.answer(try #require(delegate.openCalls("shouldSaveApplicationState").first).id, errorCode: -1, "no")
    delegate.answer(
      try #require(delegate.openCalls("willEncodeRestorableState").first).id,
      #"{"state":{"UIStateRestorationX":1}}"#
    )
    let reply = try worker.result(of: id)
    #expect(reply["saved"] == true)
    #expect(stale(reply) == [": reservedKey"])
    #expect(reply["stale"]?.array?.first?["process"] == "main")
    let late = worker.start("saveApplicationState", #"{"deadlineMilliseconds":1000}"#)
    driver.advance(milliseconds: 499)
    #expect(!worker.hasAnswer(late))
    driver.advance(milliseconds: 1)
    #expect(stale(try worker.result(of: late)) == [": late"])
    #expect(delegate.openCalls("shouldSaveApplicationState").isEmpty, "it is not waited for any more")
  }

  @Test func r12WhoDoesNotServeEncodeIsNotAskedAndNotStale() throws {
    let pushes = driver.connect(pid: 1)
    try pushes.initialize()
    try pushes.register("A")
    try pushes.encode(#"["A"]"#, #"{"pushed":1}"#)
    let reply = try pushes.call("saveApplicationState")
    #expect(reply["saved"] == true)
    #expect(reply["stale"] == [])
    #expect(pushes.calls.isEmpty)
    #expect(try archived(1) == ["A": ["pushed": 1]])
  }

  @Test func anyoneMayAskForARoundAlsoByANotification() throws {
    let peer = try worker(1)
    try peer.register("A")
    let tool = driver.connect(pid: 9)
    #expect(try tool.call("saveApplicationState", #"{"application":"App"}"#)["generation"] == 1)
    try peer.register("B")
    tool.notify("saveApplicationState", #"{"application":"App"}"#)
    #expect(try archived(2).count == 2)
    #expect(try tool.fail("saveApplicationState", #"{"application":"Nobody"}"#).kind == "unknownApplication")
  }

  @Test func r17NothingNewMakesNoGeneration() throws {
    let peer = try worker(1)
    #expect(try peer.call("saveApplicationState")["reason"] == "unchanged")
    try peer.register("A")
    #expect(try peer.call("saveApplicationState")["saved"] == true)
    let reply = try peer.call("saveApplicationState")
    #expect(reply["saved"] == false)
    #expect(reply["reason"] == "unchanged")
    #expect(reply["generation"] == 1)
    #expect(reply["objects"] == 1)
    peer.serves[Self.encode] = Peer.states { _ in #"{"new":1}"# }
    #expect(try peer.call("saveApplicationState")["generation"] == 2)
  }

  @Test func r16APulledStateThatIsTheSameIsNotWrittenAgain() throws {
    let peer = try worker(1)
    for name in ["A", "B", "C"] { try peer.register(name) }
    try peer.call("saveApplicationState")
    driver.forgetWritten()
    peer.serves[Self.encode] = Peer.states { $0 == "B" ? #"{"new":1}"# : #"{"of":"\#($0)"}"# }
    #expect(try peer.call("saveApplicationState")["saved"] == true)
    #expect(driver.writtenStates == 1)
    try peer.encode(#"["A"]"#, #"{"pushed":1}"#)
    try peer.call("saveApplicationState")
    #expect(try archived(3)["A"] == ["of": "A"], "a push in between does not hide what was pulled before")
  }

  // MARK: R12, stale objects

  @Test func r12WhoeverIsLateKeepsTheLastGoodState() throws {
    let (good, slow) = (try worker(1, "good"), try worker(2, "slow"))
    try good.register("A")
    try slow.register("B")
    try good.call("saveApplicationState")
    slow.serves = [:]
    good.serves[Self.encode] = Peer.states { _ in #"{"second":1}"# }
    let id = good.start("saveApplicationState", #"{"deadlineMilliseconds":2000}"#)
    driver.advance(milliseconds: 1_999)
    #expect(!good.hasAnswer(id))
    driver.advance(milliseconds: 1)
    let reply = try good.result(of: id)
    #expect(reply["saved"] == true)
    #expect(reply["milliseconds"] == 2_000)
    #expect(reply["objects"] == 2)
    let entry = try #require(reply["stale"]?.array?.first)
    #expect(entry["path"]?.joined == "B")
    #expect(entry["process"] == "slow")
    #expect(entry["pid"] == 2)
    #expect(entry["why"] == "late")
    #expect(try archived(2) == ["A": ["second": 1], "B": ["of": "B"]])
    slow.answerEncode { _ in #"{"tooLate":1}"# }
    #expect(try archived(nil)["B"] == ["of": "B"], "nobody waits for it any more")
    #expect(driver.timerCount == 0)
  }

  @Test func r12EachBadAnswerIsStaleForItsReason() throws {
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    var handles: [Int64] = []
    for number in 0...9 { handles.append(try peer.register("O\(number)")) }
    let id = peer.start("saveApplicationState")
    let long = String(repeating: "x", count: 256 << 10)
    let call = try #require(peer.openCalls(Self.encode).first)
    let states = [
      #"{"object":\#(handles[0]),"state":{"fine":1}}"#,
      #"{"object":\#(handles[1]),"state":{"UIStateRestorationX":1}}"#,
      #"{"object":\#(handles[2]),"state":{"r":{"$restorable":["Nowhere"]}}}"#,
      #"{"object":\#(handles[3]),"state":{"long":"\#(long)"}}"#,
      #"{"object":\#(handles[4]),"error":{"message":"broken"}}"#,
      #"{"object":\#(handles[5]),"state":[]}"#,
      #"{"object":\#(handles[6])}"#,
      #"{"object":\#(handles[7]),"state":{}},{"object":\#(handles[7]),"state":{}}"#,
      #"{"object":99,"state":{}}"#,
      #"{"object":\#(handles[8]),"state":{"a":1,"a":2}}"#,
    ]
    peer.answer(call.id, #"{"states":[\#(states.joined(separator: ","))]}"#)
    let reply = try peer.result(of: id)
    #expect(reply["saved"] == true)
    #expect(
      stale(reply).sorted() == [
        "O1: reservedKey", "O2: invalidReference", "O3: limitExceeded", "O4: failed", "O5: malformed", "O6: malformed",
        "O7: malformed", "O8: malformed", "O9: missing",
      ]
    )
    #expect(
      try archived(1) == [
        "O0": ["fine": 1], "O1": .null, "O2": .null, "O3": .null, "O4": .null, "O5": .null, "O6": .null, "O7": .null,
        "O8": .null, "O9": .null,
      ]
    )
    driver.inspect()
  }

  @Test(arguments: [("7", "malformed"), (#"{"states":{}}"#, "malformed"), (#"{"states":[1]}"#, "malformed")])
  func r12AnAnswerOfAnotherFormMakesItsBatchStale(_ answer: String, _ why: String) throws {
    let peer = try worker(1)
    peer.serves[Self.encode] = { _ in answer }
    try peer.register("A")
    #expect(stale(try peer.call("saveApplicationState")) == ["A: \(why)"])
  }

  @Test func r12AnErrorMakesTheBatchStale() throws {
    let peer = try worker(1)
    peer.serves = [:]
    try peer.register("A")
    let id = peer.start("saveApplicationState")
    peer.answer(try #require(peer.openCalls(Self.encode).first).id, errorCode: -32601, "what?")
    #expect(stale(try peer.result(of: id)) == ["A: failed"])
  }

  @Test func r12AStateThatDoesNotFitIntoTheArchiveIsStale() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let driver = CoreDriver(limits: limits)
    let peer = driver.connect(pid: 1)
    let text = String(repeating: "x", count: 30 << 10)
    peer.serves[Self.encode] = Peer.states { #"{"\#($0)":"\#(text)"}"# }
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    for name in ["A", "B", "C"] { try peer.register(name) }
    #expect(stale(try peer.call("saveApplicationState")) == ["C: limitExceeded"])
    driver.inspect()
  }

  // MARK: Batches

  @Test func batchesAreBoundedByCountAndByTheClientsBytes() throws {
    let peer = try worker(1)
    for number in 0..<70 { try peer.register("O\(number)") }
    let narrow = try worker(2, "narrow", #","messageBytesMax":4096"#)
    let name = String(repeating: "n", count: 200)
    for number in 0..<20 { try narrow.register("\(name)\(number)") }
    #expect(try peer.call("saveApplicationState")["objects"] == 90)
    #expect(peer.calls.map { paths($0).count } == [64, 6])
    #expect(narrow.calls.map { paths($0).count } == [7, 7, 6])
  }

  @Test func r12AnObjectThatIsPutOffIsAskedForAgainAndAtLastGivenUp() throws {
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    let (a, b) = (try peer.register("A"), try peer.register("B"))
    let id = peer.start("saveApplicationState")
    peer.answer(
      try #require(peer.openCalls(Self.encode).first).id,
      #"{"states":[{"object":\#(a),"later":true},{"object":\#(b),"state":{"b":1}}]}"#
    )
    for _ in 1...3 {
      let call = try #require(peer.openCalls(Self.encode).first)
      #expect(paths(call) == ["A"])
      peer.answer(call.id, #"{"states":[{"object":\#(a),"later":true}]}"#)
    }
    #expect(stale(try peer.result(of: id)) == ["A: late"])
    #expect(try archived(1)["B"] == ["b": 1])
  }

  // MARK: R7, R14

  @Test func r7AnExcludedObjectThatASavedOneRefersToIsAskedAndSaved() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("Root", below: nil, #""kind":"viewController""#)
    try a.register(nil, below: #"["Root"]"#, #""kind":"viewController""#)
    let hole = try #require(try a.objects().first { $0["path"] == .null }?["object"]?.integer)
    try b.register("Hidden", below: "\(hole)", #""kind":"viewController""#)
    let other = try b.register("Other", below: "\(hole)", #""kind":"viewController""#)
    a.serves[Self.encode] = Peer.states { _ in #"{"to":{"$restorable":["Hidden"]}}"# }
    let reply = try a.call("saveApplicationState")
    #expect(reply["objects"] == 2)
    #expect(b.calls.map(paths) == [["Hidden"]])
    let excluded = reply["excluded"]?.array ?? []
    #expect(excluded.compactMap { $0["object"]?.integer } == [hole, other])
    #expect(excluded.map { $0["by"]?.integer } == [hole, hole])
    #expect(excluded.map { $0["path"]?.joined } == [nil, "Other"])
    #expect(excluded.map { $0["pid"] } == [1, 2])
    #expect(try archived(1)["Hidden"] == ["of": "Hidden"])
    driver.inspect()
  }

  @Test func r5AViewWithoutControllersIsExcludedByWhatItIsBelow() throws {
    let peer = try worker(1)
    let object = try peer.register("Object")
    let view = try peer.register("View", below: #"["Object"]"#, #""kind":"view""#)
    let lonely = try peer.register("Lonely", below: nil, #""kind":"view""#)
    let excluded = try peer.call("saveApplicationState")["excluded"]?.array ?? []
    #expect(excluded.map { $0["object"]?.integer } == [view, lonely])
    #expect(excluded.map { $0["by"]?.integer } == [object, lonely])
  }

  @Test func r7ReferencesAreFollowedThroughObjectsThatNobodyIsAskedFor() throws {
    let pushes = driver.connect(pid: 1)
    try pushes.initialize()
    try pushes.register("Root", below: nil, #""kind":"viewController""#)
    let hole = try pushes.register(nil, below: #"["Root"]"#, #""kind":"viewController""#)
    try pushes.register("One", below: "\(hole)", #""kind":"viewController""#)
    let served = try worker(2)
    try served.register("Two", below: "\(hole)", #""kind":"viewController""#)
    try pushes.encode(#"["One"]"#, #"{"to":{"$restorable":["Two"]}}"#)
    try pushes.encode(#"["Root"]"#, #"{"to":{"$restorable":["One"]}}"#)
    #expect(try pushes.call("saveApplicationState")["objects"] == 3)
    #expect(served.calls.map(paths) == [["Two"]])
    // Objects that the application itself refers to are saved as well.
    try pushes.encode(#"["Root"]"#, "{}")
    let delegate = driver.connect(pid: 3)
    delegate.serves["willEncodeRestorableState"] = { _ in #"{"state":{"to":{"$restorable":["Two"]}}}"# }
    try delegate.initialize("App", #""delegate":true,"serves":["willEncodeRestorableState"]"#)
    let reply = try pushes.call("saveApplicationState")
    #expect(reply["objects"] == 2)
    #expect(Set(try archived(2).keys) == ["Root", "Two"])
    driver.inspect()
  }
}

extension Peer {
  /// An answer to encode with what `state` says of each path.
  static func states(_ state: @escaping (String) -> String) -> (JSONValue) -> String? {
    { parameters in
      let states = (parameters["objects"]?.array ?? []).map { object in
        #"{"object":\#(object["object"]?.integer ?? 0),"state":\#(state(object["path"]?.joined ?? ""))}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
  }

  /// Answers the encode call that is open.
  func answerEncode(_ state: @escaping (String) -> String) {
    guard let call = openCalls("encodeRestorableStateWithCoder").first,
      let result = Self.states(state)(call.parameters)
    else { return }
    answer(call.id, result)
  }
}
