// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The broker as a service of a real user manager: how it starts, says how it is, and ends.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition))
struct ServiceTests {
  private static let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#

  /// Sends a line over a new connection; returns the answer until the broker closes it.
  private static func exchange(_ line: String) throws -> String {
    try manager.run(["socat", "-t", "20", "-", "UNIX-CONNECT:\(manager.socket)"], input: line + "\n").output
  }

  @Test(.userManager) func theFirstConnectStartsTheBrokerAndIsAnswered() throws {
    #expect(try manager.property("ActiveState", of: UserManager.socketUnit) == "active")
    #expect(try manager.property("ActiveState") == "inactive")
    #expect(Files.mode(manager.outside(manager.socket)) == 0o600)
    #expect(Files.mode(manager.outside("/run/user/59999/restorationd")) == 0o700)
    #expect(try Self.exchange(Self.ping) == #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n")
    try manager.waitUntil("active")
    let pid = try manager.mainPID
    #expect(try manager.output("readlink", "/proc/\(pid)/exe") == "\(manager.broker)\n")
    #expect(try manager.property("ControlGroup").contains("/session.slice/"))
    #expect(try manager.output("restorationctl", "list").contains("0 applications"))
    #expect(try manager.mainPID == pid)
    #expect(try manager.property("NRestarts") == "0")
  }

  /// `active` is said by the broker: it serves.
  @Test(.userManager) func theServiceIsActiveOnlyWhenTheBrokerServes() throws {
    _ = try manager.output("mkfifo", "gate")
    let start = #"/bin/sh -c "read line <\#(manager.home)/gate; exec \#(manager.broker)""#
    try manager.dropIn("gate", service: "ExecStart=", "ExecStart=\(start)")
    try manager.systemctl("start", "--no-block", UserManager.service)
    let early = try manager.start(["socat", "-t", "20", "-", "UNIX-CONNECT:\(manager.socket)"])
    try early.write(Self.ping + "\n")
    try Wait.until("it is being started") { try manager.mainPID != 0 }
    #expect(try manager.property("ActiveState") == "activating")
    _ = try manager.output("sh", "-c", "echo go >gate")
    #expect(try early.output?.next() == #"{"jsonrpc":"2.0","id":1,"result":{}}"#)
    try manager.waitUntil("active")
  }

  @Test(.userManager) func aBrokerThatCannotStartFailsOnceAndServesWhenItCan() throws {
    try manager.write("{", to: "\(manager.home)/.config/restorationd/config.json")
    let start = try manager.run(["systemctl", "--user", "start", UserManager.service])
    #expect(start.end == .exit(1))
    #expect(try manager.property("ActiveState") == "failed")
    #expect(try manager.property("NRestarts") == "0")
    try manager.write("{}", to: "\(manager.home)/.config/restorationd/config.json")
    try manager.systemctl("start", UserManager.service)
    #expect(try Self.exchange(Self.ping).contains("result"))
  }

  @Test(.userManager) func theStatusSaysInOneLineWhatThereIs() throws {
    let client = try manager.client(.python)
    try client.initialize("org.example.Notes", ["process": "editor"])
    for name in ["A", "B", "C"] { try client.register(name) }
    try Wait.until("the status counts them") {
      let status = try manager.property("StatusText")
      return ["1 application", "1 session", "3 objects", "1 connection"].allSatisfy { status.contains($0) }
    }
    let text = try manager.run(["systemctl", "--user", "--no-pager", "status", UserManager.service]).output
    #expect(text.split(separator: "\n").contains { $0.contains("Status: ") && $0.contains("3 objects") })
  }

  @Test(.userManager) func whatIsLoggedHasTheFieldsOfTheJournal() throws {
    let client = try manager.client(.python)
    try client.initialize("org.example.Notes", ["process": "editor"])
    let serving: JSONObject = ["_TRANSPORT": "journal", "SYSLOG_IDENTIFIER": "restorationd", "PRIORITY": "6"]
    let entries = try manager.journal(serving)
    #expect(entries.contains { $0["MESSAGE"]?.string?.hasPrefix("serving") == true })
    // A damaged archive is renamed aside, which is logged with the application's name.
    try manager.systemctl("stop", UserManager.service)
    try manager.write("not an archive", to: "\(manager.home)/.local/state/restorationd/org.example.Bad.sqlite")
    let parameters: JSONValue = ["application": "org.example.Bad", "object": ["A"]]
    let other = try manager.client(.python)
    _ = try? other.call("decodeRestorableState", parameters)
    let damage: JSONValue = "fe3f0a00d2424e26bd4a56cfb9f4fec3"
    try manager.journal([
      "_TRANSPORT": "journal", "RESTORATION_APPLICATION": "org.example.Bad", "MESSAGE_ID": damage,
    ])
    #expect(!(try manager.takeJournal()).contains { $0["_TRANSPORT"] == "stdout" && $0["UNIT"] != "" })
  }

  @Test(.userManager) func aReloadReadsTheConfigurationAgain() throws {
    let client = try manager.client(.python)
    try client.initialize("org.example.Notes")
    let pid = try manager.mainPID
    let file = "\(manager.home)/.config/restorationd/config.json"
    try manager.write(#"{"limits": {"objectsPerApplicationMax": 2}}"#, to: file)
    try manager.systemctl("reload", UserManager.service)
    try Wait.until("the new limit holds") { try client.call("limits")["objectsPerApplicationMax"] == 2 }
    let register = "registerObjectForStateRestoration"
    for name in ["A", "B"] { try client.call(register, ["restorationIdentifier": .string(name)]) }
    #expect(try client.failure(register, ["restorationIdentifier": "C"]).kind == "limitExceeded")
    _ = try manager.takeJournal()
    try manager.write(#"{"limits": {"objectsPerApplicationMax": "many"}}"#, to: file)
    try manager.systemctl("reload", UserManager.service)
    try Wait.until("it is said that the file is wrong") {
      try manager.takeJournal().contains { ($0["PRIORITY"]?.string).map { $0 <= "4" } ?? false }
    }
    #expect(try client.call("limits")["objectsPerApplicationMax"] == 2)
    try manager.waitUntil("active")
    #expect(try manager.mainPID == pid)
  }

  @Test(.userManager) func anIdleBrokerEndsAndTheNextConnectIsNotRefused() throws {
    let rounds = Environment.isLong ? 60 : 3
    try manager.allowManyRestarts()
    let command = "ExecStart=\(manager.broker) --idle-exit 3"
    try manager.dropIn("idle", service: "ExecStart=", command)
    for _ in 1...rounds {
      #expect(try Self.exchange(Self.ping).contains("result"))
      // At the very moment, more or less, at which it ends.
      Wait.moment(.milliseconds(Int.random(in: 2_970...3_030)))
      #expect(try Self.exchange(Self.ping).contains("result"))
    }
    try manager.waitUntil("inactive")
    #expect(try manager.property("Result") == "success")
    let client = try manager.client(.python)
    try client.initialize("org.example.Notes")
    try client.encode("A", state: ["n": 1])
    let pid = try manager.mainPID
    Wait.moment(.milliseconds(3_500))
    // A client with a session keeps the broker alive.
    #expect(try manager.mainPID == pid)
    client.end()
    try manager.waitUntil("inactive")
  }

  @Test(.userManager) func archivesAndTheBrokerOutliveALogout() throws {
    var client = try manager.client(.python)
    try client.initialize("org.example.Notes")
    try client.register("A")
    try client.encode("A", state: ["n": 17])
    for number: Int64 in 18...20 {
      #expect(try manager.logout() < 10_000)
      client.end()
      #expect(Files.exists(manager.archive("org.example.Notes")))
      #expect(Files.mode(manager.archive("org.example.Notes")) == 0o600)
      try manager.login()
      #expect(try manager.property("ActiveState") == "inactive")
      client = try manager.client(.python)
      let restoration = try client.initialize("org.example.Notes")["restoration"]
      #expect(restoration?["state"] == "available")
      try client.register("A")
      let decoded = try client.decode("A")
      #expect(decoded["state"]?["n"] == .integer(number - 1))
      try client.encode("A", state: ["n": .integer(number)])
      try manager.waitUntil("active")
    }
  }
}

/// The units as text.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition))
struct ServiceUnitTests {
  @Test(.userManager) func systemdFindsNothingWrongWithTheUnits() throws {
    var names = Files.list("\(Products.repository)/systemd/user").filter { $0.contains(".") }
    #expect(names.contains("restorationd.service"))
    names = names.map { $0.replacing("@.", with: "@org.example.Notes.") }
    try manager.write("#!/bin/sh\n", to: "\(manager.home)/.local/share/restorationd/applications/org.example.Notes")
    _ = try manager.output("chmod", "+x", ".local/share/restorationd/applications/org.example.Notes")
    let verify = ["systemd-analyze", "--user", "--man=no", "--recursive-errors=yes", "verify"]
    for name in names where name.hasSuffix(".service") || name.hasSuffix(".socket") {
      let result = try manager.run(verify + ["\(manager.units)/\(name)"])
      #expect(result.end == .exit(0) && result.errors.isEmpty, "\(name): \(result.output)\(result.errors)")
    }
    try manager.dropIn("wrong", service: "FilDescriptorStoreMax=1")
    #expect(try manager.run(verify + ["\(manager.units)/\(UserManager.service)"]).end != .exit(0))
  }

  /// The best packaged user service on the same system has 7.3.
  @Test(.userManager) func theBrokerIsExposedNoMoreThanItMustBe() throws {
    let security = ["systemd-analyze", "--user", "--offline=true", "--no-pager"]
    let unit = "\(manager.units)/\(UserManager.service)"
    let result = try manager.run(security + ["--threshold=63", "security", unit])
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    #expect(try manager.run(security + ["--threshold=10", "security", unit]).end != .exit(0))
    print(result.output.split(separator: "\n").last.map(String.init) ?? "no figure")
  }
}
