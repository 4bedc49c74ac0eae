// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What happens to tmux in a common life, with the restorer of `Protocol/examples/terminal`.
@Suite(
  .enabled(if: TerminalExample.isInstalled, Comment(rawValue: TerminalExample.requirement)),
  .timeLimit(.minutes(5))
)
struct TmuxLives {
  private let home = TerminalHome()

  private func sessions(socket: String? = nil) throws -> [Substring] {
    try home.tmux("list-sessions", "-F", "#{session_name}", socket: socket).split(separator: "\n")
  }

  /// The last differ in what is far from the end of their paths.
  @Test(.broker, arguments: [("t-ä", "t-ö"), ("t.1", "t_1"), ("a/\(String(repeating: "t", count: 60))", "b/")])
  func twoServersHaveTheirOwnSessionsHoweverAlikeTheirSocketsAre(_ first: String, _ second: String) throws {
    try home.prepare()
    let sockets = [first, second.hasSuffix("/") ? second + first.dropFirst(2) : second].map(broker.directory.file)
    for folder in ["a", "b"] { _ = try broker.directory.makeDirectory(folder) }
    defer { for socket in sockets { _ = try? home.tmux("kill-server", socket: socket) } }
    for (socket, name) in zip(sockets, ["invoices", "holiday"]) {
      try home.tmux("new-session", "-d", "-s", name, socket: socket)
    }
    try Wait.until("both are saved") { try home.savedSessions() == ["holiday", "invoices"] }
    for socket in sockets { try home.endTmux(socket: socket) }
    for (socket, name) in zip(sockets, ["invoices", "holiday"]) {
      try home.tmux("start-server", socket: socket)
      #expect(try sessions(socket: socket) == [name[...]])
    }
  }

  @Test(.broker) func whatAFormerBuildSavedComesBackOnce() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    let pane = """
      {"session_name": "saved", "window_index": "3", "window_name": "n", "automatic-rename": "0", "directory": "/usr",
      "window_active": "1", "window_width": "80", "window_height": "24", "pane_active": "1", "window_layout": "",
      "@restoration_shell": "tmux-1"}
      """
    try ControlTool.run(["put", "org.tmux.tmux", home.formerTmuxObject, "{\"panes\":[\(pane)]}"], status: 0)
    try home.tmux("start-server")
    #expect(
      try home.tmux("list-panes", "-aF", "#{session_name} #{window_index} #{window_name} #{pane_start_path}")
        == "saved 3 n /usr\n"
    )
    try home.tmux("rename-session", "now")
    try Wait.until("it is saved as it is now, and nothing else is") {
      try home.savedSessions() == ["now"] && home.savedOfTmux()[home.formerTmuxObject] == nil
    }
    try home.endTmux()
    try home.tmux("start-server")
    #expect(try sessions() == ["now"])
  }

  /// All panes, as people see them.
  private func panes() throws -> String {
    let fields = ["session_name", "window_index", "window_name", "pane_left", "pane_top", "pane_current_path"]
    return try home.tmux("list-panes", "-aF", fields.map { "#{\($0)}" }.joined(separator: "|"))
  }

  /// The state of one object with all of them would be beyond the limit.
  @Test(.broker(limits: ["stateBytesMax": 4_096]))
  func panesInDirectoriesWithLongNamesOutsideOfASCIIComeBack() throws {
    let count = Environment.isLong ? 150 : 15
    // Not a shell that is saved itself: it gets its name when it has begun, and with that its window changes.
    try home.prepare(command: "sh")
    defer { _ = try? home.tmux("kill-server") }
    let commands = try (1..<count).map { number in
      let name = "\(String(repeating: "項目", count: 35))-\(number)"
      _ = try broker.directory.makeDirectory("home/\(name)")
      return "new-window -d -t main: -n w\(number) -c '\(home)/\(name)'\n"
    }
    try home.write(commands.joined(), to: "windows.conf")
    try home.tmux("new-session", "-d", "-s", "main", "-n", "w0")
    try home.tmux("source-file", "\(home)/windows.conf")
    try Wait.until("all are saved") { try home.savedPanes().count == count }
    let before = try panes()
    #expect(before.split(separator: "\n").count == count)
    try home.endTmux(byKill: true)
    try home.tmux("start-server")
    try Wait.until("all are there") { try panes() == before }
    // What has not changed is not stored anew.
    let written = try home.writtenOfTmux()
    try home.tmux("rename-window", "-t", "main:7", "another")
    try Wait.until("it is stored") { try home.savedOfTmux().values.contains { $0["name"] == "another" } }
    let changed = try home.writtenOfTmux().filter { written[$0.key] != $0.value }
    #expect(changed.count == 1, "\(changed)")
  }

  @Test(.broker(limits: ["stateBytesMax": 1_024]))
  func aWindowThatIsRefusedIsToldToWhoeverLooksAtTmuxAndTheOthersAreSaved() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    let directory = try broker.directory.makeDirectory("home/\(String(repeating: "d", count: 250))")
    try home.tmux("new-session", "-d", "-s", "main", "-x", "200", "-y", "50", "-c", directory)
    try home.tmux("new-window", "-t", "main:5", "-n", "small")
    for _ in 1...4 { try home.tmux("split-window", "-t", "main:0", "-c", directory) }
    let terminal = try PseudoTerminal()
    let client = try ChildProcess(
      ["tmux", "-u", "-S", home.socket, "attach"],
      environment: home.environment,
      output: .terminal(terminal)
    )
    _ = try terminal.shown(until: "restoration: window 0 of main is not saved: stateBytesMax is 1024")
    #expect(try home.savedOfTmux().values.contains { $0["name"] == "small" })
    for _ in 1...4 { try home.tmux("kill-pane", "-t", "main:0") }
    try home.tmux("rename-window", "-t", "main:0", "less")
    try Wait.until("both are saved") {
      try Set(home.savedOfTmux().values.compactMap { $0["name"]?.string }) == ["less", "small"]
    }
    try home.endTmux()
    _ = try client.waitForEnd()
  }

  /// Waits until what there is has been stored: a change that comes later is.
  private func waitForRestorer(_ name: String) throws {
    try home.tmux("new-session", "-d", "-s", name)
    try Wait.until("\(name) is saved") { try home.savedSessions().contains(name) }
  }

  @Test(.broker) func aDirectoryThatIsMissingForOneStartIsKeptUntilItsUserGoesElsewhere() throws {
    // No shell comes back there by itself.
    try home.prepare(command: "bash --norc")
    defer { _ = try? home.tmux("kill-server") }
    for name in ["kept", "deserted"] {
      try home.tmux("new-session", "-d", "-s", name, "-c", broker.directory.makeDirectory("home/\(name)"))
    }
    try Wait.until("both are saved") { try home.savedDirectories() == ["\(home)/kept", "\(home)/deserted"] }
    try home.endTmux()
    for name in ["kept", "deserted"] { Files.removeTree("\(home)/\(name)") }
    try home.tmux("start-server")
    try waitForRestorer("one")
    try home.tmux("send-keys", "-t", "deserted:", "cd /usr", "Enter")
    try Wait.until("one has gone elsewhere") {
      try home.savedDirectories() == ["\(home)/kept", "/usr", "\(home)"]
    }
    try home.endTmux()
    _ = try broker.directory.makeDirectory("home/kept")
    try home.tmux("start-server")
    try Wait.until("it is there again") {
      try home.tmux("list-panes", "-t", "kept", "-F", "#{pane_current_path}") == "\(home)/kept\n"
    }
  }

  @Test(.broker) func aPaneWhoseShellHasEndedKeepsItsDirectory() throws {
    try home.prepare(command: "bash --norc")
    try home.write("set -g remain-on-exit on\n\(Files.text("\(home)/.tmux.conf"))", to: ".tmux.conf")
    let directories = ["unseen": "/usr", "moved": "\(home)", "missing": "\(home)/missing"]
    let panes = directories.map { name, directory in
      """
      {"session_name": "\(name)", "window_index": "0", "window_name": "n", "automatic-rename": "0",
      "directory": "\(directory)", "window_active": "1", "window_width": "80", "window_height": "24",
      "pane_active": "1", "window_layout": "", "@restoration_shell": ""}
      """
    }
    let state = "{\"panes\":[\(panes.joined(separator: ", "))]}"
    try ControlTool.run(["put", "org.tmux.tmux", home.formerTmuxObject, state], status: 0)
    defer { _ = try? home.tmux("kill-server") }
    func end(_ name: String) throws {
      let pid = try #require(Int32(try home.tmux("display-message", "-pt", "\(name):", "#{pane_pid}").dropLast()))
      Glibc.kill(pid, SIGKILL)
      try Wait.until("\(name) has ended") {
        try home.tmux("display-message", "-pt", "\(name):", "#{pane_dead}") == "1\n"
      }
    }
    try home.tmux("start-server")
    try end("unseen")
    try home.tmux("send-keys", "-t", "moved:", "cd /var", "Enter")
    let wanted: Set = ["/usr", "/var", "\(home)/missing"]
    try Wait.until("all are saved") { try home.savedDirectories() == wanted }
    for name in ["moved", "missing"] { try end(name) }
    try waitForRestorer("one")
    #expect(try home.savedDirectories() == wanted.union(["\(home)"]))
  }

  @Test(.broker) func aRestorerWhoseServerHasEndedLeavesTheNextOneAlone() throws {
    try home.prepare(command: "sh")
    defer { _ = try? home.tmux("kill-server") }
    try waitForRestorer("main")
    let restorers = home.restorers()
    for pid in restorers { Glibc.kill(pid, SIGSTOP) }
    try home.endTmux()
    try home.write("", to: ".tmux.conf")
    try home.tmux("new-session", "-d", "-s", "main")
    for pid in restorers { Glibc.kill(pid, SIGCONT) }
    try Wait.until("the former restorer has ended") { home.restorers().isEmpty }
    #expect(try home.tmux("show-options", "-wqvt", "main:", "@restoration_window") == "")
  }

  @Test(.broker) func whatCouldNotBeMadeOnceComesBackLater() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    // A tmux that makes no more windows and panes, as when there are no more terminals.
    _ = try broker.directory.makeDirectory("home/bin")
    let stand = """
      #!/bin/sh
      case " $* " in
        *" new-window "*|*" split-window "*) [ ! -e \(home)/full ] || exit 1;;
      esac
      exec /usr/bin/tmux "$@"
      """
    try home.write(stand, to: "bin/tmux")
    chmod("\(home)/bin/tmux", 0o755)
    let path: [String: String?] = ["PATH": "\(home)/bin:\(home.environment["PATH"].flatMap { $0 } ?? "")"]
    try home.tmux("new-session", "-d", "-s", "main", "-x", "80", "-y", "24", variables: path)
    try home.tmux("split-window", "-h", "-t", "main:0", "-c", "/usr")
    try home.tmux("new-window", "-t", "main:3", "-n", "third", "-c", "/var")
    try home.tmux("select-pane", "-t", "main:0.0")
    try Wait.until("all are saved") { try home.savedPanes().count == 3 }
    let before = try panes()
    try home.endTmux()
    try home.write("", to: "full")
    try home.tmux("start-server", variables: path)
    #expect(try panes().split(separator: "\n").count == 1)
    try waitForRestorer("one")
    #expect(try home.savedPanes().count == 4)
    // Another restorer of this server knows of it, too.
    try home.killRestorer()
    try home.tmux("source-file", "\(home)/.tmux.conf")
    try waitForRestorer("two")
    #expect(try home.savedPanes().count == 5)
    for name in ["one", "two"] { try home.tmux("kill-session", "-t", name) }
    try Wait.until("they are gone") { try home.savedSessions() == ["main"] }
    try home.endTmux()
    Files.remove("\(home)/full")
    try home.tmux("start-server", variables: path)
    try Wait.until("all are there") { try panes() == before }
  }

  @Test(.broker) func shellsStayWhenTheirServerEnds() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    let folder = try broker.directory.makeDirectory("home/folder")
    try home.tmux("new-session", "-d", "-s", "main")
    try home.tmux("new-window", "-t", "main:1", "-c", folder)
    for byKill in [false, true] {
      try home.waitUntilSaved(["\(home)", folder])
      try Wait.until("their panes are saved") { try home.savedPanes().count == 2 }
      try home.endTmux(byKill: byKill)
      let keepers = ["pgrep", "-r", "D,R,S", "-f", "shell-keeper.bash .* 600 \(home)"]
      try Wait.until("all shells and their keepers have ended") { try ChildProcess.run(keepers).end == .exit(1) }
      #expect(Set(try home.shells().compactMap { $0["directory"]?.string }) == ["\(home)", folder])
      try home.tmux("start-server")
      try Wait.until("both are there again") { try home.tmux("list-panes", "-a").split(separator: "\n").count == 2 }
    }
  }

  /// It has come to no prompt at which it would say where it is.
  @Test(.broker, arguments: Shell.allCases)
  func aShellThatRunsAProgramComesBackWhereThatWasBegun(_ kind: Shell) throws {
    let home = TerminalHome(kind)
    try home.prepare(command: kind.rawValue)
    defer { _ = try? home.tmux("kill-server") }
    _ = try broker.directory.makeDirectory("home/a b%")
    try home.tmux("new-session", "-d", "-s", "main")
    try home.waitUntilSaved(["\(home)"])
    try home.tmux("send-keys", "-t", "main:", "cd 'a b%' && sleep 1000", "Enter")
    let directory: Set = ["\(home)/a%20b%25"]
    try Wait.until("tmux has seen it there") { try home.savedDirectories() == directory }
    #expect(try home.shells().map { $0["directory"]?.string } == ["\(home)"])
    try home.endTmux(byKill: true)
    try home.tmux("start-server")
    try Wait.until("its first prompt is there") { try home.tmux("capture-pane", "-pt", "main:").contains(">") }
    #expect(try home.tmux("display-message", "-pt", "main:", "#{pane_current_path}") == "\(home)/a b%\n")
    try home.waitUntilSaved(directory)
  }

  @Test(.broker) func aPaneThatIsClosedTakesItsShellAlongUnlessItsServerEnds() throws {
    for kind in Shell.allCases { try TerminalHome(kind).prepare() }
    defer { _ = try? home.tmux("kill-server") }
    try home.tmux("new-session", "-d", "-s", "main")
    try home.tmux("split-window", "-t", "main:0")
    try home.tmux("new-window", "-t", "main:1", "zsh")
    try home.tmux("new-session", "-d", "-s", "other", "fish")
    func shells() throws -> [Shell: Set<String>] {
      try Dictionary(uniqueKeysWithValues: Shell.allCases.map { ($0, try Set(TerminalHome($0).namedShells().keys)) })
    }
    try Wait.until("all are saved") {
      let names = try Set(home.savedPanes().compactMap { $0["shell"]?.string })
      let saved = try shells()
      return names == Set(saved.values.joined()) && saved.mapValues(\.count) == [.bash: 2, .zsh: 1, .fish: 1]
    }
    let left = try home.tmux("display-message", "-pt", "main:0.0", "#{@restoration_shell}").dropLast()
    try home.tmux("kill-pane", "-t", "main:0.1")
    try home.tmux("kill-window", "-t", "main:1")
    try home.tmux("kill-session", "-t", "other")
    try Wait.until("one shell is left") { try shells() == [.bash: [String(left)], .zsh: [], .fish: []] }
  }

  @Test(.broker) func sessionsThatTheSettingsBeginAreNotMultiplied() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    let settings = """
      set -g default-command bash
      new-session -d -s main
      new-session -d -s tools -n log 'exec sleep 1000'
      run-shell '\(TerminalExample.folder)/tmux.py'

      """
    try home.write(settings, to: ".tmux.conf")
    try home.tmux("start-server")
    try home.tmux("send-keys", "-t", "main:0", "cd /usr/lib", "Enter")
    try home.tmux("split-window", "-t", "main:0", "-c", "/usr/share")
    try home.tmux("new-window", "-t", "main:4", "-n", "fourth", "-c", "/usr")
    try home.tmux("new-window", "-t", "tools:2", "-n", "second", "-c", "/var")
    try Wait.until("all are saved") {
      let panes = try home.savedPanes().compactMap { $0["directory"]?.string }
      return panes.sorted() == ["\(home)", "/usr", "/usr/lib", "/usr/share", "/var"].sorted()
    }
    let before = try panes()
    for _ in 1...3 {
      try home.endTmux()
      try home.tmux("start-server")
      try Wait.until("all are there once") { try panes() == before }
      let programs = try home.tmux("list-panes", "-aF", "#{pane_start_command}").split(separator: "\n")
      #expect(programs.count { $0.contains("sleep 1000") } == 1, "\(programs)")
    }
  }
}
