// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

private let unshare = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"]

/// Sockets that lead to one application, and who is confined without, with real processes, mounts and restarts.
@Suite struct SandboxTests {
  private static let application = "org.example.Notes"

  /// Opens the socket of an application and gives its path.
  private static func open(_ application: String = application, by host: WireClient? = nil) throws -> String {
    let host = try host ?? broker.connect()
    let result = try host.call("openApplicationSocket", ["application": .string(application)])
    let (directory, socket) = (try #require(result["directory"]?.string), try #require(result["socket"]?.string))
    #expect(socket == "\(directory)/broker.sock")
    return socket
  }

  private static func expectConfined(_ client: WireClient) throws {
    try client.encode("A", state: ["a": 1], of: application)
    #expect(try client.failure("describeApplication", ["application": "org.example.Other"]).code == -32014)
    #expect(try client.call("statistics")["pid"] == 0)
  }

  private static func expectConfined(_ client: ProcessClient) throws {
    try client.encode("A", state: ["a": 1], of: application)
    #expect(try client.failure("describeApplication", ["application": "org.example.Other"]).code == -32014)
    #expect(try client.call("statistics")["pid"] == 0)
  }

  @Test(.broker) func whoComesThroughTheSocketIsConfinedToItsApplication() throws {
    let path = try Self.open()
    try Self.expectConfined(WireClient(path))
    #expect(Files.mode(path) == 0o600)
    let directory = String(path.dropLast("/broker.sock".utf8.count))
    #expect(Files.mode(directory) == 0o700)
    #expect(Files.list(directory) == ["broker.sock"])
    #expect(directory == broker.directory.file("run/sandbox/\(Self.application)"))
    #expect(try ControlTool.run(["sandbox", Self.application], status: 0).output == directory + "\n")
    #expect(try ControlTool.run(["sandbox", "\(Self.application)@1"], status: 1).errors.contains(Self.application))
    try ControlTool.run(["--socket", path, "sandbox", Self.application], status: 1)
    try ControlTool.run(["--socket", path, "tree", Self.application], status: 0)
  }

  @Test(.broker) func aNameThatIsNearlyAnotherIsSaid() throws {
    try broker.connect().encode("Main", state: [:], of: Self.application)
    let known = try ControlTool.run(["sandbox", Self.application], status: 0)
    #expect(known.errors.isEmpty)
    let typo = try ControlTool.runOnTerminal(["sandbox", String(Self.application.dropLast())], status: 0)
    #expect(typo.output.contains("did you mean \(Self.application)?"), "\(typo.output)")
  }

  @Test(.broker) func theSocketStaysTheSameUntilItsNameIsRemoved() throws {
    let path = try Self.open()
    let client = try WireClient(path)
    #expect(try Self.open() == path)
    try Self.expectConfined(WireClient(path))
    #expect(unlink(path) == 0)
    #expect(try Self.open() == path)
    try Self.expectConfined(WireClient(path))
    try Self.expectConfined(client)
  }

  @Test(.broker(limits: ["applicationSocketsMax": 2])) func thereAreAsManySocketsAsTheLimitSays() throws {
    for name in ["a", "b", "a"] { _ = try Self.open(name) }
    let failure = try broker.connect().failure("openApplicationSocket", ["application": "c"])
    #expect(failure.code == -32008 && failure.data["limit"] == "applicationSocketsMax" && failure.data["value"] == 3)
  }

  @Test(.broker(limits: ["connectionsMax": 6])) func connectionsCountWhicheverSocketTheyComeThrough() throws {
    let host = try broker.connect()
    let path = try Self.open(by: host)
    let clients = try [host] + [path, broker.socket, path].map { try WireClient($0) }
    for client in clients { try client.call("ping") }
    let refusal = try WireClient(path).receive()
    #expect(refusal.contains("connectionsMax") && refusal.contains("half of what the others leave"), "\(refusal)")
    let others = try (1...2).map { _ in try WireClient(broker.socket) }
    for client in others { try client.call("ping") }
    #expect(try WireClient(broker.socket).receive().contains("connectionsMax"))
    for client in clients + others { try client.call("ping") }
  }

  /// The limit that refuses a state; `nil` if it is stored.
  private static func limit(_ client: WireClient, _ object: String, _ bytes: Int, of application: String) throws
    -> String?
  {
    do {
      try client.encode(object, state: ["x": .string(String(repeating: "x", count: bytes))], of: application)
      return nil
    } catch let error as CallError {
      return error.data["limit"]?.string
    }
  }

  private static func bytes(of application: String, areInLog isLog: Bool) -> Int {
    Files.list(broker.archives).filter { $0.hasPrefix(application) && $0.hasSuffix("-wal") == isLog }.reduce(0) {
      $0 + Files.size("\(broker.archives)/\($1)")
    }
  }

  @Test(.broker(limits: ["applicationsMax": 32])) func aSandboxMakesHalfOfTheInstancesThatOthersLeave() throws {
    let (host, client) = (try broker.connect(), try WireClient(Self.open()))
    for name in ["a", "b"] { try host.encode("A", state: [:], of: name) }
    for number in 1...15 { try client.encode("A", state: [:], of: "\(Self.application)@\(number)") }
    let parameters: JSONValue = ["application": .string("\(Self.application)@x"), "object": .path("A"), "state": [:]]
    let failure = try client.failure("encodeRestorableState", parameters)
    #expect(failure.data["limit"] == "applicationsMax" && failure.data["max"] == 15, "\(failure)")
    // What is there is used as before, and all others have room.
    try client.encode("A", state: ["n": 2], of: "\(Self.application)@1")
    for number in 1...15 { try host.encode("A", state: [:], of: "c\(number)") }
    try client.call("forgetApplication", ["application": .string("\(Self.application)@1")])
  }

  @Test(.broker(limits: ["allArchivesBytesMax": 8_388_608])) func aSandboxStoresHalfOfWhatTheOthersLeave() throws {
    let client = try WireClient(Self.open())
    var limits: Set<String> = []
    // What does not make a head larger makes files larger, too.
    for _ in 1...3 {
      for (number, object) in (1...8).flatMap({ number in (1...20).map { (number, "O\($0)") } }) {
        let limit = try Self.limit(client, object, 100_000, of: "\(Self.application)@\(number)")
        if let limit { limits.insert(limit) }
        // What is moved from a log into the main file is in both for a while.
        for isLog in [false, true] { #expect(Self.bytes(of: Self.application, areInLog: isLog) < 4_500_000) }
      }
    }
    #expect(limits == ["allArchivesBytesMax"])
    let host = try broker.connect()
    for object in 1...10 { #expect(try Self.limit(host, "O\(object)", 100_000, of: "a") == nil) }
  }

  @Test(.broker(limits: ["allArchivesBytesMax": 1_048_576])) func aSandboxThatHasItsShareCanGiveSomethingUp() throws {
    let client = try WireClient(Self.open())
    var count = 0
    while try Self.limit(client, "O\(count)", 20_000, of: Self.application) == nil { count += 1 }
    let state: JSONValue = ["x": .string(String(repeating: "x", count: 20_000))]
    let more: JSONValue = ["application": .string(Self.application), "object": .path("O\(count)"), "state": state]
    let failure = try client.failure("encodeRestorableState", more)
    #expect(failure.data["hint"]?.string?.contains("half of what the others leave") == true, "\(failure)")
    for bytes in [19_000, 18_000, 1] { #expect(try Self.limit(client, "O1", bytes, of: Self.application) == nil) }
  }

  @Test(.broker) func aBrokerThatEndsRemovesTheNameAndTheNextMakesItInTheSameDirectory() throws {
    let path = try Self.open()
    #expect(try broker.terminate() == .exit(0))
    #expect(!Files.exists(path) && Files.mode(String(path.dropLast("/broker.sock".utf8.count))) == 0o700)
    try broker.start()
    #expect(try Self.open() == path)
    try broker.crashAndRestart()
    #expect(try Self.open() == path)
    try Self.expectConfined(WireClient(path))
  }

  /// What a process that comes by the broker's own socket gets, until the broker closes the connection.
  private static func answers(to command: [String]) throws -> [JSONValue] {
    let program = """
      import socket, sys
      connection = socket.socket(socket.AF_UNIX)
      connection.connect(sys.argv[1])
      connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
      connection.shutdown(socket.SHUT_WR)
      sys.stdout.write(connection.makefile().read())
      """
    let result = try ChildProcess.run(command + ["python3", "-c", program, broker.socket])
    #expect(result.end == .exit(0), "\(result.errors)")
    return try result.output.split(separator: "\n").map { try JSONCodec.parse(Array($0.utf8)) }
  }

  @Test(.enabled(if: canMount, "needs user namespaces"), .broker)
  func whoComesByTheBrokersOwnSocketFromAnotherUserNamespaceIsToldWhatToDo() throws {
    let answers = try Self.answers(to: unshare)
    #expect(answers.count == 1 && answers.first?["id"] == .null)
    let error = answers.first?["error"]
    #expect(error?["code"] == -32014 && error?["data"]?["kind"] == "forbidden")
    #expect(error?["data"]?["hint"]?.string?.contains("restorationctl sandbox") == true)
    try broker.connect().call("ping")
  }

  @Test(.enabled(if: geteuid() == 0, "only root can make these namespaces alone"), .broker)
  func namespacesOfTheHostChangeNothing() throws {
    for options in [["--mount"], ["--mount", "--pid", "--fork", "--kill-child"], ["--uts", "--ipc"]] {
      #expect(try Self.answers(to: ["unshare"] + options).map { $0["result"] } == [[:]])
    }
  }

  fileprivate static let canMount = (try? ChildProcess.run(unshare + ["true"]))?.end == .exit(0)

  /// The directory is mounted where clients look for the broker, in namespaces of users, mounts and processes.
  @Test(.enabled(if: canMount, "needs user namespaces"), .broker)
  func aProcessInASandboxFindsTheBrokerWhereItLooksAndSurvivesASocketMadeAnew() throws {
    let path = try Self.open()
    let inside = try broker.directory.makeDirectory("inside")
    _ = try broker.directory.makeDirectory("inside/restorationd")
    let script = """
      mount --bind "$1" "$2/restorationd" && mount -o remount,bind,ro,nosuid,nodev,noexec "$2/restorationd" &&
      exec python3 -u "$3" "$2/restorationd/broker.sock"
      """
    let directory = String(path.dropLast("/broker.sock".utf8.count))
    let client = try ProcessClient(
      "sandbox",
      unshare + ["sh", "-c", script, "sh"]
        + [directory, inside, "\(Products.repository)/Tests/Clients/client.py"],
      errors: broker.directory.file("client.log")
    )
    defer { client.end() }
    try Self.expectConfined(client)
    #expect(unlink(path) == 0)
    #expect(try Self.open() == path)
    try client.tell("disconnect")
    try client.tell("connect")
    try Self.expectConfined(client)
  }
}

/// The same where a service manager keeps sockets.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition)) struct SandboxServiceTests {
  /// The call is there before the broker is.
  @Test(.userManager) func aCallThatStartsTheBrokerOpensASocket() throws {
    let call = #"{"jsonrpc":"2.0","id":1,"method":"openApplicationSocket","params":{"application":"N"}}"#
    for _ in 1...5 {
      let answer = try manager.output("sh", "-c", "echo '\(call)' | socat -t 60 - UNIX-CONNECT:\(manager.socket)")
      #expect(answer.contains(#""socket":"#), "\(answer)")
      try manager.systemctl("stop", UserManager.service)
    }
  }

  @Test(.userManager) func theSocketAndItsConnectionsStayConfinedOverRestartsAndKills() throws {
    try manager.allowManyRestarts()
    let application = "org.example.Notes"
    let directory = try manager.output("restorationctl", "sandbox", application).filter { $0 != "\n" }
    let program = ["python3", "-u", "\(try manager.added("Tests/Clients"))/client.py", "\(directory)/broker.sock"]
    let command = manager.command(program)
    let old = try ProcessClient("sandbox", command, errors: manager.directory.file("client.log"))
    defer { old.end() }
    try old.call("initialize", ["application": .string(application)])
    for isKilled in [false, true, false] {
      let pid = try manager.mainPID
      if isKilled { try manager.killBroker() } else { try manager.systemctl("restart", UserManager.service) }
      try manager.waitForSuccessor(of: pid)
      let new = try ProcessClient("sandbox", command, errors: manager.directory.file("client.log"))
      defer { new.end() }
      for client in [old, new] {
        #expect(try client.failure("describeApplication", ["application": "org.example.Other"]).code == -32014)
        #expect(try client.call("statistics")["pid"] == 0)
      }
      // The one that it had before still has its session.
      _ = try old.call("describeApplication")
      #expect(try manager.output("restorationctl", "sandbox", application) == "\(directory)\n")
    }
  }

  @Test(.enabled(if: SandboxTests.canMount, "needs user namespaces"), .userManager)
  func aFlatpakIsConfinedByTheBrokersOwnSocketOverRestartsAndKills() throws {
    try manager.allowManyRestarts()
    let application = "org.example.Notes"
    let program = ["python3", "-u", "\(try manager.added("Tests/Clients"))/client.py", manager.socket]
    let command = try manager.flatpak(application, program)
    let client = try ProcessClient("flatpak", command, errors: manager.directory.file("client.log"))
    defer { client.end() }
    try client.call("initialize", ["application": .string(application)])
    // Beside the ledger of connections. A connection that is younger than some milliseconds does not outlive a kill.
    try Wait.until("the manager keeps the connection") { try manager.property("NFileDescriptorStore") == "2" }
    for isKilled in [nil, true, false] {
      if let isKilled {
        let pid = try manager.mainPID
        if isKilled { try manager.killBroker() } else { try manager.systemctl("restart", UserManager.service) }
        try manager.waitForSuccessor(of: pid)
      }
      #expect(try client.failure("describeApplication", ["application": "org.example.Other"]).code == -32014)
      #expect(try client.call("statistics")["pid"] == 0)
      // It still has its session.
      _ = try client.call("describeApplication")
    }
  }
}
