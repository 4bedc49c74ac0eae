// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What happens to shells in a common life, with the restorer of `Protocol/examples/terminal`.
@Suite(
  .broker,
  .enabled(if: TerminalExample.isInstalled, Comment(rawValue: TerminalExample.requirement)),
  .timeLimit(.minutes(5))
)
struct ShellLives {
  private let home = TerminalHome()

  /// How a shell ends.
  enum Ending: String, CaseIterable, Sendable {
    /// logind sends both to every process of the session; the window closes a moment later.
    case logout = "SIGTERM and at once SIGHUP"
    /// As Konsole does, which leaves the window open until the shell has ended.
    case hangup = "SIGHUP"
    /// The kernel tells the shell, as when ssh drops or the terminal is killed.
    case closedWindow = "its window is closed"
    case closedWindowOfProgram = "its window is closed while a program runs"
    case hangupDuringProgram = "SIGHUP while a program runs"
    case killed = "SIGKILL"
    case otherSignal = "SIGUSR1"
    case timeout = "TMOUT"
    case exit = "exit"
    case endOfInput = "Ctrl-D"
    case exitInFunction = "exit in a function"
    case logoutCommand = "logout"

    /// Whether the user typed that it ends.
    var isWish: Bool { [.exit, .endOfInput, .exitInFunction, .logoutCommand].contains(self) }
  }

  /// Traps that the user has, of which nothing may be lost.
  enum Traps: String, CaseIterable, Sendable {
    case none, exitBefore, exitAfter, hangupThatLeaves, hangupThatStays, ignoredHangup

    var before: String { self == .exitBefore ? "trap 'echo $? trapped >>~/trapped' EXIT" : "" }

    var after: String {
      switch self {
      case .none, .exitBefore: ""
      case .exitAfter: "trap 'echo $? trapped >>~/trapped' EXIT"
      case .hangupThatLeaves: "trap 'exit 3' HUP"
      case .hangupThatStays: "trap ': >~/hung' HUP"
      case .ignoredHangup: "trap '' HUP"
      }
    }
  }

  /// How often each ends.
  private static var count: Int { Environment.isLong ? 20 : 1 }

  private func end(_ shell: ShellProcess, _ ending: Ending) throws {
    switch ending {
    case .logout:
      shell.process.send(signal: SIGTERM)
      shell.process.send(signal: SIGHUP)
      shell.closeWindow()
    case .hangup: shell.process.send(signal: SIGHUP)
    case .closedWindow: shell.closeWindow()
    case .closedWindowOfProgram:
      try shell.beginProgram()
      shell.closeWindow()
    case .hangupDuringProgram:
      try shell.beginProgram()
      shell.process.send(signal: SIGHUP)
    case .killed: shell.process.send(signal: SIGKILL)
    case .otherSignal: shell.process.send(signal: SIGUSR1)
    case .timeout: try shell.type("TMOUT=1\r")
    case .exit: try shell.type("exit\r")
    case .endOfInput: try shell.type("\u{4}")
    case .exitInFunction: try shell.type("leave() { eval 'exit 3'; }; leave\r")
    case .logoutCommand: try shell.type("logout\r")
    }
    try shell.waitForEnd()
  }

  /// Whether a shell is still saved after it has ended.
  private func isKept(after ending: Ending) throws -> Bool {
    let shell = try home.shell(["RESTORATION_SHELL": "1"], ending == .logoutCommand ? ["--login", "-i"] : ["-i"])
    try shell.run("cd /usr")
    try Wait.until("it is saved") { try home.namedShells()["1"]?["directory"] == "/usr" }
    try end(shell, ending)
    return try home.namedShells()["1"] != nil
  }

  @Test(arguments: Ending.allCases)
  func aShellIsForgottenOnlyIfItsUserTypedThatItEnds(_ ending: Ending) throws {
    try home.prepare()
    // For a login shell, whose system-wide profile has replaced the search path.
    let path = try #require(home.environment["PATH"] ?? nil)
    try home.write("PATH='\(path)'\n. ~/.bashrc\n", to: ".bash_profile")
    for _ in 0..<Self.count { #expect(try isKept(after: ending) != ending.isWish) }
  }

  @Test(arguments: Traps.allCases)
  func trapsOfTheUserAreRunAndNotTakenForWishes(_ traps: Traps) throws {
    try home.prepare(before: traps.before, after: traps.after)
    let isTrapped = traps == .exitBefore || traps == .exitAfter
    for ending in [Ending.logout, .exit, .endOfInput] + (isTrapped ? [.hangup] : []) {
      for _ in 0..<Self.count {
        Files.remove("\(home)/trapped")
        #expect(try isKept(after: ending) != ending.isWish, "\(ending)")
        // A second hangup, such as that of the window, ends any Bash within its trap.
        let isWhole = isTrapped && ending != .logout
        #expect(try !isWhole || Files.text("\(home)/trapped") == "0 trapped\n", "\(ending)")
      }
    }
  }

  /// One that waits for keys ends by `SIGHUP` whatever the trap does.
  @Test func aShellThatHasOutlivedASignalIsForgottenOnceItsUserEndsIt() throws {
    try home.prepare(after: Traps.hangupThatStays.after)
    for _ in 0..<Self.count {
      let shell = try home.shell(["RESTORATION_SHELL": "1"])
      try shell.run("cd /usr")
      try home.waitUntilSaved(["/usr"])
      try shell.beginProgram()
      shell.process.send(signal: SIGHUP)
      try shell.terminal.type("\u{3}")
      try Wait.until("the trap has run") { Files.exists("\(home)/hung") }
      try end(shell, .exit)
      #expect(try home.namedShells()["1"] == nil)
      Files.remove("\(home)/hung")
    }
  }

  @Test func aShellComesBackAlsoIfItsSettingsGoElsewhereAndSetThePromptsCommandAgain() throws {
    try ControlTool.run(["put", "org.gnu.bash", "1", #"{"directory":"/usr","history":0}"#], status: 0)
    try home.prepare(after: "cd /var\nPROMPT_COMMAND='history -a'")
    let shell = try home.shell()
    #expect(try shell.run("pwd") == "/usr\n")
    try shell.run("cd /usr/lib")
    try home.waitUntilSaved(["/usr/lib"])
    try shell.kill()
  }

  /// The default settings of Debian read `~/.bashrc` before they put `~/.local/bin` into `PATH`.
  @Test func theToolIsFoundInTheHomeDirectory() throws {
    try home.prepare()
    for folder in ["home/.local", "home/.local/bin"] { _ = try broker.directory.makeDirectory(folder) }
    #expect(symlink(Products.control, "\(home)/.local/bin/restorationctl") == 0)
    let shell = try home.shell(["PATH": "/usr/bin:/bin"])
    try shell.run("cd /usr")
    try home.waitUntilSaved(["/usr"])
    try shell.kill()
  }

  @Test func aPromptsCommandThatIsGoneIsToldOnce() throws {
    try home.prepare(after: "PROMPT_COMMAND=()")
    let shell = try home.shell()
    for _ in 1...2 { try shell.run("true") }
    let screen = try shell.terminal.shown()
    #expect(screen.ranges(of: "restoration: PROMPT_COMMAND was set again").count == 1, "\(screen)")
    try shell.kill()
  }
}
