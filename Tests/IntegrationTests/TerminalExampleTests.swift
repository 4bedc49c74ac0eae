// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The restorers of `Protocol/examples/terminal`, with the real Bash and the real tmux.
@Suite(
  .broker,
  .enabled(if: TerminalExample.isInstalled, Comment(rawValue: TerminalExample.requirement)),
  .timeLimit(.minutes(5))
)
struct TerminalExampleTests {
  private let home = TerminalHome()

  @Test(arguments: Shell.allCases)
  func killedShellsComeBackInTheirDirectoriesAndAtTheirPlacesInTheHistory(_ kind: Shell) throws {
    let home = TerminalHome(kind)
    try home.prepare()
    var shells = [try home.shell(), try home.shell()]
    let odd = kind == .fish ? #"a\nb\ \'\"%s"# : #"$'a\nb \'"%s'"#
    let noText = kind == .fish ? #"c\xff"# : #"$'c\377'"#
    try shells[0].run("mkdir \(odd) \(noText); cd \(odd)")
    try shells[1].run("cd ~/\(noText)")
    // The last command of each is the place in the history; the second shell's came later.
    let directories = ["\(home)/a%0Ab%20%27%22%25s", "\(home)/c%FF"]
    try home.waitUntilSaved(Set(directories))
    for (index, name) in ["first", "second"].enumerated() {
      try shells[index].run("echo of the \(name)")
      // That of this shell: what the other one did before may be counted as late.
      try Wait.until("the place is saved") {
        try home.shells().contains {
          $0["directory"] == .string(directories[index])
            && (kind.lastCommand == nil || $0["history"] == .integer(Int64(index) + 3))
        }
      }
    }
    for shell in shells { try shell.kill() }
    try broker.crashAndRestart()

    shells = [try home.shell(), try home.shell()]
    let places = try shells.map { try $0.run("pwd; \(kind.lastCommand ?? "true")") }
    let first = try #require(places.first { $0.hasPrefix("\(home)/a\nb '\"%s\n") }, "\(places)")
    #expect(kind.lastCommand == nil || first.contains("echo of the first"), "\(first)")
    let second = try #require(places.first { $0.hasPrefix("\(home)/c\u{fffd}\n") }, "\(places)")
    #expect(kind.lastCommand == nil || second.contains("echo of the second"), "\(second)")

    // Who begins elsewhere wants that; who says goodbye is done; and whose terminal is gone is not.
    try shells[0].kill()
    let elsewhere = try home.shell(directory: "/usr")
    #expect(try elsewhere.run("pwd") == "/usr\n")
    for shell in [elsewhere, shells[1]] { try shell.type("exit\r") }
    try Wait.until("one is left") { try home.shells().count == 1 }
    withExtendedLifetime(shells) {}
  }

  @Test func aPlaceIsFoundAgainInAHistoryThatWasShortened() throws {
    try home.prepare()
    // What is typed here begins with a space.
    let named: [String: String?] = ["RESTORATION_SHELL": "1", "HISTCONTROL": "ignorespace"]
    func history(of lines: String...) throws -> [Substring] {
      let commands = lines.map { "echo \($0)\n" }.joined()
      try Files.write(Array(commands.utf8), to: "\(home)/.bash_history")
      let shell = try home.shell(named)
      let shown = try shell.run("history").split(separator: "\n").compactMap { $0.split(separator: " ").last }
      try Wait.until("the place is saved") {
        try home.shells().contains { $0["history"] == .integer(Int64(lines.count)) }
      }
      try shell.kill()
      return shown
    }
    #expect(try history(of: "one", "two", "mine") == ["one", "two", "mine"])
    // A line of before is gone; another shell has added some, one of which this one has done, too.
    #expect(try history(of: "two", "mine", "other", "mine") == ["other", "mine", "two", "mine"])
    // All lines of before are gone.
    #expect(try history(of: "new", "newer") == ["new", "newer"])
  }

  @Test func aPlaceIsLookedForInTenThousandLines() throws {
    let file = broker.directory.file("history")
    try Files.write(Array((1...20_000).map { "\($0)\n" }.joined().utf8), to: file)
    func found(_ place: Int, check: String = "") throws -> [String] {
      let variables = ["-v", "place=\(place)", "-v", "check=\(check)"]
      let words = ["awk"] + variables + ["-f", "\(TerminalExample.folder)/shell-place.awk", file]
      return try ChildProcess.run(words).output.split { $0 == " " || $0 == "\n" }.map(String.init)
    }
    for (line, place) in [(10_001, "10001"), (10_000, "0")] {
      let check = try #require(try found(line).last)
      #expect(try found(20_000, check: check).first == place)
    }
  }

  @Test func nothingThatIsSavedIsRun() throws {
    try home.prepare()
    let name = "$(touch proof)`touch proof`;touch proof"
    _ = try broker.directory.makeDirectory("home/\(name)")
    let good = "\(home)/%24%28touch%20proof%29%60touch%20proof%60%3Btouch%20proof"
    try ControlTool.run(["put", "org.gnu.bash", "1", #"{"directory":"\#(good)","history":0}"#], status: 0)
    // What was stored later is asked for first.
    for (index, directory) in ["/\(name)", "-x", #"/\\$(touch proof)"#, "--help"].enumerated() {
      let state = #"{"directory":"\#(directory)","history":0}"#
      try ControlTool.run(["put", "org.gnu.bash", "\(index + 2)", state], status: 0)
    }
    let shell = try home.shell()
    #expect(try shell.run("pwd") == "\(home)/\(name)\n")
    #expect(!Files.exists("\(home)/proof") && !Files.exists("\(home)/\(name)/proof"))
    try shell.kill()

    let pane = ##"""
      {"session_name": "#(touch \##(home)/proof)", "window_index": "0", "window_name": "#(touch \##(home)/proof)",
      "automatic-rename": "0", "window_active": "1", "window_width": "80", "window_height": "24", "pane_active": "1",
      "window_layout": "", "@restoration_shell": "$(touch \##(home)/proof)", "directory": "\##(good)"}
      """##
    let other = pane.replacing(##""session_name": "#"##, with: #""session_name": "$"#)
    let odd = other.replacing(#""0""#, with: #""0;run-shell 'touch \#(home)/proof'""#)
    // A layout of three panes, which does not add up, ends tmux 3.3 if its window has one.
    let layout =
      "cbfb,3x5000,81,40{24x80,2,39{3x11,9999,3{3x80,40,0,1,24x80,9999,3,81,10x11,3,79,5000},"
      + "10x5000,12,5000[40x5000,5000,0,39]}}"
    let ending = pane.replacing(#""window_layout": """#, with: #""window_layout": "\#(layout)""#)
    // In a directory tmux runs what is in #(...), too: in one of a session, and in one of a window.
    let hostile = ending.replacing(good, with: "/%23%28touch%20\(home)/proof%29")
    let window = hostile.replacing(##""window_index": "0""##, with: ##""window_index": "1""##)
    let panesOfAll = "{\"panes\":[\(odd),\(hostile),\(window),\(ending)]}"
    try ControlTool.run(["put", "org.tmux.tmux", home.formerTmuxObject, panesOfAll], status: 0)
    defer { _ = try? home.tmux("kill-server") }
    try home.tmux("start-server")
    let panes = try home.tmux("list-panes", "-aF", "#{session_name} #{pane_pid}").split(separator: " ")
    #expect(panes.count > 1 && panes[0] == "_(touch", "\(panes)")
    // What a format runs has begun before this.
    try home.tmux("run-shell", "true")
    #expect(!Files.exists("\(home)/proof") && !Files.exists("\(home)/\(name)/proof"))
  }

  @Test func nothingThatIsSavedOfSessionsAndWindowsIsRun() throws {
    try home.prepare()
    let touch = "touch \(home)/proof"
    let name = "$(touch proof)`touch proof`;touch proof"
    _ = try broker.directory.makeDirectory("home/\(name)")
    let pane = #"{"directory": "\#(home)/\#(name)", "shell": "$(\#(touch))", "active": true}"#
    // In a directory tmux runs what is in #(...), too: in one of a session, and in one of a window.
    let hostile = pane.replacing(name, with: "#(\(touch))")
    // A layout that does not add up ends tmux 3.3 if its window has as many panes.
    let layout =
      "cbfb,3x5000,81,40{24x80,2,39{3x11,9999,3{3x80,40,0,1,24x80,9999,3,81,10x11,3,79,5000},"
      + "10x5000,12,5000[40x5000,5000,0,39]}}"
    let panes = [[hostile, pane], [hostile], [pane, pane, pane, pane, pane], [pane]]
    for (index, panes) in panes.enumerated() {
      let panes = panes.joined(separator: ", ")
      let window = ##"""
        {"name": "#(\##(touch))", "automatic": false, "layout": "\##(layout)", "zoomed": "#(\##(touch))",
        "panes": [\##(panes)]}
        """##
      try ControlTool.run(["put", "org.tmux.tmux", "\(home.tmuxObject)/00000000000\(index)", window], status: 0)
    }
    let windows = (0..<4).map { #"[\#($0), "00000000000\#($0)"]"# }.joined(separator: ", ")
    let odd = #"["4;run-shell '\#(touch)'", "000000000003"], [5, "'; \#(touch)"], [{}, []]"#
    let index = ##"""
      {"sessions": [{"name": "#(\##(touch))", "size": [80, 24], "active": 2, "windows": [\##(odd), \##(windows)]},
      {"name": "$(\##(touch))", "size": ["0;run-shell '\##(touch)'", 24], "active": "#(\##(touch))",
      "windows": [\##(windows)]}, {"name": 1, "size": {}, "active": [], "windows": {}}]}
      """##
    try ControlTool.run(["put", "org.tmux.tmux", home.tmuxObject, index], status: 0)
    defer { _ = try? home.tmux("kill-server") }
    try home.tmux("start-server")
    let made = try home.tmux("list-panes", "-aF", "#{session_name}").split(separator: "\n")
    #expect(made.count >= 9 && made.allSatisfy { $0.hasPrefix("_(touch") }, "\(made)")
    // What a format runs has begun before this.
    try home.tmux("run-shell", "true")
    #expect(!Files.exists("\(home)/proof") && !Files.exists("\(home)/\(name)/proof"))
  }

  @Test func aShellThatDoesNotWaitStoresUnderANameOfItsOwnAndTakesNothing() throws {
    try home.prepare()
    let good = #"{"directory":"/usr","history":0}"#
    try ControlTool.run(["put", "org.gnu.bash", "1", good], status: 0)
    // The answer comes when the test says so, and the shell does not wait that long.
    _ = try broker.directory.makeDirectory("home/bin")
    let stand = """
      #!/bin/sh
      if [ "$3" = get ]; then until [ -e ~/answer ]; do sleep 0.05; done; fi
      exec \(Products.control) "$@"
      """
    try Files.write(Array(stand.utf8), to: "\(home)/bin/restorationctl")
    chmod("\(home)/bin/restorationctl", 0o755)
    let late: [String: String?] = [
      "PATH": "\(home)/bin:/usr/bin:/bin", "RESTORATION_WAIT": "0.1", "RESTORATION_SHELL": "1",
    ]
    let shell = try home.shell(late)
    #expect(try shell.run("pwd") == "\(home)\n")
    try shell.run("cd /var")
    try Files.write([], to: "\(home)/answer")
    try Wait.until("both are saved") {
      try Set(home.shells().compactMap { $0["directory"]?.string }) == ["/usr", "/var"]
    }
    // What comes too late is no refusal that the next prompt would tell.
    try shell.run("true")
    #expect(try !shell.terminal.shown().contains("restoration: "))
    #expect(try ControlTool.run(["get", "org.gnu.bash", "1"], status: 0).output == "\(good)\n")
    let next = try home.shell(["RESTORATION_SHELL": "1"])
    #expect(try next.run("pwd") == "/usr\n")
    for shell in [shell, next] { try shell.kill() }
  }

  @Test func aShellWhoseKeeperWasKilledTakesNoOtherShellsPlace() throws {
    try home.prepare()
    let other = #"{"directory":"/usr","history":0}"#
    try ControlTool.run(["put", "org.gnu.bash", "1", other], status: 0)
    try ControlTool.run(["put", "org.gnu.bash", "2", #"{"directory":"/var","history":0}"#], status: 0)
    let shell = try home.shell()
    #expect(try shell.run("pwd") == "/var\n")
    try shell.run("cd")
    try home.waitUntilSaved(["\(home)", "/usr"])
    // From now on the other place is the one that a shell which begins here would be given.
    try ControlTool.run(["put", "org.gnu.bash", "1", other.replacing("0", with: "1")], status: 0)
    try ControlTool.run(["put", "org.gnu.bash", "1", other], status: 0)
    let keeper = ["-s", "\(shell.process.pid)", "-f", "shell-keeper"]
    try shell.killKeeper()
    try Wait.until("it has a keeper again") {
      try shell.run("true")
      return try ChildProcess.run(["pgrep", "-r", "D,R,S"] + keeper).end == .exit(0)
    }
    try shell.run("cd /var/lib")
    try Wait.until("it is saved again") { try home.shells().contains { $0["directory"]?.string == "/var/lib" } }
    #expect(try ControlTool.run(["get", "org.gnu.bash", "1"], status: 0).output == "\(other)\n")
    try shell.kill()
  }

  @Test func aMissingDirectoryStaysSavedAndShellsWhoseWindowsWereClosedComeBack() throws {
    try home.prepare()
    let named: [String: String?] = ["RESTORATION_SHELL": "1"]
    try ControlTool.run(["put", "org.gnu.bash", "1", #"{"directory":"\#(home)/later","history":0}"#], status: 0)
    let early = try home.shell(named)
    #expect(try early.run("pwd") == "\(home)\n")
    try early.beginProgram()
    early.closeWindow()
    try early.waitForEnd()
    _ = try broker.directory.makeDirectory("home/later")
    let shell = try home.shell(named)
    #expect(try shell.run("pwd") == "\(home)/later\n")
    try shell.run("cd /usr")
    try shell.beginProgram()
    shell.closeWindow()
    try shell.waitForEnd()
    let next = try home.shell(named)
    #expect(try next.run("pwd") == "/usr\n")
    try next.kill()
  }

  @Test func killedAndEndedTmuxComesBackWithItsSessionsWindowsPanesLayoutsAndDirectories() throws {
    try home.prepare()
    let proof = "\(home)/proof"
    defer { _ = try? home.tmux("kill-server") }
    func panes(_ directory: String = "pane_current_path") throws -> String {
      let fields = [
        "session_name", "window_index", "automatic-rename", "window_active", "pane_active", "pane_left", "pane_top",
        "pane_width", "pane_height", "@restoration_shell", directory,
        // A name that tmux chooses is that of what runs in the window, which is still tmux until the shell begins.
        "?automatic-rename,,#{window_name}",
      ]
      return try home.tmux("list-panes", "-a", "-F", fields.map { "#{\($0)}" }.joined(separator: "|"))
    }
    try home.tmux("new-session", "-d")
    // A name that is not, and a directory that looks like, a command of tmux.
    try home.tmux("new-session", "-d", "-s", "a 'b'", "-x", "90", "-y", "30")
    try home.tmux("split-window", "-h", "-t", "=a 'b':")
    try home.tmux(
      "send-keys",
      "-t",
      "=a 'b':",
      #"mkdir $'#(touch proof)\nü\'\377'; cd $'#(touch proof)\nü\'\377'"#,
      "Enter"
    )
    try home.tmux("split-window", "-v", "-t", "=a 'b':")
    try home.tmux("new-window", "-t", "=a 'b':5", "-n", "x##(touch \(proof))\ny")
    try home.tmux("select-window", "-t", "=a 'b':0")
    try home.tmux("select-pane", "-t", "=a 'b':0.0")
    try Wait.until("all shells have a name") {
      let shells = try home.tmux("list-panes", "-a", "-F", "[#{@restoration_shell}]").split(separator: "\n")
      return shells.count == 5 && !shells.contains("[]")
    }
    try Wait.until("what there is is saved") {
      let saved = try home.savedOfTmux().values
      let panes = try home.savedPanes()
      let isThere = panes.contains { $0["directory"]?.string?.hasSuffix("/#(touch%20proof)%0Aü'%FF") == true }
      let sessions = saved.flatMap { $0["sessions"]?.array ?? [] }
      let selected = sessions.filter { $0["name"] == "a 'b'" && $0["active"] == 0 }
      let haveNames = panes.allSatisfy { $0["shell"]?.string?.isEmpty == false }
      return panes.count == 5 && haveNames && isThere && !selected.isEmpty
    }
    let before = try panes()
    #expect(before.contains("x#(touch"), "\(before)")
    let expected = before.replacing("x#(touch", with: "x_(touch")

    for isKilled in [true, false] {
      try home.endTmux(byKill: isKilled)
      if isKilled { try broker.crashAndRestart() }
      // Everything is there before the settings have been read, and reading them again does nothing.
      try home.tmux("start-server")
      try home.tmux("source-file", "\(home)/.tmux.conf")
      let now = try panes("pane_start_path")
      #expect(now == expected)
      try Wait.until("all shells have begun there") { try panes() == expected }
    }
    #expect(!Files.exists(proof))
  }

  @Test func aKilledRestorerOfTmuxStoresNothingBeforeWhatIsSavedWasRestored() throws {
    try home.prepare()
    let pane = """
      {"session_name": "saved", "window_index": "0", "window_name": "n", "automatic-rename": "0", "directory": "/usr",
      "window_active": "1", "window_width": "80", "window_height": "24", "pane_active": "1", "window_layout": "",
      "@restoration_shell": "tmux-1"}
      """
    try ControlTool.run(["put", "org.tmux.tmux", home.formerTmuxObject, "{\"panes\":[\(pane)]}"], status: 0)
    try broker.kill()
    defer { _ = try? home.tmux("kill-server") }
    func sessions() throws -> [String] {
      try home.tmux("list-sessions", "-F", "#{session_name}").split(separator: "\n").map(String.init)
    }
    // The broker is away, so the restorer waits.
    try home.tmux("new-session", "-d", "-s", "begun", wait: "0.2")
    try home.killRestorer()
    try broker.start()
    // The next one waits as long as a busy machine takes.
    try home.tmux("set-environment", "-g", "RESTORATION_WAIT", "600")
    try home.tmux("source-file", "\(home)/.tmux.conf")
    try Wait.until("both are there") { try sessions() == ["begun", "saved"] }
    func waitUntilStored(_ names: Set<String>) throws {
      try Wait.until("\(names) are stored") { Set(try home.savedSessions()) == names }
    }
    try waitUntilStored(["begun", "saved"])

    // What has been restored once is not restored again, and a reader of the settings makes no second restorer.
    try home.killRestorer()
    try home.tmux("new-session", "-d", "-s", "later")
    for _ in 1...2 { try home.tmux("source-file", "\(home)/.tmux.conf") }
    try waitUntilStored(["begun", "saved", "later"])
    #expect(try sessions() == ["begun", "later", "saved"])
    try Wait.until("one restorer is left") { home.restorers().count == 1 }
  }

  @Test func withoutABrokerAPromptIsSilentAndWaitsForNothing() throws {
    try home.prepare()
    try broker.kill()
    let shell = try home.shell()
    #expect(try shell.run("pwd") == "\(home)\n")
    let screen = try shell.terminal.shown()
    #expect(!screen.contains("restoration") && !screen.contains("rror"), "\(screen)")
    // And the shell survives a keeper that was killed.
    _ = try ChildProcess.run(["pkill", "-KILL", "-P", "\(shell.process.pid)"])
    #expect(try shell.run("echo alive") == "alive\n")
  }
}
