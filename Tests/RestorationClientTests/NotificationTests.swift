// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// Notifications of the broker.
@Suite(.timeLimit(.minutes(2))) struct NotificationTests {
  private static func send(_ notification: some RestorationNotification, on connection: Connection) async throws {
    let method = type(of: notification).method.rawValue
    let parameters = notification.text
    try await connection.onLoop { $0.notify(method: method, parameters: parameters) }
  }

  @Test(.connection) func notificationsArriveInOrderAndEndWithTheConnection() async throws {
    let connection = try await fake.events.opened()
    try await Self.send(PathChanged(object: 7, path: ["Main", "Editor"]), on: connection)
    try await Self.send(PathChanged(object: 8, path: nil), on: connection)
    let owner = ObjectOwner(process: "new", pid: 12)
    let replaced = RegistrationReplaced().with {
      $0.object = 7
      $0.path = ["Main"]
      $0.by = owner
    }
    try await Self.send(replaced, on: connection)
    try await connection.onLoop { $0.close(afterOutput: true) }
    var received: [BrokerNotification] = []
    for await notification in broker.notifications { received.append(notification) }
    #expect(
      received == [
        .pathChanged(PathChanged(object: 7, path: ["Main", "Editor"])),
        .pathChanged(PathChanged(object: 8, path: nil)),
        .registrationReplaced(replaced),
      ]
    )
  }

  @Test(.connection) func aReaderThatWaitsIsWoken() async throws {
    let notifications = broker.notifications
    async let first = notifications.first { _ in true }
    try await Self.send(PathChanged(object: 1, path: ["A"]), on: try await fake.events.opened())
    #expect(await first == .pathChanged(PathChanged(object: 1, path: ["A"])))
  }

  @Test(.connection) func whatIsNotKnownIsPassedOver() async throws {
    let connection = try await fake.events.opened()
    try await connection.onLoop {
      $0.notify(method: "somethingNew", parameters: nil)
      $0.notify(method: "pathChanged", parameters: JSONText(["object": "seven"]))
      $0.notify(method: "pathChanged", parameters: JSONText(["object": 7, "path": ["A"], "more": true]))
      $0.close(afterOutput: true)
    }
    var received: [BrokerNotification] = []
    for await notification in broker.notifications { received.append(notification) }
    #expect(received == [.pathChanged(PathChanged(object: 7, path: ["A"]))])
  }

  @Test(.connection) func whatNobodyTakesIsCounted() async throws {
    fake.answers { _ in .text("{}") }
    let connection = try await fake.events.opened()
    try await connection.onLoop { connection in
      for object in 1...2_000 {
        connection.notify(
          method: "pathChanged",
          parameters: JSONText(["object": .integer(Int64(object)), "path": nil])
        )
      }
    }
    // Its answer comes after the notifications.
    try await broker.call(Ping())
    try await connection.onLoop { $0.close(afterOutput: true) }
    var received: [BrokerNotification] = []
    for await notification in broker.notifications { received.append(notification) }
    #expect(received.count == 1_025)
    #expect(received.first == .pathChanged(PathChanged(object: 1, path: nil)))
    #expect(received.last == .missed(count: 976))
  }

  @Test(.connection) func aReaderThatIsCancelledStopsAndLosesNothing() async throws {
    fake.answers { _ in .text("{}") }
    let reader = Task {
      var count = 0
      for await _ in broker.notifications { count += 1 }
      return count
    }
    try await broker.call(Ping())
    reader.cancel()
    #expect(await reader.value == 0)
    try await Self.send(PathChanged(object: 1, path: ["A"]), on: try await fake.events.opened())
    #expect(await broker.notifications.first { _ in true } == .pathChanged(PathChanged(object: 1, path: ["A"])))
  }
}
