// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The restorers of `Protocol/examples/terminal`.
enum TerminalExample {
  static let folder = "\(Products.repository)/Protocol/examples/terminal"

  /// Whether what the examples need is installed; in CI it must be.
  static let isInstalled: Bool = {
    guard !Environment.isCI else { return true }
    let commands = [["jq", "--version"], ["tmux", "-V"]] + Shell.allCases.map { [$0.rawValue, "--version"] }
    return commands.allSatisfy { (try? ChildProcess.run($0))?.end == .exit(0) }
  }()

  static let requirement = "needs bash, zsh, fish, jq and tmux; Tests/run.sh installs them"
}

/// The home directory of a user whose shells and tmux come back, beside the test's broker.
struct TerminalHome: CustomStringConvertible {
  var description: String { broker.directory.file("home") }
  /// The user's shell.
  let kind: Shell

  init(_ kind: Shell = .bash) { self.kind = kind }

  /// Of the user's server of tmux.
  var socket: String { broker.directory.file("t") }

  /// Where `tmux.py` stores what the server of a socket has.
  var tmuxObject: String {
    get throws {
      let readable = socket.split { !$0.isLetter && !$0.isNumber }.joined(separator: "-")
      return try "\(readable)-\(ChildProcess.run(["sha256sum"], input: socket).output.prefix(16))"
    }
  }

  /// Where former builds of `tmux.py` stored what the server of a socket has.
  var formerTmuxObject: String { socket.replacing("/", with: "_") }

  /// Writes the settings.
  ///
  /// - Parameters:
  ///   - before: what the user has in the settings of the shell before the restorer is read.
  ///   - after: what comes behind it.
  ///   - command: what runs in panes of tmux.
  func prepare(before: String = "", after: String = "", command: String = "bash") throws {
    if !Files.exists("\(self)") { try make(".config", ".config/fish") }
    let source = "source \(TerminalExample.folder)/shell.\(kind)"
    try write("\(kind.habits)\(before)\n\(source)\n\(after)\n", to: kind.settings)
    try write("set -g default-command '\(command)'\nrun-shell '\(TerminalExample.folder)/tmux.py'\n", to: ".tmux.conf")
  }

  /// Makes the directory, and these folders in it.
  func make(_ folders: String...) throws {
    // Where they are missing, fish reads all manual pages in the background, for half a minute.
    let completions = kind == .fish ? ".local/share/fish/generated_completions".split(separator: "/") : []
    let parts = completions.indices.map { completions[...$0].joined(separator: "/") }
    for folder in ["home"] + (folders + parts).map({ "home/\($0)" }) { _ = try broker.directory.makeDirectory(folder) }
  }

  func write(_ text: String, to name: String) throws { try Files.write(Array(text.utf8), to: "\(self)/\(name)") }

  /// The user's, without anything from the person who runs the tests.
  var environment: [String: String?] {
    let tools = Products.control.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return ControlTool.environment([
      "HOME": "\(self)", "PATH": "\(tools.joined(separator: "/")):/usr/bin:/bin", "TMUX": nil, "TMUX_PANE": nil,
      "RESTORATION_WAIT": "600", "RESTORATION_SHELL": nil, "PROMPT_COMMAND": nil, "HISTFILE": nil, "ENV": nil,
      "INPUTRC": "/dev/null", "SHELL": "/bin/bash", "HISTCONTROL": nil, "HISTIGNORE": nil, "HISTTIMEFORMAT": nil,
      "HISTSIZE": nil, "HISTFILESIZE": nil, "ZDOTDIR": nil, "XDG_CONFIG_HOME": nil, "XDG_DATA_HOME": nil,
    ])
  }

  func shell(
    _ variables: [String: String?] = [:],
    _ options: [String] = ["-i"],
    directory: String? = nil
  ) throws -> ShellProcess {
    try ShellProcess(
      kind,
      options,
      home: "\(self)",
      environment: environment.merging(variables) { $1 },
      directory: directory ?? "\(self)"
    )
  }

  /// - Parameters:
  ///   - socket: of another server than the user's first one.
  ///   - wait: how long the restorer waits for the broker, in seconds.
  @discardableResult
  func tmux(
    _ words: String...,
    socket: String? = nil,
    wait: String = "600",
    variables: [String: String?] = [:]
  ) throws -> String {
    let command = ["tmux", "-u", "-S", socket ?? self.socket, "-f", "\(self)/.tmux.conf"] + words
    let environment = self.environment.merging(["RESTORATION_WAIT": wait]) { $1 }.merging(variables) { $1 }
    let done = try ChildProcess.run(command, environment: environment, directory: "\(self)")
    guard done.end == .exit(0) else { throw TestFailure("tmux \(words): \(done.end), \(done.output)\(done.errors)") }
    return done.output
  }

  /// Ends a server as `kill-server` does, or kills it, and waits until it is gone.
  func endTmux(socket: String? = nil, byKill: Bool = false) throws {
    let pid = try #require(Int32(try tmux("display-message", "-p", "#{pid}", socket: socket).dropLast()))
    let server = try FileDescriptor.process(pid)
    if byKill { Glibc.kill(pid, SIGKILL) } else { try tmux("kill-server", socket: socket) }
    // Until then it may have its socket, and a client that wants to begin the next server reaches this one.
    guard server.waitUntilReadable(Deadline()) else { throw TestFailure("the server goes on running") }
  }

  /// What is saved of all servers of tmux, by their paths.
  func savedOfTmux() throws -> [String: JSONValue] {
    let document = try ControlTool.run(["export", "org.tmux.tmux"])
    guard document.end == .exit(0) else { return [:] }
    let objects = try document.json["objects"]?.array ?? []
    return Dictionary(
      uniqueKeysWithValues: objects.compactMap { object in
        guard let state = object["state"] else { return nil }
        return ((object["path"]?.array ?? []).compactMap(\.string).joined(separator: "/"), state)
      }
    )
  }

  /// The names of all sessions that are saved of tmux.
  func savedSessions() throws -> [String] {
    try savedOfTmux().values.flatMap { state in
      (state["sessions"]?.array ?? []).compactMap { $0["name"]?.string }
    }.sorted()
  }

  /// When each object of tmux was stored.
  func writtenOfTmux() throws -> [String: String] {
    let objects = try ControlTool.run(["export", "org.tmux.tmux"], status: 0).json["objects"]?.array ?? []
    return Dictionary(
      uniqueKeysWithValues: objects.compactMap { object in
        guard let written = object["writer"]?["written"]?.string else { return nil }
        return ((object["path"]?.array ?? []).compactMap(\.string).joined(separator: "/"), written)
      }
    )
  }

  /// What `tmux.py` runs as, for tmux of this test.
  func restorers() -> [Int32] {
    Files.list("/proc").compactMap { Int32($0) }.filter { pid in
      guard let command = try? Files.text("/proc/\(pid)/cmdline"), command.contains("/tmux.py\0"),
        let variables = try? Files.text("/proc/\(pid)/environ")
      else { return false }
      return variables.split(separator: "\0").contains("HOME=\(self)")
    }
  }

  func killRestorer() throws {
    try Wait.until("the restorer is there") { !restorers().isEmpty }
    // One that makes way for its child is gone itself. Until it has ended, one keeps the next one away.
    var killed: [Int32: FileDescriptor] = [:]
    try Wait.until("no restorer is left") {
      for pid in restorers() {
        killed[pid] = try? FileDescriptor.process(pid)
        Glibc.kill(pid, SIGKILL)
      }
      return restorers().isEmpty && killed.values.allSatisfy { $0.waitUntilReadable(Deadline(.zero)) }
    }
  }

  /// What is saved of all panes of all servers. A window that is stored comes back once a list of sessions names it.
  func savedPanes() throws -> [JSONValue] {
    let saved = try savedOfTmux()
    return saved.flatMap { path, state in
      let sessions = state["sessions"]?.array ?? []
      let windows = sessions.flatMap { ($0["windows"]?.array ?? []) + ($0["absent"]?.array ?? []) }
      return windows.compactMap { $0.array?.last?.string }.flatMap { saved["\(path)/\($0)"]?["panes"]?.array ?? [] }
    }
  }

  func savedDirectories() throws -> Set<String> {
    try Set(savedPanes().compactMap { $0["directory"]?.string })
  }

  /// What is saved of shells, by their names.
  func namedShells() throws -> [String: JSONValue] {
    let tree = try ControlTool.run(["tree", "-j", kind.application])
    guard tree.end == .exit(0) else { return [:] }
    var shells: [String: JSONValue] = [:]
    for name in try tree.json["objects"]?.array?.compactMap({ $0["component"]?.string }) ?? [] {
      // One of them may be removed meanwhile.
      shells[name] = try? ControlTool.run(["get", kind.application, name]).json
    }
    return shells
  }

  func shells() throws -> [JSONValue] { try Array(namedShells().values) }

  func waitUntilSaved(_ wanted: Set<String>) throws {
    try Wait.until("\(wanted) are saved") { Set(try shells().compactMap { $0["directory"]?.string }) == wanted }
  }
}
