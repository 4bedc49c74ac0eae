// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Runs `restorationctl` as a person or a script does.
enum ControlTool {
  struct Result {
    let end: ChildProcess.End
    let output: String
    let errors: String

    /// The one JSON document that was printed.
    var json: JSONValue {
      get throws {
        do {
          return try JSONCodec.parse(Array(output.utf8))
        } catch {
          throw TestFailure("not one JSON document: \(output)")
        }
      }
    }

    /// The error document that was printed.
    var error: JSONValue { get throws { try json["error"] ?? .null } }
  }

  /// The tool's environment, without anything from the person who runs the tests.
  static func environment(_ more: [String: String?] = [:]) -> [String: String?] {
    var environment = broker.environment
    let own: [String: String?] = [
      "LC_ALL": "C.UTF-8", "LC_CTYPE": nil, "LANG": nil, "TZ": "UTC", "TERM": "xterm", "NO_COLOR": nil,
      "COLUMNS": nil, "PAGER": nil, "RESTORATIOND_PAGER": nil, "RESTORATIOND_SOCKET": broker.socket,
    ]
    environment.merge(own) { $1 }
    environment.merge(more) { $1 }
    return environment
  }

  /// Runs it to its end, its output in a pipe; the test may expect its exit status.
  @discardableResult
  static func run(
    _ arguments: [String],
    input: String = "",
    environment: [String: String?] = [:],
    _ deadline: Deadline = Deadline(),
    status: Int32? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Result {
    let (end, output, errors) = try ChildProcess.run(
      [Products.control] + arguments,
      input: input,
      environment: Self.environment(environment),
      deadline
    )
    if let status { #expect(end == .exit(status), "\(output)\(errors)", sourceLocation: sourceLocation) }
    return Result(end: end, output: output, errors: errors)
  }

  /// Runs it to its end on a terminal; each answer is typed when its question is asked.
  static func runOnTerminal(
    _ arguments: [String],
    answers: [(question: String, answer: String)] = [],
    columns: UInt16 = 80,
    environment: [String: String?] = [:],
    status: Int32? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Result {
    let terminal = try PseudoTerminal(columns: columns)
    let process = try ChildProcess(
      [Products.control] + arguments,
      environment: Self.environment(environment),
      output: .terminal(terminal)
    )
    var screen = ""
    for (question, answer) in answers {
      screen += try terminal.shown(until: question)
      try terminal.type(answer + "\n")
    }
    screen += try terminal.rest()
    let end = try process.waitForEnd()
    if let status { #expect(end == .exit(status), "\(screen)", sourceLocation: sourceLocation) }
    return Result(end: end, output: screen, errors: "")
  }

  /// Text in which what differs from run to run is replaced, and any number of spaces is two at most.
  static func golden(_ text: String, _ pids: [Int32] = []) -> String {
    var text = text
    for (index, pid) in pids.enumerated() { text.replace(String(pid), with: "<pid\(index + 1)>") }
    text.replace(/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} UTC/, with: "<time>")
    text.replace(/[0-9]+ (s|min)\b/, with: "<age>")
    text.replace(/\ {2,}/, with: "  ")
    return text
  }
}
