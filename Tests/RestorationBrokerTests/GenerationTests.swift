// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Sealing at the start of a run, pins, and kept generations (R7, R16, R17).
@Suite struct GenerationTests {
  let driver = CoreDriver()

  /// One run that pushes a state, or registers only.
  private func run(_ number: Int64, state: String? = nil, ending: String = "restart") throws {
    let peer = driver.connect(pid: 100 + number)
    try peer.initialize()
    try peer.register("Main")
    if let state { try peer.encode(#"["Main"]"#, state) }
    try peer.goodbye(ending)
    driver.inspect()
  }

  private func generations() throws -> [String] {
    let reader = driver.connect(pid: 1)
    let result = try reader.call("listGenerations", #"{"application":"App"}"#)
    return (result["generations"]?.array ?? []).map { generation in
      "\(generation["generation"]?.integer ?? 0)\(generation["pinned"] == true ? "p" : "")"
    }
  }

  private func archived(_ generation: Int) throws -> [String: JSONValue] {
    let reader = driver.connect(pid: 1)
    let result = try reader.call("readArchive", #"{"application":"App","generation":\#(generation)}"#)
    var states: [String: JSONValue] = [:]
    for object in result["objects"]?.array ?? [] { states[object["path"]?.joined ?? ""] = object["state"] ?? .null }
    return states
  }

  @Test func r16TheFirstRunSealsNothing() throws {
    try run(1, state: #"{"a":1}"#)
    #expect(try generations().isEmpty)
  }

  @Test func r16ARunThatBeginsSealsWhatTheLastOneLeft() throws {
    try run(1, state: #"{"a":1}"#)
    let peer = driver.connect(pid: 2)
    let result = try peer.initialize()
    #expect(result["restoration"]?["generation"] == 1)
    #expect(result["restoration"]?["archive"] == "archive-1")
    let generation = try #require(
      try peer.call("listGenerations")["generations"]?.array?.first
    )
    #expect(generation["kind"] == "startup")
    #expect(generation["objects"] == 1)
    #expect(generation["bytes"] == 7)
    #expect(generation["pinned"] == true)
    #expect(generation["committed"] == "2023-11-14T22:13:20.000Z")
    try peer.register("Main")
    _ = try peer.decode(#"["Main"]"#)
    try peer.encode(#"["Main"]"#, #"{"a":2}"#)
    #expect(try archived(1) == ["Main": ["a": 1]])
    #expect(try peer.state(#"["Main"]"#) == ["a": 2])
  }

  @Test func r16ASecondSessionOfARunSealsNothing() throws {
    try run(1, state: #"{"a":1}"#)
    let (first, second) = (driver.connect(pid: 2), driver.connect(pid: 3))
    try first.initialize()
    try first.register("Main")
    try first.encode(#"["Main"]"#, #"{"a":2}"#)
    try second.initialize()
    #expect(try generations() == ["1p"])
  }

  @Test func r16ThePinIsNeverMovedAndThreeMoreAreKept() throws {
    for number in 1...7 { try run(Int64(number), state: #"{"a":\#(number)}"#) }
    #expect(try generations() == ["1p", "4", "5", "6"])
    #expect(try archived(1) == ["Main": ["a": 1]])
    #expect(try archived(6) == ["Main": ["a": 6]])
    let reader = driver.connect(pid: 1)
    let failure = try reader.fail("readArchive", #"{"application":"App","generation":3}"#)
    #expect(failure.data["pointer"] == "/generation")
  }

  @Test func r16ABlankStartOrManyDestroyNothing() throws {
    try run(1, state: #"{"good":1}"#)
    for number in 2...9 { try run(Int64(number), state: #"{"blank":\#(number)}"#) }
    driver.restart()
    try run(10, state: #"{"blank":10}"#)
    #expect(try archived(1) == ["Main": ["good": 1]])
    #expect(try generations().first == "1p")
  }

  @Test func r17ARunThatChangesNothingMakesNoGeneration() throws {
    try run(1, state: #"{"a":1}"#)
    for number in 2...5 { try run(Int64(number)) }
    #expect(try generations() == ["1p"])
    driver.restart()
    try run(6)
    #expect(try generations() == ["1p"])
  }

  @Test func r17AnApplicationWithoutStatesMakesNoGeneration() throws {
    for number in 1...3 { try run(Int64(number)) }
    #expect(try generations().isEmpty)
  }

  @Test func r16NumbersNeverGoBack() throws {
    for number in 1...3 { try run(Int64(number), state: #"{"a":\#(number)}"#) }
    let peer = driver.connect(pid: 1)
    try peer.call("discardApplicationState", #"{"application":"App","generations":true}"#)
    #expect(try generations().isEmpty)
    driver.restart()
    try run(4, state: #"{"a":4}"#)
    try run(5, state: #"{"a":5}"#)
    #expect(try generations() == ["3p"])
  }

  @Test func r16AGenerationShowsThePathsItHad() throws {
    let peer = driver.connect(pid: 2)
    try peer.initialize()
    try peer.register("A")
    try peer.register("B", below: #"["A"]"#)
    try peer.encode(#"["A","B"]"#, #"{"b":1}"#)
    try peer.goodbye("restart")
    try peer.initialize()
    try peer.register("A")
    try peer.register("B", below: #"["A"]"#)
    try peer.call("setRestorationIdentifier", #"{"object":["A"],"restorationIdentifier":"Z"}"#)
    try peer.call("unregisterObject", #"{"object":["Z","B"]}"#)
    #expect(try archived(1) == ["A": nil, "A/B": ["b": 1]])
    #expect(try peer.paths() == ["Z"])
    driver.inspect()
  }

  @Test func r7WhatASavedObjectRefersToIsInTheGeneration() throws {
    let peer = driver.connect(pid: 2)
    try peer.initialize()
    let excluded = try peer.register(nil, below: nil, #""kind":"viewController""#)
    for name in ["Direct", "Indirect", "Unreached", "Ring"] {
      try peer.register(name, below: "\(excluded)", #""kind":"viewController""#)
      try peer.encode(#"["\#(name)"]"#, "{}")
    }
    try peer.register("Root")
    try peer.encode(#"["Direct"]"#, #"{"r":[{"$restorable":["Indirect"]}]}"#)
    try peer.encode(#"["Unreached"]"#, #"{"r":{"$restorable":["Ring"]}}"#)
    try peer.encode(#"["Ring"]"#, #"{"r":{"$restorable":["Unreached"]}}"#)
    try peer.encode(#"["Root"]"#, #"{"r":{"x":{"$restorable":["Direct"]}}}"#)
    try peer.goodbye("restart")
    driver.restart()
    try driver.connect(pid: 3).initialize()
    #expect(try archived(1).keys.sorted() == ["Direct", "Indirect", "Root"])
    driver.inspect()
  }
}
