// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// A shell on a terminal of its own, and what it has beside it.
final class ShellProcess {
  let process: ChildProcess
  /// Nil when it was closed.
  private var window: PseudoTerminal?
  private let home: String

  init(_ options: [String], home: String, environment: [String: String?], directory: String) throws {
    self.home = home
    let terminal = try PseudoTerminal()
    window = terminal
    process = try ChildProcess(
      ["bash"] + options,
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
    try terminal.type(" { \(command); } >~/part.$$; mv ~/part.$$ ~/written.$$\r")
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
    let found = try ChildProcess.run(["pgrep", "-P", "\(process.pid)", "-f", "shell-keeper"])
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
