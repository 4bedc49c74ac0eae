// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// An application of three units in three languages under a real user manager (R22, R30).
@Suite(.userManager, .enabled(if: UserManager.isUsable, Comment(rawValue: UserManager.requirement)))
struct ApplicationUnitTests {
  private static let units = ["main", "left", "right"]
  private static let programs = ["python3": "main.py", "perl": "worker.pl", "node": "worker.mjs"]

  private func install() throws {
    let clients = try manager.added("Tests/Clients")
    for (unit, language) in zip(Self.units, ["python3", "perl", "node"]) {
      let program = "\(clients)/units/\(Self.programs[language] ?? "")"
      // One of them does not know its own unit.
      let variable = unit == "left" ? "" : "Environment=RESTORATION_UNIT=%n"
      try manager.write(
        """
        [Service]
        ExecStart=/usr/bin/env \(language) \(program)
        \(variable)
        [X-Restoration]
        Application=org.example.Three
        """,
        to: "\(manager.units)/\(unit).service"
      )
    }
    try manager.systemctl("daemon-reload")
  }

  /// Starts all three and waits until each has pushed its state and its unit is known; what each pushed.
  private func begin() throws -> [String: String] {
    try manager.systemctl("start", "main.service", "left.service", "right.service")
    let pushed = try facts("pushed")
    // The broker asks the manager about each unit, which may take longer than the push.
    try Wait.until("all units are known") {
      try overview()?["units"]?.array?.count == Self.units.count
    }
    return pushed
  }

  /// The last facts that the processes wrote under a word, once all three have.
  private func facts(_ word: String) throws -> [String: String] {
    var facts: [String: String] = [:]
    try Wait.until("all have \(word)") {
      facts = [:]
      for line in ((try? Files.text(manager.outside("\(manager.home)/journal"))) ?? "").split(separator: "\n") {
        let words = line.split(separator: " ").map(String.init)
        if words.count > 1, words[1] == word { facts[words[0]] = words.count > 2 ? words[2] : "" }
      }
      return facts.count == Self.units.count
    }
    return facts
  }

  private func killAll() throws {
    try manager.systemctl("kill", "--signal=KILL", "main.service", "left.service", "right.service")
    try Wait.until("no session is left") {
      try overview()?["sessions"] == 0
    }
  }

  private func overview() throws -> JSONValue? {
    let text = try manager.output("restorationctl", "list", "-j")
    return try JSONCodec.parse(Array(text.utf8))["applications"]?.array?.first
  }

  private func clear() throws { try manager.write("", to: "\(manager.home)/journal") }

  private func restored(_ text: String) throws -> [String] {
    let result = try JSONCodec.parse(Array(text.utf8))
    return (result["restored"]?.array ?? []).map { ($0.array ?? []).compactMap(\.string).joined(separator: "/") }
  }

  private let restore = ["restorationctl", "restore", "org.example.Three", "--deadline", "30", "-j"]

  @Test func r22AllOfThemAreKilledAndOneCallBringsEverythingBack() throws {
    try install()
    let pushed = try begin()
    try killAll()
    try clear()
    let result = try manager.run(restore)
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(Set(try restored(result.output)) == ["Main", "Main/Left", "Main/Right"])
    #expect(try facts("back") == pushed)
    #expect(try facts("finished").count == 3)
    let journal = try Files.text(manager.outside("\(manager.home)/journal"))
    #expect(journal.hasPrefix("main began restore\nmain asked\n"))
    #expect(journal.contains("main told\n"))
  }

  @Test func r22TheSameAfterTheUserLoggedOutAndIn() throws {
    try install()
    let pushed = try begin()
    try manager.logout()
    try clear()
    try manager.login()
    let application = try #require(try overview())
    #expect(Set((application["units"]?.array ?? []).compactMap(\.string)) == Set(Self.units.map { "\($0).service" }))
    #expect(application["units"]?.array?.first == "main.service")
    let policy = #"{"restoreAtLogin":{"org.example.Three":"always"}}"#
    try manager.write(policy, to: "\(manager.home)/.config/restorationd/config.json")
    try manager.systemctl("reload", UserManager.service)
    try Wait.until("the policy holds") { try overview()?["restoreAtLogin"] == "always" }
    let result = try manager.run(["restorationctl", "login", "-j"])
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.contains(#""application":"org.example.Three","result":{"restored":"#), "\(result.output)")
    #expect(try facts("back") == pushed)
    #expect(try facts("finished").count == 3)
  }

  @Test func r22AtLoginAUnitThatCannotBeStartedIsNamedAndTheStatusSaysSo() throws {
    try install()
    _ = try begin()
    try killAll()
    let unit = "[Service]\nType=exec\nExecStart=/nowhere\n[X-Restoration]\nApplication=org.example.Three\n"
    try manager.write(unit, to: "\(manager.units)/left.service")
    try manager.systemctl("daemon-reload")
    let policy = #"{"restoreAtLogin":{"org.example.Three":"always"}}"#
    try manager.write(policy, to: "\(manager.home)/.config/restorationd/config.json")
    try manager.systemctl("reload", UserManager.service)
    try Wait.until("the policy holds") { try overview()?["restoreAtLogin"] == "always" }
    let result = try manager.run(["restorationctl", "login", "--deadline", "5", "-j"])
    #expect(result.end == .exit(1))
    #expect(result.errors.contains("unit left.service was not started: its start job ended with failed"))
    let restored = try JSONCodec.parse(Array(result.output.utf8))["applications"]?.array?.first?["result"]
    #expect(restored?["failedUnits"]?.array?.first?["unit"] == "left.service")
    #expect(restored?["absent"]?.array?.count == 1)
  }

  @Test func r30TheManagerTellsHowEachOfThemEnded() throws {
    try install()
    _ = try begin()
    let monitor = try manager.client(.python)
    try monitor.call("subscribe", ["events": ["sessionEnded"]])
    try manager.systemctl("stop", "left.service")
    let stopped = try monitor.notification("event")
    #expect(stopped["process"] == "left" && stopped["ending"] == "stopped" && stopped["unit"] == "left.service")
    try manager.systemctl("kill", "--signal=SEGV", "right.service")
    let crashed = try monitor.notification("event")
    #expect(crashed["ending"] == "crashed" && crashed["signal"] == "SIGSEGV" && crashed["unit"] == "right.service")
    try manager.systemctl("kill", "--signal=KILL", "main.service")
    let killed = try monitor.notification("event")
    #expect(killed["ending"] == "crashed" && killed["signal"] == "SIGKILL" && killed["how"] == "signalled")
  }
}
