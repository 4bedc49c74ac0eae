// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// The messages to a user when there is no connection.
@Suite(.timeLimit(.minutes(2))) struct ConnectingTests {
  @Test(.scratch) func withoutABrokerTheErrorSaysWhatToStart() async throws {
    let path = directory.file("b.sock")
    let error = await thrownError { _ = try await BrokerConnection.connect(to: path) }
    let found = try #require(error as? BrokerConnectionError)
    #expect(found.code == .noBroker)
    #expect(found.isNotRunning)
    #expect(found.socketPath == path)
    #expect(
      "\(found)" == "no broker listens on \(path); "
        + "start it with `restorationd` or `systemctl --user start restorationd.socket`"
    )
  }

  @Test(.scratch) func aBrokerThatHasEndedIsNotRunningEither() async throws {
    let path = directory.file("b.sock")
    do {
      // Bound and closed without being unlinked, as by a killed broker.
      let socket = try ListeningSocket(binding: try SocketPath(path), backlog: 1)
      _ = socket.name
    }
    // A process that another test starts has the socket until its program begins.
    try Wait.until("nobody has the socket") { (try? FileDescriptor.connected(to: path)) == nil }
    let error = await thrownError { _ = try await BrokerConnection.connect(to: path) }
    let found = try #require(error as? BrokerConnectionError)
    #expect(found.code == .refused)
    #expect(found.isNotRunning)
    #expect(found.message.contains(path))
    #expect(found.message.contains("systemctl --user start restorationd.socket"))
    #expect(found.message.contains("systemctl --user reset-failed restorationd.service restorationd.socket"))
  }

  @Test(arguments: ["", "/tmp/", "/tmp/" + String(repeating: "x", count: 200)])
  func aPathThatCannotBeASocketIsRefused(_ path: String) async throws {
    let error = await thrownError { _ = try await BrokerConnection.connect(to: path) }
    let found = try #require(error as? BrokerConnectionError)
    #expect(found.code == .noSocketPath)
    #expect(!found.isNotRunning)
  }

  @Test(.connection) func theConnectionKnowsItsSocket() async throws {
    #expect(broker.socketPath == fake.path)
    #expect(broker.session == nil)
  }
}
