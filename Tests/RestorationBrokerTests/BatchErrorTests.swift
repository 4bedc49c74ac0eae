// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// A batch that is answered with an error is handed out again, one object at a time: only what cannot be decoded by
/// itself counts as failed (R29).
@Suite struct BatchErrorTests {
  let fixture = RestoringFixture()
  var broker: MemoryBroker { fixture.broker }

  private static let decode = "decodeRestorableStateWithCoder"

  init() throws {
    try fixture.save(["A", "Bad", "C"].map { ($0, nil, "", #"{"of":"\#($0)"}"#) })
  }

  /// Answers nothing before `answerAll`.
  private func join() throws -> Peer {
    let worker = try fixture.join("W", pid: 2)
    worker.serves[Self.decode] = { _ in nil }
    return worker
  }

  /// Answers each batch as a program does that cannot read `Bad`: for the whole call. Returns the batches.
  private func answerAll(_ worker: Peer) -> [[String]] {
    var batches: [[String]] = []
    while let call = worker.openCalls(Self.decode).first {
      let paths = (call.parameters["objects"]?.array ?? []).compactMap { $0["path"]?.joined }
      batches.append(paths)
      if paths.contains("Bad") {
        worker.answer(call.id, errorCode: -32603, "it is of version 3")
      } else {
        worker.answer(call.id, "{}")
      }
    }
    return batches
  }

  private func failure(of path: String, _ worker: Peer) throws -> JSONValue? {
    let steps = try worker.call("explainRestoration", #"{"object":["\#(path)"]}"#)["restored"]?.array ?? []
    return steps.first { $0["step"] == "skipped" }
  }

  @Test func r29ARestorationHandsTheObjectsOfARefusedBatchOutAloneAndOnlyOneFails() throws {
    let worker = try join()
    for name in ["A", "Bad", "C"] { try worker.register(name) }
    let id = worker.start("restoreApplicationState")
    let batches = answerAll(worker)
    #expect(batches.first == ["A", "Bad", "C"])
    #expect(batches.dropFirst().sorted { $0[0] < $1[0] } == [["A"], ["Bad"], ["C"]])
    #expect(outcome(try worker.result(of: id)) == ["+A", "+C", "-Bad failed"])
    #expect(try failure(of: "C", worker) == nil)
    broker.inspect()
  }

  @Test func r19WhatAnObjectBesideAnUnreadableOneWroteBeforeItWasGivenItsStateIsDropped() throws {
    let worker = try join()
    for name in ["A", "Bad", "C"] {
      try worker.register(name)
      try worker.encode(#"["\#(name)"]"#, #"{"of":"blank"}"#)
    }
    worker.start("restoreApplicationState")
    _ = answerAll(worker)
    try worker.goodbye("restart")
    let reader = broker.connect(pid: 3)
    try reader.initialize()
    // What cannot be read is set aside for what its owner has written.
    for (name, expected) in [("A", "A"), ("Bad", "blank"), ("C", "C")] {
      #expect(try reader.state(#"["\#(name)"]"#) == ["of": .string(expected)], "\(name)")
    }
    broker.inspect()
  }

  @Test func r29AProcessThatComesAfterTheRestorationGetsThemAloneAsWell() throws {
    let main = try fixture.join("main", pid: 4)
    let id = main.start("restoreApplicationState", #"{"deadlineMilliseconds":100}"#)
    broker.advance(milliseconds: 100)
    _ = try main.result(of: id)
    let worker = try join()
    for name in ["A", "Bad", "C"] { try worker.register(name) }
    // The first was asked for before the others were registered.
    #expect(answerAll(worker) == [["A"], ["Bad", "C"], ["Bad"], ["C"]])
    #expect(fixture.finished(worker).count == 2)
    broker.inspect()
  }

  @Test func anObjectThatIsHandedOutAloneAndRefusedIsNotHandedOutAgain() throws {
    let worker = try join()
    try worker.register("Bad")
    let id = worker.start("restoreApplicationState", #"{"objects":[["Bad"]]}"#)
    #expect(answerAll(worker) == [["Bad"]])
    #expect(outcome(try worker.result(of: id)) == ["-Bad failed"])
    broker.inspect()
  }

  @Test(arguments: ["", #","objects":[["Bad"]]"#])
  func r35AfterARollbackToAStateThatItCouldNotReadNothingThatItWritesIsWithheld(_ part: String) throws {
    let worker = try join()
    try worker.register("Bad")
    let id = worker.start("restoreApplicationState", #"{"objects":[["Bad"]]}"#)
    _ = answerAll(worker)
    _ = try worker.result(of: id)
    try broker.connect(pid: 5).call("rollBack", #"{"application":"App","generation":1,"force":true\#(part)}"#)
    try worker.encode(#"["Bad"]"#, #"{"of":"worker"}"#)
    try worker.call("completeStateRestoration")
    try worker.encode(#"["Bad"]"#, #"{"of":"worker again"}"#)
    #expect(try worker.call("listQuarantine")["objects"] == [])
    broker.inspect()
  }
}
