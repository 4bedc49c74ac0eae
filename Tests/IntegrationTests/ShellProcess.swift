// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// A kind of shell that comes back.
enum Shell: String, CaseIterable, Sendable {
  case bash, zsh, fish

  /// Where its restorer stores.
  var application: String {
    switch self {
    case .bash: "org.gnu.bash"
    case .zsh: "org.zsh.zsh"
    case .fish: "com.fishshell.fish"
    }
  }

  /// The file of its settings in the home directory.
  var settings: String {
    switch self {
    case .bash: ".bashrc"
    case .zsh: ".zshrc"
    case .fish: ".config/fish/config.fish"
    }
  }

  /// What a user may have set, which does not reach the restorer.
  var habits: String {
    switch self {
    case .bash: "PS1='> '\nalias rm='rm -i' tail=false\nset -C\n"
    case .zsh:
      "PS1='> '\nalias rm='rm -i' tail=false\nset -C\nHISTFILE=~/.zsh_history HISTSIZE=1000 SAVEHIST=1000\n"
    case .fish: "set fish_greeting\nfunction fish_prompt; echo '> '; end\nalias rm='rm -i'\nalias head=false\n"
    }
  }

  /// The command before the one that asks; fish has one history for all shells.
  var lastCommand: String? {
    switch self {
    case .bash: "history 2 | command head -n 1"
    case .zsh: "fc -l -1"
    case .fish: nil
    }
  }

  /// A line that writes what a command writes to `~/written.PID` once it is done.
  func writing(_ command: String) -> String {
    let (begin, end, pid) = self == .fish ? ("begin", "end", "$fish_pid") : ("{", "}", "$$")
    return " \(begin) \(command); \(end) >~/part.\(pid); mv ~/part.\(pid) ~/written.\(pid)\r"
  }
}

/// A shell on a terminal of its own, and what it has beside it.
final class ShellProcess {
  let kind: Shell
  let process: ChildProcess
  /// Nil when it was closed.
  private var window: PseudoTerminal?
  private let home: String

  init(
    _ kind: Shell,
    _ options: [String],
    home: String,
    environment: [String: String?],
    directory: String
  ) throws {
    (self.kind, self.home) = (kind, home)
    let terminal = try PseudoTerminal()
    window = terminal
    process = try ChildProcess(
      [kind.rawValue] + options,
      environment: environment,
      output: .terminal(terminal),
      directory: directory
    )
  }

  var terminal: PseudoTerminal {
    get throws {
      guard let window else { throw TestFailure("the window was closed") }
      return window
    }
  }

  /// Types a command, and waits until it is done; what it has written.
  @discardableResult
  func run(_ command: String) throws -> String {
    let name = "\(home)/written.\(process.pid)"
    Files.remove(name)
    try awaitPrompt()
    try terminal.type(kind.writing(command))
    try Wait.until("the shell has done \(command)") {
      try terminal.drain()
      return Files.exists(name)
    }
    return try Files.text(name)
  }

  func awaitPrompt() throws {
    try Wait.until("the shell takes keys") {
      try terminal.drain()
      return try terminal.takesKeys
    }
  }

  /// Waits until the shell does nothing but wait for keys.
  func awaitSleepAtPrompt() throws {
    try awaitPrompt()
    try Wait.until("the shell sleeps") {
      try terminal.drain()
      return try Files.text("/proc/\(process.pid)/stat").contains(") S ")
    }
  }

  /// Types a line, without waiting for what comes of it.
  func type(_ line: String) throws {
    try awaitPrompt()
    try terminal.type(line)
  }

  /// Begins a program that runs until somebody ends it.
  func beginProgram() throws {
    try type("sleep 1000\r")
    let program = ["pgrep", "-P", "\(process.pid)", "-x", "sleep"]
    try Wait.until("a program runs") { try ChildProcess.run(program).end == .exit(0) }
  }

  /// Kills what keeps its place, and waits for its end: until then it seems to be at work.
  func killKeeper() throws {
    let found = try ChildProcess.run(["pgrep", "-o", "-s", "\(process.pid)", "-f", "shell-keeper"])
    let pid = try #require(Int32(found.output.dropLast()), "\(found)")
    let keeper = try FileDescriptor.process(pid)
    Glibc.kill(pid, SIGKILL)
    guard keeper.waitUntilReadable(Deadline()) else { throw TestFailure("the keeper goes on running") }
  }

  /// The kernel tells the shell and the program that runs in it.
  func closeWindow() { window = nil }

  /// Waits until all of it has ended, also what keeps the shell's place: it has stored all that it was told.
  func waitForEnd() throws {
    try Wait.until("the shell has ended") {
      try window?.drain()
      return !process.isRunning
    }
    _ = try process.waitForEnd()
    try Wait.until("the session has ended") {
      try ChildProcess.run(["pgrep", "-r", "D,R,S,T", "-s", "\(process.pid)"]).end == .exit(1)
    }
  }

  /// Kills everything of its session: also what keeps its place.
  func kill() throws {
    // Also what was started meanwhile; a zombie keeps nothing.
    try Wait.until("the session has ended") {
      try ChildProcess.run(["pkill", "-KILL", "-r", "D,R,S,T", "-s", "\(process.pid)"]).end == .exit(1)
    }
    _ = try process.waitForEnd()
  }
}
