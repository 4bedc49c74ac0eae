// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Subscriptions at the real broker.
@Suite struct SubscriptionTests {
  private static func subscribe(_ client: WireClient, _ parameters: JSONValue = .null) throws {
    #expect(try client.call("subscribe", parameters)["subscription"] != nil)
  }

  /// Events up to and including the first of this name.
  private static func events(_ client: WireClient, to name: String) throws -> [JSONValue] {
    var events: [JSONValue] = []
    repeat { events.append(try client.notification("event")) } while events.last?["name"] != .string(name)
    return events
  }

  @Test(.broker) func subscribersHearOfTheLivesOfSeveralProcesses() throws {
    let all = try broker.connect()
    let one = try broker.connect()
    try Self.subscribe(all)
    try Self.subscribe(one, ["application": "a", "events": ["sessionEnded", "stateEncoded"]])
    for (application, kind) in [("a", ProcessClient.Kind.python), ("b", .swift)] {
      let client = try broker.client(kind)
      try client.initialize(application, ["process": "main"])
      try client.encode("A", state: ["n": 1])
      try client.kill()
    }
    var ended: [JSONValue] = []
    while ended.count < 2 { ended += try Self.events(all, to: "sessionEnded").suffix(1) }
    #expect(ended.map { $0["application"] } == ["a", "b"])
    #expect(ended.allSatisfy { $0["ending"] == "crashed" && $0["process"] == "main" })
    #expect(try Self.events(one, to: "sessionEnded").map { $0["name"] } == ["stateEncoded", "sessionEnded"])
    #expect(try one.exchange("").isEmpty)
  }

  @Test(.broker) func anEventIsOnDiskWhenItComes() throws {
    for round in 1...5 {
      let monitor = try broker.connect()
      try Self.subscribe(monitor, ["events": ["stateEncoded"]])
      let writer = try broker.connect()
      for number in 1...50 {
        let state: JSONValue = ["n": .integer(Int64(number + round))]
        try writer.notify("encodeRestorableState", ["application": "a", "object": .path("A"), "state": state])
      }
      let event = try monitor.notification("event")
      try broker.crashAndRestart()
      let archive = try broker.connect().call("describeApplication", ["application": "a"])
      #expect(archive["sequence"]?.integer ?? 0 >= event["sequence"]?.integer ?? .max)
    }
  }

  @Test(.broker(limits: ["openArchivesMax": 1])) func theEventsOfAnArchiveThatClosesComeBeforeItsClose() throws {
    let monitor = try broker.connect()
    try Self.subscribe(monitor)
    let writer = try broker.connect()
    try (1...40).forEach { try Self.notify(writer, of: $0 % 2 == 1 ? "a" : "b", $0) }
    var events: [JSONValue] = []
    func count(_ name: String) -> Int { events.count { $0["name"] == .string(name) } }
    while count("stateEncoded") < 40 || count("archiveClosed") == 0 { events.append(try monitor.notification("event")) }
    for application in ["a", "b"] {
      // Each archive has a lane of its own, so only the events of one application have an order.
      let names = events.filter { $0["application"] == .string(application) }.compactMap { $0["name"]?.string }
      #expect(names.first == "archiveOpened")
      for (name, next) in zip(names, names.dropFirst()) {
        switch name {
        case "archiveOpened": #expect(next == "stateEncoded")
        case "stateEncoded": #expect(["stateEncoded", "archiveClosed"].contains(next))
        default: #expect((name, next) == ("archiveClosed", "archiveOpened"))
        }
      }
    }
  }

  private static func notify(_ writer: WireClient, of application: String, _ number: Int) throws {
    let state: JSONValue = ["n": .integer(Int64(number))]
    let parameters: JSONValue = ["application": .string(application), "object": .path("A"), "state": state]
    try writer.notify("encodeRestorableState", parameters)
  }

  /// At once by the core; later, because the archive is read; and of a notification nothing is answered.
  @Test(.broker) func statisticsCountErrorsThatAreAnswered() throws {
    let client = try broker.connect()
    func errors() throws -> Int64? { try client.call("statistics")["counters"]?["errors"]?.integer }
    try Self.notify(client, of: "a", 1)
    #expect(try errors() == 0)
    try client.notify("rollBack", ["application": "a", "generation": 99])
    for _ in 1...2 {
      #expect(throws: CallError.self) { try client.call("rollBack", ["application": "a", "generation": 99]) }
    }
    #expect(throws: CallError.self) { try client.call("unknown") }
    #expect(try errors() == 3)
  }

  @Test(.broker) func aSubscriptionEndsWithItsConnection() throws {
    let observer = try broker.connect()
    func subscriptions() throws -> JSONValue? { try observer.call("statistics")["gauges"]?["subscriptions"] }
    do {
      let clients = try (1...5).map { _ in try broker.connect() }
      for client in clients { try Self.subscribe(client) }
      #expect(try subscriptions() == 5)
      withExtendedLifetime(clients) {}
    }
    try Wait.until("the broker has noticed") { try subscriptions() == 0 }
    try observer.encode("A", state: [:], of: "a")
  }

  // MARK: Overflow

  /// Reads events until nothing is left: how many came, how many were told lost, and whether the order was right.
  private static func drain(_ client: WireClient, to total: Int64) throws -> (received: Int64, lost: Int64) {
    var (received, lost, last) = (Int64(0), Int64(0), Int64(0))
    while received + lost < total {
      let event = try client.notification("event")
      if event["name"] == "eventsLost" {
        lost += event["lost"]?.integer ?? 0
      } else {
        received += 1
        let sequence = event["sequence"]?.integer ?? 0
        #expect(sequence > last)
        last = sequence
      }
    }
    return (received, lost)
  }

  @Test(.broker(alone: true)) func aSubscriberThatDoesNotReadIsNeitherCutNorLetsTheBrokerGrow() throws {
    let (stopped, quick) = (try broker.connect(), try broker.connect())
    try Self.subscribe(stopped, ["events": ["stateEncoded"]])
    let writer = try broker.session("a")
    let name = String(repeating: "x", count: 200)
    func write(_ count: Int, times: Int) throws {
      let frame = WireClient.message("encodeRestorableState", ["object": .path(name), "state": ["n": 1]], id: nil)
      let frames = String(repeating: frame, count: count)
      for _ in 1...times {
        try writer.send(frames)
        try writer.call("describeApplication")
      }
    }
    try write(500, times: 4)
    let before = try broker.status.residentKiB
    let total = 40_000 + 2_000
    try write(500, times: 80)
    let growth = try broker.status.residentKiB - before
    #expect(growth < 16 << 10, "\(growth) KiB more")
    let statistics = try quick.call("statistics")["counters"]
    let left = try #require(statistics?["eventsLost"]?.integer)
    #expect(left > Int64(total) / 2)
    #expect((statistics?["events"]?.integer ?? 0) + left == Int64(total))
    let (received, lost) = try Self.drain(stopped, to: Int64(total))
    #expect(received + lost == Int64(total))
    #expect(lost == left)
    // Once it reads again, nothing is missing.
    try write(10, times: 1)
    #expect(try Self.drain(stopped, to: 10).lost == 0)
  }

  @Test(.broker(limits: ["eventBytesMax": 4_096])) func lossesAreCountedForEachSubscriptionAndToldBeforeItEnds() throws
  {
    let stopped = try broker.connect()
    try Self.subscribe(stopped, ["events": ["stateEncoded"]])
    try Self.subscribe(stopped)
    let writer = try broker.connect()
    let observer = try broker.connect()
    var total: Int64 = 0
    while try observer.call("statistics")["counters"]?["eventsLost"]?.integer ?? 0 < 100 {
      for _ in 1...50 {
        try writer.request("encodeRestorableState", ["application": "a", "object": .path("A"), "state": [:]])
      }
      for _ in 1...50 { _ = try writer.receiveMessage() }
      total += 50
    }
    // All events come before the answer.
    try stopped.call("unsubscribe", ["subscription": 1])
    var sum: Int64 = 0
    for event in stopped.takeNotifications("event") where event["subscription"] == 1 {
      sum += event["lost"]?.integer ?? 1
    }
    #expect(sum == total)
  }
}
