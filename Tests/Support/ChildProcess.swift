// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Spawning

/// A process started by a test: its standard input and output as sockets, its standard error in a file.
package final class ChildProcess {
  /// How a process ended.
  package enum End: Hashable, CustomStringConvertible {
    case exit(Int32)
    case signal(Int32)

    package var description: String {
      switch self {
      case .exit(let status): "exit status \(status)"
      case .signal(let number): "signal \(number)"
      }
    }
  }

  package enum Output {
    /// Read by the test.
    case piped
    case file(String)
    /// A terminal, which is its input and its standard error as well.
    case terminal(PseudoTerminal)
  }

  package let pid: Int32
  package let name: String
  private let descriptor: FileDescriptor
  private var input: FileDescriptor?
  package let output: LineReader?
  private var end: End?

  /// Starts a program, found by `PATH` unless it has a slash.
  ///
  /// - Parameters:
  ///   - environment: variables on top of this process's own; `nil` removes one.
  ///   - lineEnd: what a line of its output ends with.
  package init(
    _ arguments: [String],
    environment: [String: String?] = [:],
    output: Output = .piped,
    errors: String = "/dev/null",
    directory: String? = nil,
    lineEnd: UInt8 = UInt8(ascii: "\n")
  ) throws {
    name = arguments.first ?? ""
    let (ours, theirs) = try FileDescriptor.socketPair()
    let log = try FileDescriptor.appending(to: errors)
    let sink: FileDescriptor
    var terminalPath: String?
    switch output {
    case .piped:
      let (reading, writing) = try FileDescriptor.socketPair()
      sink = writing
      self.output = LineReader(reading, lineEnd: lineEnd)
    case .file(let path):
      sink = try FileDescriptor.appending(to: path)
      self.output = nil
    case .terminal(let terminal):
      sink = log
      self.output = nil
      terminalPath = terminal.path
    }
    let command = directory.map { ["/usr/bin/env", "-C", $0] + arguments } ?? arguments
    let variables = Self.environment(environment)
    pid = try spawn(command, variables: variables, leadsSession: terminalPath != nil) { actions in
      if let terminalPath {
        posix_spawn_file_actions_addopen(&actions, 0, terminalPath, O_RDWR, 0)
        for number: Int32 in 1...2 { posix_spawn_file_actions_adddup2(&actions, 0, number) }
      } else {
        for (number, descriptor) in [theirs, sink, log].enumerated() {
          posix_spawn_file_actions_adddup2(&actions, descriptor.number, Int32(number))
        }
      }
    }
    descriptor = try FileDescriptor.process(pid)
    input = ours
  }

  deinit {
    if end == nil {
      Glibc.kill(pid, SIGKILL)
      var status: Int32 = 0
      waitpid(pid, &status, 0)
    }
  }

  package var isRunning: Bool { end == nil && !descriptor.waitUntilReadable(Deadline(.zero)) }

  /// Writes to the standard input.
  package func write(_ text: String) throws {
    guard let input else { throw TestFailure("the input of \(name) is closed") }
    try input.write(Array(text.utf8))
  }

  package func closeInput() { input = nil }

  package func send(signal: Int32) { if end == nil { Glibc.kill(pid, signal) } }

  /// Kills the process at once and waits until it is gone.
  @discardableResult
  package func kill() throws -> End {
    send(signal: SIGKILL)
    return try waitForEnd()
  }

  /// How it has ended, or in which state it is and where the kernel has it wait: for failures.
  package var condition: String {
    if !isRunning, let end = try? waitForEnd() { return "\(end)" }
    let facts = ["stat", "wchan", "syscall"].map { fact in
      let text = (try? Files.text("/proc/\(pid)/\(fact)")) ?? "unreadable"
      return "\(fact): \(text.prefix(80).prefix { $0 != "\n" })"
    }
    return "running; \(facts.joined(separator: "; "))"
  }

  /// Waits until the process has ended.
  @discardableResult
  package func waitForEnd(_ deadline: Deadline = Deadline()) throws -> End {
    if let end { return end }
    guard descriptor.waitUntilReadable(deadline) else { throw TestFailure("\(name) (\(pid)) goes on running") }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    let signal = status & 0x7f
    let end: End = signal == 0 ? .exit((status >> 8) & 0xff) : .signal(signal)
    self.end = end
    return end
  }

  /// Runs a program to its end and takes all its output.
  package static func run(
    _ arguments: [String],
    input: String = "",
    environment: [String: String?] = [:],
    directory: String? = nil,
    _ deadline: Deadline = Deadline()
  ) throws -> (end: End, output: String, errors: String) {
    let scratch = try ScratchDirectory()
    defer { scratch.remove() }
    let errors = scratch.file("errors")
    let child = try ChildProcess(arguments, environment: environment, errors: errors, directory: directory)
    if !input.isEmpty { try child.write(input) }
    child.closeInput()
    let output = try child.output?.rest(deadline) ?? ""
    return (try child.waitForEnd(deadline), output, try Files.text(errors))
  }

  private static func environment(_ changes: [String: String?]) -> [String] {
    let own = (try? Files.read("/proc/self/environ")) ?? []
    var variables = own.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    variables.removeAll { variable in changes.keys.contains(String(variable.prefix { $0 != "=" })) }
    for (name, value) in changes { if let value { variables.append("\(name)=\(value)") } }
    return variables
  }
}
