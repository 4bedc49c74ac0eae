// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Connections outlive the broker if the service manager keeps them. `RESTORATIOND_LONG=1` restarts 1,000 times and
/// kills 200 times.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition))
struct ServiceRestartTests {
  /// One of each kind, so that each is caught by every restart.
  private static let everyKind: [String: Int64] = [
    "pipelined": 2, "contentLength": 1, "keepAlive": 1, "halves": 1, "halvesOfLength": 1, "halvesOfHTTP": 1, "slow": 1,
    "idle": 1, "idleSession": 1, "idleSubscriber": 1, "serving": 1, "saver": 1, "poller": 1, "connector": 1,
    "subscriber": 1,
  ]

  private static func inode(_ path: String) throws -> String { try manager.output("stat", "-L", "-c", "%d:%i", path) }

  /// Looks that nothing is stored twice, once the broker has ended.
  private static func checkArchive() throws {
    try manager.systemctl("stop", UserManager.service)
    #expect(try WorkArchive.check(manager.archive(LoadClient.application)) > 0)
  }

  @Test(.userManager(alone: true)) func everyConnectionOutlivesRestartsUnderLoad() throws {
    let restarts = Environment.isLong ? 1_000 : 10
    try manager.allowManyRestarts()
    let load = try LoadClient(manager, Self.everyKind)
    var pid = try manager.mainPID
    let begin = Deadline.now
    for number in 1...restarts {
      try load.tell("before")
      try manager.systemctl("restart", UserManager.service)
      try load.tell("after")
      let successor = try manager.mainPID
      #expect(successor != pid && successor != 0, "restart \(number)")
      pid = successor
    }
    let milliseconds = Deadline.now - begin
    try load.tell("progress")
    let report = try load.finish(manager)
    #expect(report["reconnected"] == 0)
    #expect(try manager.property("Result") == "success")
    #expect(try manager.property("NRestarts") == "0")
    try Self.checkArchive()
    print(
      "\(restarts) restarts in \(milliseconds) ms under load: \(report["answers"]?.text ?? "?") answers, "
        + "\(report["connects"]?.text ?? "?") new connects, none refused, no connection lost"
    )
  }

  @Test(.userManager) func anUpgradeUnderLoadLosesNoConnection() throws {
    let load = try LoadClient(manager, Self.everyKind)
    for _ in 1...3 {
      let pid = try manager.mainPID
      let before = try Self.inode("/proc/\(pid)/exe")
      try manager.add(Products.broker, as: manager.broker)
      try load.tell("before")
      #expect(try manager.mainPID == pid)
      try manager.systemctl("restart", UserManager.service)
      try load.tell("after")
      let after = try Self.inode("/proc/\(try manager.mainPID)/exe")
      #expect(after != before)
      #expect(after == (try Self.inode(manager.broker)))
    }
    #expect(try load.finish(manager)["reconnected"] == 0)
    try Self.checkArchive()
  }

  @Test(.userManager) func idleConnectionsOutliveKillsUnderLoadAndTheBusyGoOn() throws {
    let kills: Int64 = Environment.isLong ? 200 : 8
    try manager.allowManyRestarts()
    let load = try LoadClient(
      manager,
      [
        "pipelined": 2, "contentLength": 2, "keepAlive": 1, "connector": 1, "idle": 2, "idleSession": 3,
        "idleSubscriber": 2,
      ]
    )
    let libraries = try (0..<3).map { index in
      let client = try manager.client(.swift)
      try client.tell(
        "work",
        [
          "application": "org.example.Work", "process": .string("p\(index)"), "parent": .string("P\(index)"),
          "objects": 6,
        ]
      )
      return client
    }
    var pid = try manager.mainPID
    for number in 1...kills {
      _ = try libraries[Int(number) % 3].tell("acknowledged", ["more": .integer(.random(in: 1...100))])
      try load.tell("kill")
      try manager.killBroker()
      pid = try manager.waitForSuccessor(of: pid)
      // In microseconds of the same clock.
      let ready = (Int64(try manager.property("ActiveEnterTimestampMonotonic")) ?? 0) / 1_000
      for client in libraries {
        let work = try client.tell("continued", ["after": .integer(ready)])
        #expect(work["acknowledged"]?.integer != nil, "kill \(number): \(work.text)")
      }
      try load.tell("after")
    }
    let report = try load.finish(manager)
    var total: Int64 = 0
    for client in libraries {
      let report = try client.tell("stop")
      #expect(report["faults"] == [])
      total += report["total"]?.integer ?? 0
      #expect(try client.tell("end")["confirmed"] == true)
    }
    #expect(try manager.property("NRestarts") == "\(kills)")
    try Self.checkArchive()
    #expect(try WorkArchive.check(manager.archive("org.example.Work"), repeats: true) > 0)
    print(
      "\(kills) kills under load of 16 clients: \(report["answers"]?.text ?? "?") answers, "
        + "\(report["reconnected"]?.text ?? "?") connections lost that were at work; library clients acknowledged "
        + "\(total) encodes"
    )
  }

  /// A broker that crashes again and again while it starts is when connections are needed most.
  @Test(.userManager) func idleConnectionsOutliveABrokerThatIsKilledAsSoonAsItStarts() throws {
    try manager.allowManyRestarts()
    let load = try LoadClient(manager, ["idle": 10, "idleSession": 10])
    try load.tell("after")
    try manager.waitUntilStored(connections: 20)
    for number in 1...(Environment.isLong ? 20 : 4) {
      // The first one that is killed has begun after an orderly end, or after another kill.
      if number % 2 == 0 { try manager.systemctl("restart", UserManager.service) }
      var pid = try manager.mainPID
      for _ in 1...3 {
        try manager.killBroker()
        try Wait.until("another broker begins") {
          let successor = try manager.mainPID
          defer { if successor != 0 { pid = successor } }
          return successor != 0 && successor != pid
        }
      }
      try load.tell("after")
    }
    #expect(try load.finish(manager)["reconnected"] == 0)
  }

  /// The watchdog kills a hanging broker; idle clients do not notice.
  @Test(.userManager) func idleConnectionsOutliveTheWatchdog() throws {
    try manager.dropIn("watchdog", service: "WatchdogSec=1", "TimeoutAbortSec=1")
    let load = try LoadClient(manager, ["idle": 1, "idleSession": 2, "idleSubscriber": 1])
    try load.tell("after")
    try manager.waitUntilStored(connections: 4)
    for thread in ["NIO-ELT", "archive-writer"] {
      let pid = try manager.mainPID
      let freezer = try manager.freeze(pid, thread)
      try manager.waitForSuccessor(of: pid)
      try freezer.waitForEnd()
      try load.tell("after")
    }
    #expect(try load.finish(manager)["reconnected"] == 0)
  }
}
