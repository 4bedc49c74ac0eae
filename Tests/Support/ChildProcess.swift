// SPDX-License-Identifier: Apache-2.0

internal import Glibc

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
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let (ours, theirs) = try FileDescriptor.socketPair()
    let log = try FileDescriptor.appending(to: errors)
    let sink: FileDescriptor
    var hasTerminal = false
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
      hasTerminal = true
      posix_spawn_file_actions_addopen(&actions, 0, terminal.path, O_RDWR, 0)
      for number: Int32 in 1...2 { posix_spawn_file_actions_adddup2(&actions, 0, number) }
    }
    if !hasTerminal {
      for (number, descriptor) in [theirs, sink, log].enumerated() {
        posix_spawn_file_actions_adddup2(&actions, descriptor.number, Int32(number))
      }
    }
    var child: pid_t = 0
    let variables = Self.environment(environment)
    let command = directory.map { ["/usr/bin/env", "-C", $0] + arguments } ?? arguments
    let result = Self.withCStrings(command) { arguments in
      Self.withCStrings(variables) { variables in
        // Signal masks of the test runner's threads must not reach the program.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // Who leads a session gets the terminal that it opens as its own.
        let flags = POSIX_SPAWN_SETSIGMASK | (hasTerminal ? Self.setSession : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        return posix_spawnp(&child, command[0], &actions, &attributes, arguments, variables)
      }
    }
    guard result == 0 else { throw TestFailure("cannot start \(name): \(String(cString: strerror(result)))") }
    pid = child
    descriptor = try FileDescriptor.process(child)
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

  /// POSIX_SPAWN_SETSID of spawn.h, which needs a feature macro.
  private static let setSession: Int32 = 0x80

  private static func environment(_ changes: [String: String?]) -> [String] {
    let own = (try? Files.read("/proc/self/environ")) ?? []
    var variables = own.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    variables.removeAll { variable in changes.keys.contains(String(variable.prefix { $0 != "=" })) }
    for (name, value) in changes { if let value { variables.append("\(name)=\(value)") } }
    return variables
  }

  private static func withCStrings<Result>(
    _ strings: [String],
    _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { preconditionFailure("an array with an element has a base address") }
      return body(base)
    }
  }
}
