// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Limits are hit exactly at their borders (`Protocol/limits.md`).
@Suite struct LimitTests {
  private static func expectLimit(_ error: CallError, _ limit: String, max: Int64, value: Int64, path: JSONValue? = nil)
  {
    #expect(error.code == -32008, "\(error)")
    #expect(error.kind == "limitExceeded")
    #expect(error.data["limit"] == .string(limit), "\(error)")
    #expect(error.data["max"] == .integer(max), "\(error)")
    #expect(error.data["value"] == .integer(value), "\(error)")
    #expect(error.data["hint"]?.string?.isEmpty == false)
    if let path { #expect(error.data["path"] == path, "\(error)") }
  }

  private static func frameFault(_ line: String, id: JSONValue = 1) throws -> CallError {
    let message = try JSONCodec.parse(Array(line.utf8))
    #expect(message["id"] == id, "\(line)")
    return CallError(message["error"] ?? .null)
  }

  @Test(.broker(limits: ["frameBytesMax": 65_536, "stateBytesMax": 16_384])) func aFrameHasItsBytesAndNotOneMore()
    throws
  {
    let client = try broker.connect()
    let frame = #"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}"#
    func padded(_ size: Int) -> String {
      let padding = String(repeating: "x", count: size - frame.utf8.count)
      return #"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\#(padding)"}}"#
    }
    try client.send(padded(65_536) + "\n")
    #expect(try client.receive() == #"{"jsonrpc":"2.0","id":1,"result":{}}"#)
    try client.send(padded(65_537) + "\n")
    Self.expectLimit(try Self.frameFault(try client.receive()), "frameBytesMax", max: 65_536, value: 65_537)
    try client.call("ping")
  }

  @Test(.broker) func aFrameNestsToItsDepthAndNotDeeper() throws {
    let client = try broker.connect()
    // The frame and its parameters are two levels.
    func nested(_ depth: Int) -> String {
      let inner = String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1)
      return #"{"jsonrpc":"2.0","id":1,"method":"ping","params":\#(inner)}"#
    }
    try client.send(nested(64))
    #expect(try client.receive() == #"{"jsonrpc":"2.0","id":1,"result":{}}"#)
    try client.send(nested(65))
    Self.expectLimit(try Self.frameFault(try client.receive()), "depthMax", max: 64, value: 65)
    try client.call("ping")
  }

  @Test(.broker) func aStateNestsToItsDepthAndNotDeeper() throws {
    let client = try broker.session("a")
    func state(_ depth: Int) -> JSONValue { (1..<depth).reduce([:]) { value, _ in ["x": value] } }
    try client.encode("A", state: state(56))
    let error = try client.failure("encodeRestorableState", ["object": .path("A"), "state": state(57)])
    Self.expectLimit(error, "stateDepthMax", max: 56, value: 57, path: .path("A"))
    #expect(try client.decode("A")["state"] == state(56))
  }

  @Test(.broker) func anObjectHasItsKeysAndNotOneMore() throws {
    let client = try broker.session("a")
    func state(_ count: Int) -> JSONValue {
      .object(JSONObject((0..<count).map { (name: "k\($0)", value: .integer(Int64($0))) }))
    }
    try client.encode("A", state: state(4_096))
    let call = try client.request("encodeRestorableState", ["object": .path("A"), "state": state(4_097)])
    let fault = try Self.frameFault(try client.receive(), id: .integer(call))
    Self.expectLimit(fault, "keysPerObjectMax", max: 4_096, value: 4_097)
  }

  @Test(.broker) func aFrameHasItsValuesAndNotOneMore() throws {
    let client = try broker.connect()
    func frame(_ values: Int) -> String {
      // The frame, its version, id, method and array are five.
      let list = String(repeating: "0,", count: values - 6) + "0"
      return #"{"jsonrpc":"2.0","id":1,"method":"ping","params":[\#(list)]}"#
    }
    try client.send(frame(65_536))
    #expect(try client.receive() == #"{"jsonrpc":"2.0","id":1,"result":{}}"#)
    try client.send(frame(65_537))
    Self.expectLimit(try Self.frameFault(try client.receive()), "valuesPerFrameMax", max: 65_536, value: 65_537)
  }

  @Test(.broker) func aBatchHasItsMessagesAndNotOneMore() throws {
    let client = try broker.connect()
    func batch(_ count: Int) -> String {
      "[" + (1...count).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"ping"}"# }.joined(separator: ",") + "]"
    }
    try client.send(batch(256))
    #expect(try client.receiveMessage().array?.count == 256)
    try client.send(batch(257))
    Self.expectLimit(try Self.frameFault(try client.receive(), id: .null), "batchMax", max: 256, value: 257)
  }

  @Test(.broker) func aStateHasItsBytesAndNotOneMore() throws {
    let client = try broker.session("a")
    func state(_ bytes: Int) -> JSONValue { ["x": .string(String(repeating: "x", count: bytes - 8))] }
    try client.encode("A", "B", state: state(262_144))
    let error = try client.failure("encodeRestorableState", ["object": .path("A", "B"), "state": state(262_145)])
    Self.expectLimit(error, "stateBytesMax", max: 262_144, value: 262_145, path: .path("A", "B"))
    #expect(try client.decode("A", "B")["state"] == state(262_144))
  }

  @Test(.broker(limits: ["referencesPerStateMax": 3])) func aStateHasItsReferencesAndNotOneMore() throws {
    let client = try broker.session("a")
    try client.register("A")
    func state(_ count: Int) -> JSONValue {
      ["list": .array(Array(repeating: ["$restorable": .path("A")], count: count))]
    }
    try client.encode("A", state: state(3))
    let error = try client.failure("encodeRestorableState", ["object": .path("A"), "state": state(4)])
    Self.expectLimit(error, "referencesPerStateMax", max: 3, value: 4, path: .path("A"))
  }

  @Test(.broker) func aPathHasItsBytesAndNotOneMore() throws {
    let client = try broker.session("a")
    // 16 components of 255 bytes and 15 separators are 4,095 bytes.
    let component = String(repeating: "p", count: 255)
    let path = Array(repeating: JSONValue.string(component), count: 16)
    try client.call("encodeRestorableState", ["object": .array(path), "state": [:]])
    let error = try client.failure("encodeRestorableState", ["object": .array(path + ["q"]), "state": [:]])
    Self.expectLimit(error, "pathBytesMax", max: 4_096, value: 4_097)
    var exact = path
    exact[0] = .string(String(component.dropLast()))
    try client.call("encodeRestorableState", ["object": .array(exact + ["q"]), "state": [:]])
  }

  @Test(.broker(limits: ["objectsPerApplicationMax": 10])) func anApplicationHasItsObjectsAndNotOneMore() throws {
    let client = try broker.session("a")
    for number in 1...10 { try client.register("o\(number)") }
    let error = try client.failure("registerObjectForStateRestoration", ["restorationIdentifier": "o11"])
    Self.expectLimit(error, "objectsPerApplicationMax", max: 10, value: 11, path: .path("o11"))
    try client.call("unregisterObject", ["object": .path("o1")])
    try client.register("o11")
  }

  @Test(.broker(limits: ["archiveBytesMax": 65_536])) func anArchiveHasItsBytesAndGetsThemBack() throws {
    let client = try broker.session("a")
    let state: JSONValue = ["x": .string(String(repeating: "x", count: 20_000))]
    for name in ["A", "B", "C"] { try client.encode(name, state: state) }
    let error = try client.failure("encodeRestorableState", ["object": .path("D"), "state": state])
    #expect(error.data["limit"] == "archiveBytesMax", "\(error)")
    #expect(error.data["path"] == .path("D"))
    #expect(try client.decode("A")["state"] == state)
    // A replaced state no longer counts.
    for _ in 1...20 { try client.encode("C", state: state) }
    try client.call("discardApplicationState")
    try client.encode("D", state: state)
  }

  @Test(.broker(limits: ["applicationsMax": 2])) func thereAreSoManyApplicationsAndNotOneMore() throws {
    let client = try broker.connect()
    for name in ["a", "b"] { try client.encode("A", state: [:], of: name) }
    let error = try client.failure("encodeRestorableState", ["application": "c", "object": .path("A"), "state": [:]])
    #expect(error.data["limit"] == "applicationsMax", "\(error)")
    #expect(try client.call("listApplications")["applications"]?.array?.count == 2)
  }

  @Test(.broker(limits: ["allArchivesBytesMax": 4_194_304])) func allArchivesGrowTogetherAsFarAsTheLimit() throws {
    let client = try broker.connect()
    let names = (1...4).map { "a\($0)" }
    let state: JSONValue = ["x": .string(String(repeating: "x", count: 100_000))]
    for name in names { try client.encode("A", state: [:], of: name) }
    let refusal = #expect(throws: CallError.self) {
      for object in 1...20 { for name in names { try client.encode("O\(object)", state: state, of: name) } }
    }
    #expect(refusal?.data["limit"] == "allArchivesBytesMax" && refusal?.data["max"] == 4_194_304, "\(refusal as Any)")
    // What does not make an archive larger is stored.
    try client.encode("O1", state: state, of: "a1")
    try client.call("forgetApplication", ["application": "a2"])
    try client.encode("P", state: state, of: "a1")
  }

  @Test(.broker(limits: ["openArchivesMax": 2])) func archivesAreClosedAndOpenedAgainWhenTooManyAreOpen() throws {
    let client = try broker.connect()
    for round in 1...3 {
      for number in 1...6 {
        let state: JSONValue = ["n": .integer(Int64(number * round))]
        try client.encode("A", state: state, of: "a\(number)")
      }
      for number in 1...6 {
        let answer = try client.decode("A", of: "a\(number)")
        #expect(answer["state"]?["n"] == .integer(Int64(number * round)))
      }
    }
  }

  @Test(.broker(limits: ["openArchivesMax": 8])) func sessionsOfManyApplicationsTakeTurnsWithFewOpenFiles() throws {
    let names = (1...40).map { "a\($0)" }
    let sessions = try names.map { try broker.session($0) }
    let descriptors = "/proc/\(try broker.pid)/fd"
    for round in 1...3 {
      for (name, session) in zip(names, sessions) {
        try session.encode("A", state: ["in": .string(name), "n": .integer(Int64(round))])
      }
      try Wait.until("no more files are open than may be") {
        Files.list(descriptors).count { Files.target("\(descriptors)/\($0)").hasSuffix(".sqlite") } <= 8
      }
    }
    // So far from memory; a broker that comes after a kill reads it from the files.
    for _ in 1...2 {
      let reader = try broker.connect()
      for name in names { #expect(try reader.decode("A", of: name)["state"] == ["in": .string(name), "n": 3]) }
      try broker.crashAndRestart()
    }
    #expect(!broker.log.contains("damaged"), "\(broker.log)")
    withExtendedLifetime(sessions) {}
  }

  @Test(.broker(limits: ["connectionsMax": 4])) func oneConnectionTooManyIsToldAndClosed() throws {
    // The one that found the broker ready may still be closing.
    let clients = try (1...3).map { _ in try broker.connect() }
    for client in clients { try client.call("ping") }
    var refused: [WireClient] = []
    for _ in 1...3 { refused.append(try broker.connect()) }
    let lines = try withExtendedLifetime(refused) { try refused[2].receiveToEnd() }
    Self.expectLimit(try Self.frameFault(lines.first ?? "{}", id: .null), "connectionsMax", max: 4, value: 5)
    for client in clients { try client.call("ping") }
  }

  @Test(.broker(limits: ["connectionsMax": 2])) func whereNoConnectionIsLeftTheToolHasTheBrokersWords() throws {
    // The one that found the broker ready may still be closing.
    try Wait.until("the broker has two connections") {
      let clients = try (1...2).map { _ in try broker.connect() }
      guard clients.allSatisfy({ (try? $0.call("ping")) != nil }) else { return false }
      for client in clients { broker.keep(client) }
      return true
    }
    let result = try ControlTool.run(["-j", "status"], status: 75)
    #expect(result.errors.contains("connectionsMax is 2, and this would be 3"), "\(result.errors)")
    #expect(result.errors.contains("or try again later"), "\(result.errors)")
    #expect(try result.error["kind"] == "limitExceeded" && result.error["code"] == -32008)
  }

  @Test(.broker(limits: ["connectionsPerProcessMax": 4]))
  func oneConnectionOfAProcessTooManyIsToldAndOtherProcessesAreServed() throws {
    // The one that found the broker ready may still be closing.
    let clients = try (1...3).map { _ in try broker.connect() }
    for client in clients { try client.call("ping") }
    var refused: [WireClient] = []
    for _ in 1...3 { refused.append(try broker.connect()) }
    let lines = try withExtendedLifetime(refused) { try refused[2].receiveToEnd() }
    Self.expectLimit(try Self.frameFault(lines.first ?? "{}", id: .null), "connectionsPerProcessMax", max: 4, value: 5)
    try ControlTool.run(["call", "ping"], status: 0)
    for client in clients { try client.call("ping") }
  }

  @Test(.broker(limits: ["connectionsPerApplicationMax": 2])) func oneConnectionOfAnApplicationTooManyIsRefused() throws
  {
    let first = try broker.session("a")
    let second = try broker.session("a")
    let third = try broker.connect()
    let error = try third.failure("initialize", ["application": "a"])
    Self.expectLimit(error, "connectionsPerApplicationMax", max: 2, value: 3)
    try third.call("initialize", ["application": "b"])
    try first.call("ping")
    try second.call("ping")
  }

  @Test(.broker(limits: ["stateBytesMax": 12_345, "inFlightMax": 7])) func everyLimitIsReportedAsConfigured() throws {
    let client = try broker.connect()
    let limits = try client.call("limits")
    #expect(limits["stateBytesMax"] == 12_345)
    #expect(limits["inFlightMax"] == 7)
    #expect(try client.call("initialize", ["application": "a"])["limits"] == limits)
    let documented = try Files.text("\(Products.repository)/Protocol/limits.md")
    for (name, _) in limits.object?.members ?? [] {
      #expect(documented.contains("| `\(name)` |"), "\(name) is not in Protocol/limits.md")
    }
  }

  @Test(.broker) func descriptorsThatAreSentAreNotKept() throws {
    let before = try broker.status.descriptors
    let script = """
      import array, socket, sys
      s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM); s.connect(sys.argv[1])
      try:
        s.sendmsg([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'],
          [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
      except PermissionError:
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
      print(s.recv(100).decode(), end="")
      """
    let result = try ChildProcess.run(["python3", "-c", script, broker.socket])
    #expect(result.output == #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n", "\(result.errors)")
    try broker.connect().call("ping")
    #expect(try broker.status.descriptors < before + 20)
  }
}
