// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What one application writes is nowhere that another one, or a reader of logs and file names, sees.
@Suite struct IsolationTests {
  /// In every text that the application writes, but for its name.
  private static let secret = "hush-9f3c"
  private static let (application, other) = ("org.example.Muffled", "org.example.Other")

  /// Everything that comes over a connection, as text.
  private final class Listener {
    let wire: WireClient
    private(set) var heard: [String] = []
    private var last = 0

    init(_ wire: WireClient) { self.wire = wire }

    /// Returns when the answer is there.
    func say(_ method: String, _ parameters: String = "{}") throws {
      last += 1
      try wire.send(#"{"jsonrpc":"2.0","id":\#(last),"method":"\#(method)","params":\#(parameters)}"# + "\n")
      repeat { heard.append(try wire.receive()) } while heard.last?.contains(#""id":\#(last),"#) == false
    }
  }

  /// Uses everything that takes a text.
  private static func work(_ owner: Listener) throws {
    let names = #""process":"\#(secret)-role","bundleVersion":"\#(secret)-version","delegate":true"#
    let aliases = #""aliases":{"classes":{"\#(secret)-old":"\#(secret)-new"}}"#
    try owner.say("initialize", #"{"application":"\#(application)",\#(names),\#(aliases)}"#)
    let classes = #""objectClass":"\#(secret)-class","restorationClass":"\#(secret)-factory""#
    let main = #""restorationIdentifier":"\#(secret)-main","kind":"viewController",\#(classes)"#
    try owner.say("registerObjectForStateRestoration", "{\(main)}")
    try owner.say("registerRestorationClass", #"{"restorationClass":"\#(secret)-factory"}"#)
    for number in 0..<3 {
      let state = #"{"\#(secret)-key":"\#(secret)-value","n":\#(number)}"#
      try owner.say("encodeRestorableState", #"{"object":["\#(secret)-main"],"state":\#(state)}"#)
      try owner.say("saveApplicationState", #"{"reason":"\#(secret)-reason"}"#)
    }
    // What is refused, unanswered, or no JSON, is reported to nobody else.
    try owner.say("decodeRestorableState", #"{"object":["\#(secret)-none"]}"#)
    try owner.say("\(secret)-method", #"{"\#(secret)":1}"#)
    try owner.wire.send(
      #"{"jsonrpc":"2.0","method":"encodeRestorableState","params":{"object":["\#(secret)"]}}"# + "\n"
    )
    try owner.wire.send(#"{"\#(secret)":]"# + "\n")
    try owner.say(
      "setRestorationIdentifier",
      #"{"object":["\#(secret)-main"],"restorationIdentifier":"\#(secret)-two"}"#
    )
    try owner.say("explainRestoration", #"{"object":["\#(secret)-two"]}"#)
    try owner.say("readArchive")
    try owner.say("unregisterObject", #"{"object":["\#(secret)-two"]}"#)
    try owner.say("listClosedObjects")
    try owner.say("goodbye", #"{"reason":"closed"}"#)
  }

  /// Asks for all there is without naming another application, and for what the handles of others would be.
  private static func pry(_ listener: Listener) throws {
    let methods = [
      "listApplications", "describeApplication", "statistics", "limits", "listGenerations", "listQuarantine",
      "listClosedObjects", "listPathComponents", "readArchive", "exportArchive", "verifyArchive", "diffGenerations",
      "restoreApplicationState",
      "saveApplicationState", "reopenObject", "completeStateRestoration",
    ]
    for method in methods { try listener.say(method) }
    for handle in 1...4 {
      for method in ["decodeRestorableState", "explainRestoration", "unregisterObject", "invalidateRestorableState"] {
        try listener.say(method, #"{"object":\#(handle)}"#)
      }
    }
  }

  @Test(.broker(arguments: ["--log-level", "trace"]))
  func theTextsOfAnApplicationReachNeitherAnotherOneNorTheLogNorNamesOfFiles() throws {
    let host = try broker.connect()
    let socket = try host.call("openApplicationSocket", ["application": .string(Self.other)])["socket"]?.string
    let confined = Listener(try WireClient(try #require(socket)))
    let plain = Listener(try broker.connect())
    try confined.say("initialize", #"{"application":"\#(Self.other)","serves":["event","progress"]}"#)
    try confined.say("subscribe", #"{"application":"\#(Self.other)"}"#)
    try confined.say("subscribe")
    try plain.say("initialize", #"{"application":"\#(Self.other)@2"}"#)
    let owner = Listener(try broker.connect())
    try Self.work(owner)
    for listener in [confined, plain] { try Self.pry(listener) }

    // The owner itself has heard all of them.
    for word in ["main", "value", "none"] {
      #expect(owner.heard.contains { $0.contains("\(Self.secret)-\(word)") }, "\(word)")
    }
    for line in confined.heard + plain.heard.filter({ !$0.contains(#""applications":"#) }) {
      #expect(!line.contains(Self.secret), "\(line)")
    }
    // That there is another application is known to the host alone.
    let told = confined.heard.filter { $0.contains(Self.application) }
    #expect(told.isEmpty, "\(told)")
    let logged = broker.log.split(separator: "\n").filter { $0.contains(Self.secret) }
    #expect(logged.isEmpty && broker.log.contains("begins"), "\(logged)")
    let names = Files.tree(broker.directory.path).filter { $0.contains(Self.secret) }
    #expect(names.isEmpty, "\(names)")
    #expect(!(try ControlTool.run(["status"], status: 0).output.contains(Self.secret)))
  }

  /// Spaces, quotes, line feeds and what looks like a specifier of systemd or of a shell.
  @Test(.scratch) func aBrokerLivesInDirectoriesOfAnyName() throws {
    let home = try directory.makeDirectory("h \n%h'\"$HOME")
    let runtime = try directory.makeDirectory("r \n%t;*")
    var environment: [String: String?] = ["HOME": home, "XDG_RUNTIME_DIR": runtime, "LC_ALL": "C.UTF-8"]
    for name in ["STATE_HOME", "CONFIG_HOME"] { environment["XDG_\(name)"] = .some(nil) }
    for name in ["SOCKET", "ARCHIVES", "LOG_LEVEL"] { environment["RESTORATIOND_\(name)"] = .some(nil) }
    let process = try ChildProcess([Products.broker], environment: environment, errors: directory.file("log"))
    let socket = "\(runtime)/restorationd/broker.sock"
    try Wait.until("the broker accepts connections") { (try? WireClient(socket)) != nil }
    let client = try WireClient(socket)
    try client.encode("A", state: ["a": 1], of: "org.example.Notes")
    #expect(Files.exists("\(home)/.local/state/restorationd/org.example.Notes.sqlite"))
    let copy = "\(home)/b \n%b.sqlite"
    try client.call("backupArchive", ["application": "org.example.Notes", "to": .string(copy)])
    #expect(Files.exists(copy))
    let status = try ChildProcess.run([Products.control, "status"], environment: environment)
    #expect(status.end == .exit(0), "\(status.errors)")
    process.send(signal: SIGTERM)
    #expect(try process.waitForEnd() == .exit(0))
  }
}

/// The same of what a crash would leave.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition)) struct CoreDumpTests {
  @Test(.userManager) func theServiceLeavesNoCoreDumpBecauseItWouldHoldTheStatesOfAll() throws {
    try manager.client(.python).initialize("org.example.Notes")
    let limits = try manager.output("cat", "/proc/\(try manager.mainPID)/limits")
    let line = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
    #expect(line?.split(separator: " ").filter { $0 == "0" }.count == 2, "\(line ?? "")")
  }
}
