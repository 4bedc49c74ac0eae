// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// A process of an application that the broker calls, in a language of the test's choice.
///
/// Its commands are at the top of `Tests/Clients/serving.py`; all clients accept the same lines.
package final class ServingClient: CommandedClient {
  package enum Language: String, CaseIterable, Sendable {
    /// `serving.py`: only Python's standard library.
    case python
    /// `serving.pl`: modules that come with Perl.
    case perl
    /// `restoration-test-client SOCKET serving`: the library RestorationClient.
    case swift
  }

  package convenience init(_ language: Language, socket: String, errors: String) throws {
    try self.init(language.rawValue, Self.command(language, socket: socket), errors: errors)
  }

  /// The program and its arguments.
  package static func command(_ language: Language, socket: String) -> [String] {
    let clients = "\(Products.repository)/Tests/Clients"
    return switch language {
    case .python: ["python3", "-u", "\(clients)/serving.py", socket]
    case .perl: ["perl", "\(clients)/serving.pl", socket]
    case .swift: [Products.swiftClient, socket, "serving"]
    }
  }

  /// Events in it since the last call: `["encode Main/Editor", "saved 3"]`.
  package func log() throws -> [String] { try tell("log")["log"]?.logLines ?? [] }

  /// Waits until `count` of these events have happened in it since its start.
  package func awaits(_ what: String, _ count: Int64 = 1) throws {
    try tell("await", ["what": .string(what), "count": .integer(count)])
  }
}
