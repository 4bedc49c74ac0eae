// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The save round at the end of the service (R33), and a broker that hangs.
@Suite(.userManager, .enabled(if: UserManager.isUsable, UserManager.condition))
struct ServiceStopTests {
  private static let application = "org.example.Notes"

  private static func begin() throws -> ServingClient {
    let client = try manager.serving()
    try client.tell("open", ["application": .string(application), "process": "editor"])
    try client.tell("register", ["objects": [["identifier": "A", "state": ["n": 1]]]])
    return client
  }

  private static func generations() throws -> [JSONValue] {
    let reader = try manager.client(.python)
    let parameters: JSONValue = ["application": .string(application)]
    return try reader.call("listGenerations", parameters)["generations"]?.array ?? []
  }

  private static func state() throws -> JSONValue? {
    let reader = try manager.client(.python)
    return try reader.decode("A", of: application)["state"]?["n"]
  }

  @Test func aStopSavesTheStatesOfWhoeverServesThem() throws {
    let client = try Self.begin()
    try client.tell("push")
    try client.tell("set", ["name": "A", "state": ["n": 2]])
    try manager.systemctl("stop", UserManager.service)
    #expect(try manager.property("Result") == "success")
    #expect(try client.log().contains("encode A"))
    #expect(try manager.property("ActiveState") == "inactive")
    #expect(try Self.generations().contains { $0["kind"] == "round" })
    #expect(try Self.state() == 2)
  }

  /// The broker asks the manager for more time while a client takes longer than the unit's own limit.
  @Test func aStopWaitsForASlowClientBeyondTheUnitsTime() throws {
    try manager.dropIn("short", service: "TimeoutStopSec=2")
    try manager.write(
      #"{"limits": {"stopRoundMilliseconds": 20000}}"#,
      to: "\(manager.home)/.config/restorationd/config.json"
    )
    let client = try Self.begin()
    try client.tell("push")
    try client.tell("set", ["name": "A", "state": ["n": 3]])
    try client.tell("behave", ["method": "encodeRestorableStateWithCoder", "as": "hold"])
    let pid = try manager.mainPID
    try manager.systemctl("stop", "--no-block", UserManager.service)
    try client.awaits("encode")
    Wait.moment(.milliseconds(3_500))
    #expect(try manager.mainPID == pid)
    #expect(try manager.property("ActiveState") == "deactivating")
    #expect(try client.tell("release")["released"] == 1)
    try manager.waitUntil("inactive")
    #expect(try manager.property("Result") == "success")
    #expect(try Self.state() == 3)
  }

  /// One thread stands still and all others run: the watchdog hears of it.
  @Test(arguments: ["NIO-ELT", "archive-writer"])
  func aBrokerWhoseThreadHangsIsKilledAndStartedAgain(_ thread: String) throws {
    try manager.dropIn("watchdog", service: "WatchdogSec=1", "TimeoutAbortSec=1")
    let client = try manager.client(.python)
    try client.initialize(Self.application)
    try client.encode("A", state: ["n": 1])
    let pid = try manager.mainPID
    // Alive for longer than the watchdog's time.
    Wait.moment(.milliseconds(2_500))
    #expect(try manager.mainPID == pid)
    let freezer = try manager.freeze(pid, thread)
    try manager.waitForSuccessor(of: pid)
    try freezer.waitForEnd()
    #expect(try manager.property("NRestarts") == "1")
    #expect(try Self.state() == 1)
  }
}

extension UserManager {
  /// Stops one thread of a process permanently.
  func freeze(_ pid: Int32, _ thread: String) throws -> ChildProcess {
    let program = "\(try added("Tests/Clients"))/manager/freeze.py"
    let freezer = try startAsRoot(["python3", "-u", program, "\(pid)", thread])
    guard try freezer.output?.next() == "frozen" else { throw TestFailure("\(thread) is not frozen") }
    return freezer
  }
}
