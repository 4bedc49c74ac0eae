// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What only the library in Python has.
@Suite(.timeLimit(.minutes(5))) struct ClientLibraryPythonTests {
  private static let kinds: [LibraryClient.Library] = [.python, .asyncio]

  @Test("A state that is pushed without waiting is stored, also by a new broker", arguments: kinds)
  func savesLater(_ library: LibraryClient.Library) async throws {
    try await withBroker { broker in
      let client = try LibraryClient(library, broker)
      try client.open()
      try client.register("Main")
      try client.register("Editor")
      try client.tell("later", ["name": "Editor", "state": ["cursor": 1]])
      #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 1])
      try broker.kill()
      Files.removeContents(of: broker.archives)
      try broker.start()
      try client.tell("await", ["what": "reconnected", "count": 1])
      try client.tell("later", ["name": "Editor", "state": ["cursor": 2]])
      #expect(try client.tell("decode", ["name": "Editor"])["state"] == ["cursor": 2])
      try client.end()
    }
  }
}
