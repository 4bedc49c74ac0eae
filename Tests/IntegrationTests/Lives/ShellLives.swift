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
    /// As a user may have set it to leave programs alone.
    case trappedHangup = "SIGHUP, for which the user has a trap that leaves"
    case killed = "SIGKILL"
    case otherSignal = "SIGUSR1"
    case timeout = "TMOUT"
    case exit = "exit"
    case endOfInput = "Ctrl-D"
    case endOfInputWithoutSystemSettings = "Ctrl-D, where no settings of the system load zsh's line editor"
    case exitInFunction = "exit in a function"
    case logoutCommand = "logout"

    /// Whether the user typed that it ends.
    var isWish: Bool {
      [.exit, .endOfInput, .endOfInputWithoutSystemSettings, .exitInFunction, .logoutCommand].contains(self)
    }

    /// Those of a kind of shell; what is the same in all is tried with Bash, if time is short.
    static func all(of kind: Shell) -> [Ending] {
      allCases.filter { ending in
        switch ending {
        case .timeout, .logoutCommand: kind != .fish
        case .trappedHangup: kind != .bash  // it has all that is in `Traps`
        case .endOfInputWithoutSystemSettings: kind == .zsh
        case .hangup, .closedWindowOfProgram, .killed, .otherSignal: kind == .bash || Environment.isLong
        default: true
        }
      }
    }
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
    case .trappedHangup:
      try shell.run("trap 'exit 3' HUP")
      // zsh that is about to read a key leaves by a trap only when it has read it, also without the restorer.
      try shell.awaitSleepAtPrompt()
      shell.process.send(signal: SIGHUP)
    case .killed: shell.process.send(signal: SIGKILL)
    case .otherSignal: shell.process.send(signal: SIGUSR1)
    case .timeout: try shell.type("TMOUT=1\r")
    case .exit: try shell.type("exit\r")
    case .endOfInput, .endOfInputWithoutSystemSettings: try shell.type("\u{4}")
    case .exitInFunction:
      let function = shell.kind == .fish ? "function leave; eval 'exit 3'; end" : "leave() { eval 'exit 3'; }"
      try shell.type("\(function); leave\r")
    case .logoutCommand: try shell.type("logout\r")
    }
    try shell.waitForEnd()
  }

  /// Whether a shell is still saved after it has ended.
  private func isKept(after ending: Ending, _ home: TerminalHome) throws -> Bool {
    let option: String? =
      switch ending {
      case .logoutCommand: "--login"
      case .endOfInputWithoutSystemSettings: "--no-globalrcs"
      default: nil
      }
    let shell = try home.shell(["RESTORATION_SHELL": "1"], [option, "-i"].compactMap { $0 })
    try shell.run("cd /usr")
    try Wait.until("it is saved") { try home.namedShells()["1"]?["directory"] == "/usr" }
    try end(shell, ending)
    return try home.namedShells()["1"] != nil
  }

  private static let endings = Shell.allCases.flatMap { kind in Ending.all(of: kind).map { (kind, $0) } }

  @Test(arguments: endings)
  func aShellIsForgottenOnlyIfItsUserTypedThatItEnds(_ kind: Shell, _ ending: Ending) throws {
    let home = TerminalHome(kind)
    try home.prepare(before: kind == .zsh ? "zshexit() { : >>|~/hooked }" : "")
    // For a login shell, whose system-wide profile has replaced the search path.
    let path = try #require(home.environment["PATH"] ?? nil)
    try home.write("PATH='\(path)'\n. ~/.bashrc\n", to: ".bash_profile")
    for _ in 0..<Self.count { #expect(try isKept(after: ending, home) != ending.isWish) }
    // `exit` of a function would end a login zsh without hooks of the user's.
    #expect(kind != .zsh || ending != .logoutCommand || Files.exists("\(home)/hooked"))
  }

  @Test(arguments: Shell.allCases)
  func aShellThatBeginsItselfAnewByExecStaysTheOneThatItWas(_ kind: Shell) throws {
    let home = TerminalHome(kind)
    try home.prepare()
    let shell = try home.shell()
    try shell.run("cd /usr")
    try home.waitUntilSaved(["/usr"])
    let name = try home.namedShells().keys.first
    Files.remove("\(home)/begun")
    try home.write(Files.text("\(home)/\(kind.settings)") + "echo >~/begun\n", to: kind.settings)
    try shell.type("exec \(kind)\r")
    try Wait.until("it has begun anew") {
      try shell.terminal.drain()
      return Files.exists("\(home)/begun")
    }
    #expect(try shell.run("pwd") == "/usr\n")
    try shell.run("cd /var")
    try home.waitUntilSaved(["/var"])
    #expect(try home.namedShells().keys.first == name)
    try shell.kill()
  }

  @Test func aShellWithoutAFileForItsHistoryComesBackInItsDirectory() throws {
    try home.prepare(after: "unset HISTFILE")
    var shell = try home.shell()
    try shell.run("cd /usr")
    try home.waitUntilSaved(["/usr"])
    #expect(try home.shells() == [["directory": "/usr"]])
    try shell.kill()
    shell = try home.shell()
    #expect(try shell.run("pwd") == "/usr\n")
    try shell.kill()
  }

  @Test(arguments: Traps.allCases)
  func trapsOfTheUserAreRunAndNotTakenForWishes(_ traps: Traps) throws {
    try home.prepare(before: traps.before, after: traps.after)
    let isTrapped = traps == .exitBefore || traps == .exitAfter
    for ending in [Ending.logout, .exit, .endOfInput] + (isTrapped ? [.hangup] : []) {
      for _ in 0..<Self.count {
        Files.remove("\(home)/trapped")
        #expect(try isKept(after: ending, home) != ending.isWish, "\(ending)")
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

  /// As `install.sh --prefix` and the archive of a release have it.
  @Test(arguments: ["share/restorationd/restorers", "restorers"])
  func theToolIsFoundThatIsInstalledWithTheRestorer(folder: String) throws {
    let prefix = try broker.directory.makeDirectory("prefix")
    let copied = try ChildProcess.run([
      "sh", "-c", #"mkdir -p "$0/bin" "$0/$1" && ln -s "$2" "$0/bin/" && cp -R "$3" "$0/$1/""#, prefix, folder,
      Products.control, TerminalExample.folder,
    ])
    #expect(copied.end == .exit(0), "\(copied.errors)")
    try home.prepare()
    try home.write("\(home.kind.habits)\nsource \(prefix)/\(folder)/terminal/shell.bash\n", to: home.kind.settings)
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
