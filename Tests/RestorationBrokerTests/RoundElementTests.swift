// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Elements of views in a save round: data sources are asked for their identifiers (R28).
@Suite struct RoundElementTests {
  let driver = CoreDriver()

  static let encode = "encodeRestorableStateWithCoder"
  static let identify = "modelIdentifierForElementAtIndexPath"

  /// The owner of a view, which answers with these elements.
  private func owner(_ elements: String) throws -> Peer {
    let peer = driver.connect(pid: 1)
    try peer.initialize("App", #""process":"view","serves":["\#(Self.encode)"]"#)
    try peer.register("C", below: nil, #""kind":"viewController""#)
    let view = try peer.register("V", below: #"["C"]"#, #""kind":"view""#)
    peer.serves[Self.encode] = { parameters in
      let states = (parameters["objects"]?.array ?? []).map { object in
        let handle = object["object"]?.integer ?? 0
        return #"{"object":\#(handle),"state":{}\#(handle == view ? #","elements":\#(elements)"# : "")}"#
      }
      return #"{"states":[\#(states.joined(separator: ","))]}"#
    }
    return peer
  }

  private func source() throws -> Peer {
    let peer = driver.connect(pid: 2)
    try peer.initialize("App", #""process":"data","serves":["\#(Self.identify)"]"#)
    try peer.call("registerDataSource", #"{"view":["C","V"]}"#)
    return peer
  }

  private func elements() throws -> [JSONValue] {
    let objects = try driver.connect(pid: 9).call("readArchive", #"{"application":"App"}"#)["objects"]?.array ?? []
    return objects.first { $0["path"]?.joined == "C/V" }?["elements"]?.array ?? []
  }

  private let three =
    #"[{"role":"selected","indexPath":[0,1]},{"role":"topVisible","indexPath":[0,0]},"#
    + #"{"role":"selected","indexPath":[2],"identifier":"known"}]"#

  @Test func r28ElementsAreSavedByWhatTheDataSourceCallsThem() throws {
    let (view, data) = (try owner(three), try source())
    let id = view.start("saveApplicationState")
    let calls = data.openCalls(Self.identify)
    #expect(
      calls.map(\.parameters) == [
        ["view": ["C", "V"], "indexPath": [0, 1], "role": "selected"],
        ["view": ["C", "V"], "indexPath": [0, 0], "role": "topVisible"],
      ]
    )
    #expect(!view.hasAnswer(id))
    data.answer(calls[1].id, "null")
    data.answer(calls[0].id, #""one""#)
    #expect(try view.result(of: id)["stale"] == [])
    #expect(try elements().map { $0["identifier"] } == ["one", "known"])
    #expect(try elements().map { $0["indexPath"] } == [[0, 1], [2]])
    driver.inspect()
  }

  @Test func r28WhatTheDataSourceDoesNotAnswerStaysAsItIs() throws {
    let (view, data) = (try owner(three), try source())
    let id = view.start("saveApplicationState")
    let calls = data.openCalls(Self.identify)
    data.answer(calls[0].id, errorCode: -1, "no")
    data.answer(calls[1].id, "7")
    #expect(view.hasAnswer(id))
    #expect(try elements().map { $0["identifier"]?.string } == [nil, nil, "known"])
    let late = view.start("saveApplicationState", #"{"deadlineMilliseconds":1000}"#)
    driver.advance(milliseconds: 1_000)
    #expect(try view.result(of: late)["stale"] == [], "the state itself has come")
    let lost = view.start("saveApplicationState")
    driver.disconnect(data)
    #expect(view.hasAnswer(lost))
  }

  @Test func r28ALongIdentifierIsNotTaken() throws {
    let (view, data) = (try owner(#"[{"role":"selected","indexPath":[0]}]"#), try source())
    data.serves[Self.identify] = { _ in "\"" + String(repeating: "x", count: 1_025) + "\"" }
    try view.call("saveApplicationState")
    #expect(try elements().map { $0["identifier"]?.string } == [nil])
    data.serves[Self.identify] = { _ in "\"" + String(repeating: "x", count: 1_024) + "\"" }
    try view.call("saveApplicationState")
    #expect(try elements().first?["identifier"]?.string?.count == 1_024)
  }

  private func selected(_ count: Int) -> String {
    "[" + (0..<count).map { #"{"role":"selected","indexPath":[\#($0)]}"# }.joined(separator: ",") + "]"
  }

  @Test(arguments: [true, false])
  func r28ADataSourceThatCannotBeAskedIsNot(_ isServed: Bool) throws {
    let view = try owner(selected(3_000))
    let data = driver.connect(pid: 2)
    let served = isServed ? Self.identify : "indexPathForElementWithModelIdentifier"
    try data.initialize("App", #""serves":["\#(served)"]"#)
    try data.call("registerDataSource", #"{"view":["C","V"]}"#)
    if isServed { driver.disconnect(data) }
    try view.call("saveApplicationState")
    #expect(try elements().count == 3_000)
  }

  @Test func r28ALostDataSourceEndsAllItsQuestions() throws {
    let (view, data) = (try owner(selected(3_000)), try source())
    let id = view.start("saveApplicationState")
    #expect(data.openCalls(Self.identify).count == 64)
    data.answer(try #require(data.openCalls(Self.identify).first).id, #""one""#)
    #expect(data.openCalls(Self.identify).count == 64)
    driver.disconnect(data)
    #expect(try view.result(of: id)["saved"] == true)
    #expect(try elements().first?["identifier"] == "one")
    driver.inspect()
  }

  @Test func r28WithoutADataSourceNobodyIsAsked() throws {
    let view = try owner(three)
    try view.call("saveApplicationState")
    #expect(try elements().count == 3)
    #expect(try elements().first?["resolved"] == false)
  }
}
