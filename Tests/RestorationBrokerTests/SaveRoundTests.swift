// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// What vectors cannot say of save rounds: processes that die, times, limits, and how it is stored (R12, R33).
@Suite struct SaveRoundTests {
  let broker = MemoryBroker()

  static let encode = "encodeRestorableStateWithCoder"

  /// A client that answers nothing automatically.
  private func worker(_ pid: Int64, _ more: String = "") throws -> Peer {
    let peer = broker.connect(pid: pid)
    try peer.initialize("App", #""process":"w\#(pid)","serves":["\#(Self.encode)"]"# + more)
    return peer
  }

  /// A client that answers with a state that contains the object's path.
  private func answering(_ pid: Int64, _ more: String = "") throws -> Peer {
    let peer = try worker(pid, more)
    peer.serves[Self.encode] = Peer.states { #"{"of":"\#($0)"}"# }
    return peer
  }

  private func head() throws -> [String: JSONValue] {
    let reader = broker.connect(pid: 1)
    var states: [String: JSONValue] = [:]
    for object in try reader.call("readArchive", #"{"application":"App"}"#)["objects"]?.array ?? [] {
      states[object["path"]?.joined ?? ""] = object["state"] ?? .null
    }
    return states
  }

  private func stale(_ reply: JSONValue) -> [String] {
    (reply["stale"]?.array ?? []).map { "\($0["path"]?.joined ?? "null"): \($0["why"]?.string ?? "")" }
  }

  // MARK: Large applications

  @Test func r12OthersAreServedBetweenTheWalkAndTheCommitOfALargeRound() throws {
    let (peer, other) = (broker.connect(pid: 2), broker.connect(pid: 3))
    try peer.initialize()
    for number in 0...SaveRound.StateMachine.walkMax { try peer.register("n\(number)") }
    try peer.encode(#"["n0"]"#, #"{"n":1}"#)
    let id = peer.start("saveApplicationState")
    #expect(peer.resultIfAny(of: id) == nil)
    try other.call("encodeRestorableState", #"{"application":"App","object":["late"],"state":{"n":2}}"#)
    broker.advance(milliseconds: 1)
    #expect(try peer.result(of: id)["objects"] == 2, "the generation holds what was so when it was sealed")
    broker.inspect()
  }

  // MARK: Sessions

  @Test func r12AProcessThatDiesIsStaleAndBlocksNobody() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    a.answerEncode { _ in "{}" }
    broker.kill(b)
    broker.disconnect(b)
    let reply = try a.result(of: id)
    #expect(stale(reply) == ["B: ended"])
    #expect(reply["stale"]?.array?.first?["process"] == "w2")
    broker.inspect()
  }

  @Test(arguments: ["shouldSaveApplicationState", "willEncodeRestorableState"])
  func r9ADelegateThatDiesWhileItIsAskedHoldsNobodyUp(_ method: String) throws {
    let a = try answering(1)
    try a.register("A")
    let delegate = broker.connect(pid: 2)
    try delegate.initialize("App", #""process":"w2","delegate":true,"serves":["\#(method)"]"#)
    let id = a.start("saveApplicationState")
    #expect(delegate.openCalls(method).count == 1)
    broker.kill(delegate)
    broker.disconnect(delegate)
    let reply = try a.result(of: id)
    #expect(reply["saved"] == true)
    #expect(stale(reply) == (method == "willEncodeRestorableState" ? [": ended"] : []))
    #expect(try head()["A"] == ["of": "A"])
    broker.inspect()
  }

  @Test func r16R19ARoundThatEndsTheRestorationKnowsItAlsoIfADeathEndsTheRound() throws {
    let first = try answering(1)
    try first.register("B")
    try first.call("saveApplicationState")
    try first.goodbye("logout")
    broker.disconnect(first)
    let (a, b, caller) = (try worker(2), try worker(3), broker.connect(pid: 4))
    try a.register("A")
    try b.register("B")
    _ = try b.decode(#"["B"]"#)
    let generations = { try caller.call("listGenerations", #"{"application":"App"}"#)["generations"]?.array ?? [] }
    #expect(try generations().map { $0["pinned"] == true } == [true])
    let id = caller.start("saveApplicationState", #"{"application":"App"}"#)
    b.answerEncode { _ in #"{"later":1}"# }
    broker.kill(a)
    broker.disconnect(a)
    #expect(try caller.result(of: id)["saved"] == true)
    #expect(try generations().contains { $0["pinned"] == true } == false)
    broker.inspect()
  }

  @Test(arguments: [("logout", 2), ("restart", 2), ("", 1)])
  func r19AGoodbyeClearsTheMarkOfWhatWaitsForTheCommit(_ reason: String, _ expected: Int64) throws {
    let first = try worker(1)
    try first.register("A")
    try first.encode(#"["A"]"#, #"{"n":1}"#)
    try first.goodbye("restart")
    let (a, b) = (try worker(2), try worker(3))
    try a.register("A")
    try b.register("B")
    let id = b.start("saveApplicationState")
    a.answerEncode { _ in #"{"n":2}"# }
    if reason.isEmpty { broker.crash(a) } else { try a.goodbye(reason) }
    b.answerEncode { _ in "{}" }
    #expect(try b.result(of: id)["saved"] == true)
    let last = try worker(4)
    try last.register("A")
    #expect(try last.state(#"["A"]"#) == ["n": .integer(expected)])
    broker.inspect()
  }

  /// A client that answers what it is asked, as any JSON-RPC library lets it.
  @Test func r12ABatchWhoseAnswerExceedsALimitOfFramesIsHalved() throws {
    var limits = Limits()
    (limits.frameBytesMax, limits.stateBytesMax) = (65_536, 32_768)
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect(pid: 2)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    for number in 1...8 { try peer.register("O\(number)") }
    let text = String(repeating: "x", count: 20_000)
    peer.serves[Self.encode] = Peer.states { #"{"of":"\#($0)","text":"\#(text)"}"# }
    let result = try peer.call("saveApplicationState")
    #expect(result["objects"] == 8 && result["stale"] == [], "\(result)")
    let asked = peer.calls.filter { $0.method == Self.encode }.map { $0.parameters["objects"]?.array?.count }
    #expect(asked.prefix(3) == [8, 4, 2])
    broker.inspect()
  }

  /// No client waits for an automatic round.
  @Test func r12AnOwnerIsToldOfWhatARoundRefusesWithoutHavingAskedForIt() throws {
    let (peer, monitor) = (try worker(2), broker.connect(pid: 9))
    try monitor.call("subscribe", #"{"events":["encodeFailed"]}"#)
    let handles = try ["A", "B", "C", "D"].map { try peer.register($0) }
    broker.advance(milliseconds: 15_000)
    let states = [
      #""state":{"UIStateRestorationX":1}"#, #""state":{"r":{"$restorable":["No"],"optional":1}}"#,
      #""error":"locked""#,
    ]
    let answers = zip(handles, states).map { #"{"object":\#($0),\#($1)}"# }.joined(separator: ",")
    peer.answer(try #require(peer.openCalls(Self.encode).first).id, #"{"states":[\#(answers)]}"#)
    let told = peer.takeNotifications("encodeFailed")
    #expect(told.map { $0["error"]?["kind"]?.string } == ["reservedKey", "invalidReference", "missing"])
    #expect(told.map { $0["path"]?.joined } == ["A", "B", "D"] && told.first?["object"] == .integer(handles[0]))
    #expect(monitor.takeNotifications("event").map { $0["path"]?.joined } == ["A", "B", "D"])
    broker.inspect()
  }

  /// A process that is stopped reads nothing, and rounds go on.
  @Test func r12WhoIsLateIsToldNothing() throws {
    let peer = try worker(2)
    try peer.register("A")
    broker.advance(milliseconds: 15_000 + 5_000)
    #expect(peer.openCalls(Self.encode).isEmpty && peer.takeNotifications("encodeFailed").isEmpty)
  }

  @Test func r12AnAnswerThatIsTooLongForOneObjectIsTold() throws {
    var limits = Limits()
    (limits.frameBytesMax, limits.stateBytesMax) = (65_536, 32_768)
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect(pid: 2)
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    try peer.register("A")
    let text = String(repeating: "x", count: 70_000)
    peer.serves[Self.encode] = Peer.states { _ in #"{"text":"\#(text)"}"# }
    #expect(try stale(peer.call("saveApplicationState")) == ["A: failed"])
    #expect(peer.takeNotifications("encodeFailed").map { $0["error"]?["kind"] } == ["limitExceeded"])
  }

  @Test func r16UnchangedStatesTakeNoRoom() throws {
    var limits = Limits()
    limits.archiveBytesMax = 10_000
    let broker = MemoryBroker(limits: limits)
    let a = broker.connect(pid: 1)
    try a.initialize("App", #""serves":["\#(Self.encode)"]"#)
    for name in ["A", "B"] { try a.register(name) }
    let text = #"{"x":"\#(String(repeating: "x", count: 3_500))"}"#
    for isSaved in [true, false] {
      let id = a.start("saveApplicationState")
      a.answerEncode { _ in text }
      #expect(try a.result(of: id)["stale"] == [])
      #expect(try a.result(of: id)["saved"] == .bool(isSaved))
    }
  }

  @Test func r12WhatHasComeCountsAlsoWhenItsProcessDiesBeforeTheCommit() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState")
    b.answerEncode { _ in #"{"last":1}"# }
    broker.crash(b)
    a.answerEncode { _ in "{}" }
    #expect(stale(try a.result(of: id)) == [])
    #expect(try head()["B"] == ["last": 1])
    broker.inspect()
  }

  @Test func r28ALostDataSourceEndsAllItsQuestions() throws {
    let identify = "modelIdentifierForElementAtIndexPath"
    let (view, data) = (try worker(1), broker.connect(pid: 2))
    try view.register("C", below: nil, #""kind":"viewController""#)
    let handle = try view.register("V", below: #"["C"]"#, #""kind":"view""#)
    try data.initialize("App", #""serves":["\#(identify)"]"#)
    try data.call("registerDataSource", #"{"view":["C","V"]}"#)
    let id = view.start("saveApplicationState")
    let elements = (0..<3_000).map { #"{"role":"selected","indexPath":[\#($0)]}"# }.joined(separator: ",")
    let call = try #require(view.openCalls(Self.encode).first)
    view.answer(call.id, #"{"states":[{"object":\#(handle),"state":{},"elements":[\#(elements)]}]}"#)
    #expect(data.openCalls(identify).count == 64)
    data.answer(try #require(data.openCalls(identify).first).id, #""one""#)
    #expect(data.openCalls(identify).count == 64)
    broker.disconnect(data)
    #expect(try view.result(of: id)["saved"] == true)
    let decode = view.start("decodeRestorableState", #"{"object":\#(handle)}"#)
    broker.advance(milliseconds: ElementResolver.milliseconds)
    let saved = try view.result(of: decode)["elements"]?.array
    #expect(saved?.count == 3_000)
    #expect(saved?.first?["identifier"] == "one")
    broker.inspect()
  }

  // MARK: States

  /// The vectors have the other bad answers.
  @Test func r12AStateThatNamesAMemberTwiceIsMalformed() throws {
    let peer = try worker(1)
    try peer.register("A")
    let id = peer.start("saveApplicationState")
    peer.answerEncode { _ in #"{"a":1,"a":2}"# }
    #expect(stale(try peer.result(of: id)) == ["A: malformed"])
  }

  @Test func r12TheRoundIsOneTransaction() throws {
    let (a, b) = (try answering(1), try worker(2))
    try a.register("A")
    try b.register("B")
    broker.forgetWritten()
    let id = a.start("saveApplicationState")
    #expect(broker.writtenStates == 0, "no state is written before the last answer")
    broker.holdsCommits = true
    b.answerEncode { _ in #"{"b":1}"# }
    #expect(broker.writtenStates == 0 && !a.hasAnswer(id))
    broker.holdsCommits = false
    broker.commit()
    #expect(broker.writtenStates == 2)
    #expect(try a.result(of: id)["saved"] == true)
  }

  @Test func r16APulledStateThatIsTheSameIsNotWrittenAgain() throws {
    let peer = try answering(1)
    for name in ["A", "B", "C"] { try peer.register(name) }
    try peer.call("saveApplicationState")
    broker.forgetWritten()
    peer.serves[Self.encode] = Peer.states { $0 == "B" ? #"{"new":1}"# : #"{"of":"\#($0)"}"# }
    #expect(try peer.call("saveApplicationState")["saved"] == true)
    #expect(broker.writtenStates == 1)
  }

  @Test func r12AStateThatDoesNotFitIntoTheArchiveIsStale() throws {
    var limits = Limits()
    limits.archiveBytesMax = 64 << 10
    let broker = MemoryBroker(limits: limits)
    let peer = broker.connect(pid: 1)
    let text = String(repeating: "x", count: 30 << 10)
    peer.serves[Self.encode] = Peer.states { #"{"\#($0)":"\#(text)"}"# }
    try peer.initialize("App", #""serves":["\#(Self.encode)"]"#)
    for name in ["A", "B", "C"] { try peer.register(name) }
    #expect(stale(try peer.call("saveApplicationState")) == ["C: limitExceeded"])
    broker.inspect()
  }

  @Test func batchesAreBoundedByCountAndByTheClientsBytes() throws {
    let peer = try answering(1)
    for number in 0..<70 { try peer.register("O\(number)") }
    let narrow = try answering(2, #","messageBytesMax":4096"#)
    let name = String(repeating: "n", count: 200)
    for number in 0..<20 { try narrow.register("\(name)\(number)") }
    #expect(try peer.call("saveApplicationState")["objects"] == 90)
    func sizes(_ peer: Peer) -> [Int?] { peer.calls.map { $0.parameters["objects"]?.array?.count } }
    #expect(sizes(peer) == [64, 6])
    #expect(sizes(narrow) == [7, 7, 6])
  }

  // MARK: The round as a whole

  @Test func aRoundThatBeganByItselfGoesOnWhenTheLastCallerCancels() throws {
    let (a, tool) = (try worker(1), broker.connect(pid: 2))
    try a.register("A")
    broker.advance(milliseconds: 15_000)
    let id = tool.start("saveApplicationState", #"{"application":"App"}"#)
    tool.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    #expect(try tool.failure(of: id).code == -32800)
    a.answerEncode { _ in "{}" }
    #expect(try a.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func r18ChangesThatARoundDidNotSaveMakeAnotherOne() throws {
    let (a, tool) = (try worker(1), broker.connect(pid: 2))
    try a.register("A")
    let id = tool.start("saveApplicationState", #"{"application":"App"}"#)
    tool.notify("$/cancelRequest", #"{"id":\#(id)}"#)
    #expect(a.openCalls(Self.encode).isEmpty)
    broker.advance(milliseconds: 15_000)
    #expect(a.openCalls(Self.encode).count == 1)
  }

  @Test func progressIsToldWhereItIsAskedFor() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    let id = a.start("saveApplicationState", #"{"progressToken":"p"}"#)
    broker.advance(milliseconds: 200)
    b.answerEncode { _ in "{}" }
    #expect(a.takeNotifications("progress") == [["progressToken": "p", "done": 1, "total": 2]])
    a.answerEncode { _ in "{}" }
    #expect(a.hasAnswer(id))
    #expect(a.takeNotifications("progress") == [["progressToken": "p", "done": 2, "total": 2]])
  }

  @Test func aFailedTransactionInterruptsTheRound() throws {
    let a = try worker(1)
    try a.register("A")
    broker.holdsCommits = true
    let id = a.start("saveApplicationState")
    a.notify("encodeRestorableState", #"{"object":["B"],"state":{}}"#)
    broker.failCommit("App")
    broker.holdsCommits = false
    #expect(try a.result(of: id)["reason"] == "interrupted")
    let again = a.start("saveApplicationState")
    a.answerEncode { _ in "{}" }
    #expect(try a.result(of: again)["saved"] == true)
    broker.inspect()
  }

  @Test func r12AFailedCommitFailsTheCallAndNothingIsSaved() throws {
    let a = try worker(1)
    try a.register("A")
    broker.holdsCommits = true
    let id = a.start("saveApplicationState")
    a.answerEncode { _ in #"{"a":1}"# }
    broker.failCommit("App")
    broker.holdsCommits = false
    #expect(try a.failure(of: id).kind == "storeFailed")
    #expect(try a.call("listGenerations")["generations"] == [])
    #expect(try head() == ["A": .null])
  }

  // MARK: R33

  @Test func r33ABrokerThatIsToEndSavesWhatItsClientsHave() throws {
    let (a, b) = (try worker(1), try worker(2))
    try a.register("A")
    try b.register("B")
    broker.saveBeforeEnd()
    #expect(broker.core.isSaving)
    a.answerEncode { _ in #"{"a":1}"# }
    broker.advance(milliseconds: 4_999)
    #expect(broker.core.isSaving)
    broker.advance(milliseconds: 1)
    #expect(!broker.core.isSaving)
    #expect(try head() == ["A": ["a": 1], "B": .null])
    #expect(try a.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func r33ARoundUnderWayIsHurriedAndWhoHasNothingToSaveIsLeftAlone() throws {
    let a = try worker(1)
    try a.register("A")
    let id = a.start("saveApplicationState", #"{"deadlineMilliseconds":60000}"#)
    let quiet = broker.connect(pid: 5)
    try quiet.initialize("Quiet")
    broker.saveBeforeEnd()
    broker.advance(milliseconds: 5_000)
    #expect(stale(try a.result(of: id)) == ["A: late"])
    #expect(!broker.core.isSaving)
    #expect(try quiet.call("listGenerations")["generations"] == [])
    let pushes = broker.connect(pid: 6)
    try pushes.initialize("Pushes")
    try pushes.encode(#"["P"]"#, "{}")
    broker.saveBeforeEnd()
    #expect(try pushes.call("listGenerations")["generations"]?.array?.count == 1)
  }

  @Test func r33ARoundOfABrokerThatEndsGetsNoMoreTimeThanIsLeft() throws {
    let a = try worker(1)
    try a.register("A")
    broker.saveBeforeEnd()
    broker.advance(milliseconds: 4_000)
    a.answerEncode { _ in "{}" }
    #expect(!broker.core.isSaving)
    let id = a.start("saveApplicationState", #"{"deadlineMilliseconds":600000}"#)
    broker.advance(milliseconds: 1_000)
    #expect(a.hasAnswer(id))
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
