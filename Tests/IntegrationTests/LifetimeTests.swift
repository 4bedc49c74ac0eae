// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// How the broker begins and ends, and what it does with archives it cannot use (R20, R32).
@Suite struct LifetimeTests {
  /// Starts a second broker that must refuse; returns its message.
  private static func refused(_ arguments: [String]) throws -> String {
    let result = try ChildProcess.run([Products.broker] + arguments, environment: broker.environment)
    #expect(result.end == .exit(1), "\(result.end) \(result.errors)")
    #expect(result.output.isEmpty)
    return result.errors
  }

  @Test(.broker) func aSecondBrokerOnOneSocketIsRefused() throws {
    let other = try broker.directory.makeDirectory("other")
    let message = try Self.refused(["--socket", broker.socket, "--archives", other])
    #expect(message.contains(broker.socket), "\(message)")
    #expect(message.contains("\(try broker.pid)"), "it names the process: \(message)")
    try broker.connect().call("ping")
  }

  @Test(.broker) func aSecondBrokerOnOneDirectoryOfArchivesIsRefused() throws {
    let socket = broker.directory.file("run/second.sock")
    let message = try Self.refused(["--socket", socket, "--archives", broker.archives])
    #expect(message.contains(broker.archives), "\(message)")
    #expect(!Files.exists(socket), "it left its socket behind")
    try broker.connect().call("ping")
  }

  @Test(.broker) func twentyBrokersStartedAtOnceLeaveExactlyOne() throws {
    try broker.kill()
    let brokers = try (1...20).map { _ in
      try ChildProcess(broker.command, environment: broker.environment, output: .file("/dev/null"))
    }
    try Wait.until("nineteen have ended") { brokers.count { !$0.isRunning } >= 19 }
    #expect(brokers.count { $0.isRunning } == 1)
    try Wait.until("the one accepts") { (try? broker.connect().call("ping")) != nil }
    for other in brokers { try other.kill() }
    try broker.start()
  }

  /// A transaction that ended just as the broker began to wait for it kept it waiting for ever, once in a hundred.
  @Test(.broker, arguments: 1...6)
  func askedToEndWhileItWritesItEndsEveryTime(_ part: Int) throws {
    for round in 1...20 {
      let first = try broker.connect()
      try first.encode("A", state: [:], of: "a")
      let second = try broker.connect()
      let application: JSONValue = ["application": "b", "serves": ["encodeRestorableStateWithCoder"]]
      let state: JSONValue = ["object": .path("A"), "state": [:]]
      try second.send(
        WireClient.message("initialize", application, id: 1) + "\n"
          + WireClient.message("encodeRestorableState", state, id: 2) + "\n"
      )
      if round.isMultiple(of: 2) { _ = try second.receive() }
      #expect(try broker.terminate() == .exit(0))
      try broker.start()
    }
  }

  @Test(.broker, arguments: [SIGTERM, SIGINT])
  func askedToEndItMakesEverythingDurableAndLeavesNothingOpen(_ signal: Int32) throws {
    let client = try broker.session("a")
    for number in 1...300 {
      try client.request(
        "encodeRestorableState",
        ["object": .path("O\(number)"), "state": ["n": .integer(Int64(number))]]
      )
    }
    try client.request("ping")
    // The broker has read everything when it answers the last message; answers may overtake each other.
    var acknowledged = 0
    while try client.receiveMessage()["id"] != 301 { acknowledged += 1 }
    Glibc.kill(try broker.pid, signal)
    acknowledged += try client.receiveToEnd().count
    #expect(acknowledged == 300, "a request that was taken is answered before the end")
    #expect(try broker.waitForEnd() == .exit(0))
    #expect(!Files.exists(broker.socket))
    #expect(Files.list(broker.archives).contains("a.sqlite"))
    #expect(
      !Files.list(broker.archives).contains {
        $0.hasSuffix("-wal") || $0.hasSuffix("-journal") || $0.hasSuffix("-shm")
      }
    )
    try broker.start()
    let reader = try broker.session("a")
    for number in 1...300 {
      let state = try reader.decode("O\(number)")["state"]
      #expect(state == ["n": .integer(Int64(number))])
    }
  }

  @Test(.broker(alone: true)) func afterAKillItIsReadyWithinASecond() throws {
    let client = try broker.client(.python)
    try client.initialize("a")
    try client.tell("fill", ["count": 2_000, "bytes": 1_000, "parent": "P"], Deadline(.seconds(60)))
    for _ in 1...5 {
      let milliseconds = try broker.crashAndRestart()
      #expect(milliseconds <= 1_000)
      #expect(try broker.connect().decode("P", "o1999", of: "a")["status"] == "available")
    }
  }

  @Test(.broker(wrapper: ["sh", "-c", "umask 0; \"$@\"; exit $?", "sh"])) func filesAreForTheirOwnerAlone() throws {
    try broker.session("a").encode("A", state: [:])
    #expect(Files.mode(broker.archives) == 0o700)
    #expect(Files.mode(broker.socket) == 0o600)
    for name in Files.list(broker.archives) { #expect(Files.mode("\(broker.archives)/\(name)") == 0o600, "\(name)") }
  }

  /// Neither the broker nor a program with the client library hands its descriptors on.
  @Test(.broker) func descriptorsCloseOnExec() throws {
    let client = try broker.client(.swift)
    try client.initialize("a")
    try broker.session("a").encode("A", state: [:])
    let inherited = Set(ProcessStatus(getpid()).inheritable)
    #expect(Set(try broker.status.inheritable).subtracting(inherited) == [])
    #expect(Set(ProcessStatus(client.pid).inheritable).subtracting(inherited) == [])
  }

  // MARK: Archives that cannot be used

  /// A file of a later version is left alone (R20).
  @Test(.broker) func anArchiveOfANewerFormatIsNotTouched() throws {
    try broker.session("a").encode("A", state: ["n": 1])
    #expect(try broker.terminate() == .exit(0))
    let file = "\(broker.archives)/a.sqlite"
    let change = try ChildProcess.run(["sqlite3", file, "PRAGMA user_version = 999;"])
    #expect(change.end == .exit(0), "\(change.errors)")
    let before = try Files.read(file)
    try broker.start()
    let client = try broker.connect()
    let restoration = try client.call("initialize", ["application": "a"])["restoration"]
    #expect(restoration?["state"] == "unreadable")
    #expect(restoration?["archive"] == .null)
    #expect(try client.failure("registerObjectForStateRestoration", ["restorationIdentifier": "B"]).code == -32011)
    #expect(
      try client.failure("encodeRestorableState", ["object": .path("A"), "state": [:]]).kind == "archiveUnreadable"
    )
    #expect(try client.failure("decodeRestorableState", ["object": .path("A")]).kind == "archiveUnreadable")
    // Others are not concerned.
    try broker.session("b").encode("A", state: [:])
    #expect(try broker.terminate() == .exit(0))
    #expect(try Files.read(file) == before)
  }

  @Test(.broker) func anArchiveThatAnotherProcessHasLockedIsUsedAgainOnceItIsFree() throws {
    try broker.connect().encode("A", state: ["n": 1], of: "a")
    #expect(try broker.terminate() == .exit(0))
    try broker.start()
    let script = """
      import sqlite3, sys
      archive = sqlite3.connect(sys.argv[1], isolation_level=None)
      archive.execute("BEGIN EXCLUSIVE")
      print("locked", flush=True)
      sys.stdin.read()
      """
    let other = try ChildProcess(["python3", "-c", script, "\(broker.archives)/a.sqlite"])
    #expect(try other.output?.next() == "locked")
    let refused = try ControlTool.run(["get", "a", "A"], status: 1)
    #expect(refused.errors.contains("another process has it open"), "\(refused.errors)")
    #expect(refused.errors.contains("call again") && !refused.errors.contains("restart"), "\(refused.errors)")
    other.closeInput()
    try other.waitForEnd()
    #expect(try ControlTool.run(["get", "a", "A", "/n"], status: 0).output == "1\n")
  }

  @Test(.broker) func aDirectoryInTheArchivesPlaceIsNotTouched() throws {
    try Files.makeDirectory("\(broker.archives)/a.sqlite")
    let client = try broker.connect()
    #expect(try client.call("initialize", ["application": "a"])["restoration"]?["state"] == "unreadable")
    #expect(
      try client.failure("registerObjectForStateRestoration", ["restorationIdentifier": "B"]).kind
        == "archiveUnreadable"
    )
    #expect(Files.isDirectory("\(broker.archives)/a.sqlite"))
  }

  /// R32: set aside, never deleted, never silently empty.
  @Test(.broker, arguments: [0, 4_096])
  func aDamagedArchiveIsSetAsideAndSaysSo(_ offset: Int) throws {
    let writer = try broker.session("a")
    for number in 1...50 {
      let state: JSONValue = ["x": .string(String(repeating: "x", count: 2_000))]
      try writer.encode("O\(number)", state: state)
    }
    try writer.call("goodbye", ["reason": "restart"])
    #expect(try broker.terminate() == .exit(0))
    let file = "\(broker.archives)/a.sqlite"
    var bytes = try Files.read(file)
    bytes.replaceSubrange(offset..<(offset + 4_000), with: Array(repeating: 0xa5, count: 4_000))
    try Files.write(bytes, to: file)
    try broker.start()
    let client = try broker.connect()
    let restoration = try client.call("initialize", ["application": "a"])["restoration"]
    #expect(restoration?["reason"] == "recover")
    #expect(restoration?["damaged"]?.string?.isEmpty == false)
    let aside = Files.list(broker.archives).filter { $0.hasPrefix("a+damaged") && $0.hasSuffix(".sqlite") }
    #expect(aside.count == 1, "\(Files.list(broker.archives))")
    if let name = aside.first { #expect(try Files.read("\(broker.archives)/\(name)") == bytes) }
    #expect(broker.log.contains("a+damaged"), "the log names the file")
    try client.encode("A", state: ["n": 1])
    try broker.crashAndRestart()
    #expect(try broker.session("a").decode("A")["state"] == ["n": 1])
  }

  /// R32: one damaged row concerns one object.
  @Test(.broker) func aDamagedStateMakesOnlyItsObjectUnreadable() throws {
    let writer = try broker.session("a")
    for name in ["A", "B", "C"] { try writer.encode(name, state: ["name": .string(name)]) }
    try writer.call("goodbye", ["reason": "restart"])
    #expect(try broker.terminate() == .exit(0))
    let change = try ChildProcess.run([
      "sqlite3", "\(broker.archives)/a.sqlite", "UPDATE state SET text = replace(text, '\"B\"', '\"X\"');",
    ])
    #expect(change.end == .exit(0), "\(change.errors)")
    try broker.start()
    let client = try broker.session("a")
    #expect(try client.decode("A")["state"] == ["name": "A"])
    let bad = try client.decode("B")
    #expect(bad["status"] == "unreadable")
    #expect(bad["state"] == .null)
    #expect(try client.decode("C")["state"] == ["name": "C"])
    try client.encode("B", state: ["name": "new"])
    #expect(try client.decode("B")["state"] == ["name": "new"])
  }
}
