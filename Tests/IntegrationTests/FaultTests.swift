// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The disk refuses: an error is never taken for success, and nothing acknowledged is lost (R15).
@Suite(.enabled(if: Strace.isUsable, Comment(rawValue: Strace.requirement)))
struct FaultTests {
  /// Begins a broker whose `call` fails, with states in it that were acknowledged before.
  private static func begin(_ broker: BrokerFixture, _ wrapper: [String]) throws -> Workload {
    var workload = Workload()
    workload.run(broker.socket, count: 50)
    #expect(workload.isComplete)
    _ = try broker.terminate()
    broker.wrapper = wrapper
    try broker.start()
    return workload
  }

  /// A failed sync cannot be repeated: the broker reports an unknown outcome, and ends so that it is restarted.
  @Test(.broker, arguments: ["fdatasync", "pwrite64"])
  func anInputOutputErrorEndsTheBrokerAndLosesNothingAcknowledged(_ call: String) throws {
    // The mark beside the archive may fail: it is not acknowledged.
    let files = ["", "-wal"].map { "\(broker.archives)/org.example.Work.sqlite\($0)" }
    var workload = try Self.begin(
      broker,
      Strace.failing(call, on: files, with: "EIO", from: call == "fdatasync" ? 10 : 60, onlyOnce: true)
    )
    workload.run(broker.socket, count: 500)
    #expect(!workload.isComplete)
    let end = try broker.waitForEnd()
    #expect(end != .exit(0))
    broker.wrapper = []
    try broker.start()
    try workload.check(broker.socket)
  }

  /// A full disk does not end the broker: states can be read, and writing resumes when there is room.
  @Test(.broker) func aFullDiskRefusesWritesAndServesReads() throws {
    let workload = try Self.begin(broker, Strace.failing("pwrite64", with: "ENOSPC", from: 40, onlyOnce: false))
    let client = try broker.connect()
    var refusal: CallError?
    for number in 1...500 where refusal == nil {
      let parameters: JSONValue = ["application": "a", "object": .path("A"), "state": ["n": .integer(Int64(number))]]
      do {
        try client.call("encodeRestorableState", parameters)
      } catch let error as CallError {
        refusal = error
      }
    }
    #expect(refusal?.code == -32012, "\(String(describing: refusal))")
    #expect(refusal?.data["indeterminate"] == false)
    #expect(broker.isRunning)
    // Who does not wait for an answer can be told all the same.
    let monitor = try broker.connect()
    try monitor.call("subscribe", ["events": ["encodeFailed", "stateEncoded"]])
    try client.notify("encodeRestorableState", ["application": "a", "object": .path("A"), "state": ["n": 0]])
    let event = try monitor.notification("event")
    #expect(event["error"]?["kind"] == "storeFailed", "\(event.text)")
    #expect(event["path"] == .path("A"))
    try workload.check(broker.socket)
    try broker.kill()
    broker.wrapper = []
    try broker.start()
    try workload.check(broker.socket)
    let parameters: JSONValue = ["application": "a", "object": .path("A"), "state": ["n": 0]]
    #expect(try broker.connect().call("encodeRestorableState", parameters)["durability"] == "disk")
  }

  /// The application whose states fill the disk is read all the time, and gets rid of them.
  @Test(.broker, .enabled(if: SmallDisk.isPossible, "only root can mount"))
  func aFullDiskHidesNothingFromReadersAndTakesADiscard() throws {
    _ = try broker.terminate()
    let disk = try SmallDisk(bytes: 6 << 20, at: broker.archives)
    try broker.start()
    let (writer, reader) = (try broker.connect(), try broker.connect())
    try writer.call("initialize", ["application": "a"])
    let objects = try (0..<120).map { try writer.register("o\($0)")["object"] ?? .null }
    let state: JSONValue = ["pad": .string(String(repeating: "x", count: 60_000))]
    func encode(_ number: Int) throws -> JSONValue? {
      try writer.call("encodeRestorableState", ["object": objects[number % 120], "state": state])["durability"]
    }
    func failure(of number: Int) -> CallError? {
      do { _ = try encode(number) } catch let error as CallError { return error } catch { return nil }
      return nil
    }
    var number = 0
    while failure(of: number) == nil, number < 1_000 { number += 1 }
    #expect(number < 1_000)
    for round in 1...40 {
      let encode = try writer.request("encodeRestorableState", ["object": objects[0], "state": state])
      for method in ["readArchive", "describeApplication", "listGenerations"] {
        try reader.call(method, ["application": "a"])
      }
      #expect(try reader.decode("o\(round % 60)", of: "a")["status"] == "available")
      let refusal = #expect(throws: CallError.self) { try writer.answer(to: encode) }
      #expect(refusal?.code == -32012)
    }
    try writer.call("discardApplicationState", [:])
    #expect(try reader.decode("o1", of: "a")["status"] == "none")
    // What was read a moment ago is held for its readers.
    try disk.grow(to: 16 << 20)
    try Wait.until("there is room again") { failure(of: 0) == nil }
    try Wait.until("the ballast is back") { Files.exists("\(disk.path)/+ballast") }
    #expect(try broker.terminate() == .exit(0))
    withExtendedLifetime(disk) {}
  }

  /// A limit of the length of files is as definite as a full disk: the broker says so, and goes on.
  @Test(.broker, arguments: [256, 2_048]) func aLimitOfFileLengthsRefusesWritesAndServesReads(kibibytes: Int) throws {
    var workload = try Self.begin(broker, ["bash", "-c", "ulimit -f \(kibibytes); \"$0\" \"$@\"; exit $?"])
    var refusal: CallError?
    let client = try broker.connect()
    let state: JSONValue = ["pad": .string(String(repeating: "x", count: 60_000))]
    for number in 1...200 where refusal == nil {
      let parameters: JSONValue = ["application": "a", "object": .path("A\(number)"), "state": state]
      do { try client.call("encodeRestorableState", parameters) } catch let error as CallError { refusal = error }
    }
    #expect(refusal?.code == -32012)
    #expect(refusal?.description.contains("RLIMIT_FSIZE") == true, "\(String(describing: refusal))")
    #expect(refusal?.data["indeterminate"] == false)
    #expect(try client.decode("A1", of: "a")["status"] == "available")
    workload.run(broker.socket, count: 10)
    #expect(workload.isComplete)
    try workload.check(broker.socket)
    #expect(try broker.terminate() == .exit(0))
  }

  /// All kinds of work on a disk that is full again and again: nothing is told to be stored that is not, everything is
  /// read meanwhile, and the same work succeeds as soon as there is room.
  @Test(
    .broker(limits: ["openArchivesMax": 2]),
    .enabled(if: SmallDisk.isPossible, "only root can mount")
  )
  func aFullDiskRefusesAllKindsOfWorkAndTakesThemAgain() throws {
    _ = try broker.terminate()
    let disk = try SmallDisk(bytes: 16 << 20, at: broker.archives)
    try broker.start()
    var workload = Workload(.everything)
    for _ in 1...(Environment.isLong ? 40 : 3) {
      workload.run(broker.socket, count: 22)
      guard workload.isComplete else {
        let files = try ChildProcess.run(["ls", "-lAs", broker.archives]).output
        throw TestFailure("\(workload.refusals) \(workload.silence ?? "")\n\(files)")
      }
      try disk.fill()
      workload.run(broker.socket, count: 22)
      #expect(workload.silence == nil && !workload.isComplete)
      // What was not stored cannot be discarded.
      let kinds = Set(workload.refusals.map(\.kind))
      #expect(kinds.subtracting(["storeFailed", "unknownApplication"]) == [], "\(workload.refusals)")
      try workload.check(broker.socket)
      disk.empty()
      try Wait.until("the disk is used again") {
        workload.run(broker.socket, count: 11)
        return workload.isComplete
      }
      try workload.check(broker.socket)
      try Workload.checkSoundness(broker.socket)
    }
    #expect(try broker.terminate() == .exit(0))
    withExtendedLifetime(disk) {}
  }

  /// No client could connect: the broker ends with the reason, so that it is restarted.
  @Test(
    .broker,
    arguments: [
      ("EPERM", 1), ("EIO", 5), ("EACCES", 13), ("EINVAL", 22), ("EPROTO", 71), ("ENETDOWN", 100), ("EHOSTDOWN", 112),
    ]
  )
  func aListenerThatIsLostEndsTheBrokerAndSaysWhy(_ error: String, _ number: Int) throws {
    try broker.kill()
    broker.wrapper = Strace.failing("accept4", with: error, from: 1, onlyOnce: true)
    try broker.start()
    let end = try broker.waitForEnd()
    #expect(end == .exit(1))
    #expect(broker.log.contains("the listening socket has closed"))
    #expect(broker.log.contains("(errno: \(number))"), "\(broker.log)")
  }

  /// It ends in order: pending writes are done, and clients are asked for their states.
  @Test(.broker(wrapper: Strace.failing("accept4", with: "EPERM", from: 5, onlyOnce: true)))
  func aListenerThatIsLostCostsNobodyAState() throws {
    let client = try broker.connect()
    let served: JSONValue = ["encodeRestorableStateWithCoder"]
    try client.call("initialize", ["application": "a", "serves": served])
    let object = try client.register("A")["object"]
    try client.notify("encodeRestorableState", ["object": .path("B"), "state": ["n": 2]])
    try client.call("ping", [:])
    // One of these is not accepted, and the listener is lost.
    let others = (1...3).map { _ in try? broker.connect() }
    let call = try client.receiveMessage()
    #expect(call["method"] == "encodeRestorableStateWithCoder")
    let answer: JSONValue = [
      "jsonrpc": "2.0", "id": call["id"] ?? .null,
      "result": ["states": [["object": object ?? .null, "state": ["n": 1]]]],
    ]
    try client.send(JSONText(answer).string + "\n")
    #expect(try broker.waitForEnd() == .exit(1))
    withExtendedLifetime(others) {}
    #expect(broker.log.contains("the listening socket has closed"))
    broker.wrapper = []
    try broker.start()
    let reader = try broker.connect()
    for (name, number) in [("A", 1), ("B", 2)] {
      let state = try reader.decode(name, of: "a")["state"]
      #expect(state == ["n": .integer(Int64(number))])
    }
  }

  /// Without room for one more connection the broker waits until there is some.
  @Test(.broker(wrapper: Strace.failing("accept4", with: "EMFILE", from: 1, onlyOnce: true)))
  func aLackOfDescriptorsEndsNothing() throws {
    let client = try broker.connect()
    try client.call("ping", [:])
    #expect(try broker.terminate() == .exit(0))
  }

  /// Who waits for the end of a transaction when the broker stops waits for the archive to be opened again, too.
  @Test(.broker) func aBrokerThatStopsWhileATransactionFailsEndsAsItShould() throws {
    let faults = Strace.failing("pwrite64", with: "ENOSPC", from: 40, afterMilliseconds: 2_000)
    let workload = try Self.begin(broker, faults)
    let client = try broker.connect()
    var pending: Int64?
    for number in 1...500 where pending == nil {
      let parameters: JSONValue = ["application": "a", "object": .path("A"), "state": ["n": .integer(Int64(number))]]
      let call = try client.request("encodeRestorableState", parameters)
      if client.hasInput(within: .seconds(1)) { try client.answer(to: call) } else { pending = call }
    }
    let call = try #require(pending)
    #expect(try broker.terminate() == .exit(0))
    #expect(#expect(throws: CallError.self) { try client.answer(to: call) }?.code == -32012)
    broker.wrapper = []
    try broker.start()
    try workload.check(broker.socket)
  }
}
