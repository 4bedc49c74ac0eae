// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The smallest useful program, as the README shows it: `TidyTests` holds the text, this what it does.
@Suite struct SmallestProgramTests {
  private static let program = "\(Products.directory)/smallest"

  /// Starts it as a person does, at a terminal.
  private static func start() throws -> (ChildProcess, PseudoTerminal) {
    let terminal = try PseudoTerminal()
    let environment = ["RESTORATIOND_SOCKET": broker.socket]
    return (try ChildProcess([program], environment: environment, output: .terminal(terminal)), terminal)
  }

  @Test(.broker) func whatWasTypedIsThereAfterAKill() throws {
    let (first, terminal) = try Self.start()
    _ = try terminal.shown(until: "saved: nothing")
    try terminal.type("a first one\nGrüße\n")
    try Wait.until("the line is stored") {
      try broker.states(of: "org.example.Note")[["Note"]] == ["value": "Grüße"]
    }
    try first.kill()
    let (second, other) = try Self.start()
    _ = try other.shown(until: "saved: Grüße")
    try second.kill()
  }
}
