// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The applications of several processes in `Protocol/examples` come back as they were after all of them were killed:
/// their data are in another order, and they are started in the reverse order.
@Suite struct SampleApplicationTests {
  /// Processes in the order in which they were started.
  private typealias Processes = [String: SampleProcess]

  @Test(.broker) func theInventoryComesBackInThreeProcesses() throws {
    let file = broker.directory.file("inventory")
    func start(_ roles: [String], _ items: [String]) throws -> Processes {
      try Files.write(Array(items.joined(separator: "\n").utf8), to: file)
      let program = "\(Products.repository)/Protocol/examples/inventory/inventory.py"
      return try SampleProcess.start(roles) { ["python3", "-uB", program, $0, file] }
    }
    let first = try start(["app", "items", "details"], ["k1 Lamp", "k2 Chair", "k3 Desk", "k4 Shelf"])
    try SampleProcess.expectReady(first)
    try first["items"]?.act("mark selected k3")
    try first["items"]?.act("mark topVisible k2")
    try first["details"]?.act("open k3")
    try first["details"]?.act("type Navigation/Detail Desk, oak")
    try first["details"]?.act("new")
    try first["details"]?.act("type Navigation/Sheet/Detail half typed")
    try first["app"]?.act("front Navigation/Sheet/Detail")
    try first["app"]?.act("save")
    for process in first.values { try process.kill() }

    // One item was deleted, the others are in another order.
    let second = try start(["details", "items", "app"], ["k4 Shelf", "k3 Desk", "k2 Chair"])
    try second["app"]?.expect("front Navigation/Sheet/Detail", "ready")
    try second["items"]?.expect("ready", "rows selected 1 Desk topVisible 2 Chair")
    let details = [
      "ready", "detail Navigation/Detail Desk, oak", "detail Navigation/Sheet ",
      "detail Navigation/Sheet/Detail half typed",
    ]
    try second["details"]?.expect(details)
    try second["app"]?.act("save")
    for process in second.values { try process.kill() }

    // The item on the stack was deleted: its controller does not come back, and nobody waits for it.
    let third = try start(["app", "details", "items"], ["k4 Shelf", "k2 Chair"])
    try third["app"]?.expect("front Navigation/Sheet/Detail", "ready")
    try third["details"]?.expect("ready", "detail Navigation/Sheet ", "detail Navigation/Sheet/Detail half typed")
    for process in third.values { try process.kill() }
  }

  @Test(.broker) func theTabBarComesBackInFourProcesses() throws {
    func start(_ roles: [String], _ rows: [String]) throws -> Processes {
      try SampleProcess.start(roles) { ["\(Products.directory)/tabs", $0] + ($0 == "table" ? rows : []) }
    }
    let first = try start(["bar", "first", "navigation", "table"], ["red", "green", "blue"])
    try SampleProcess.expectReady(first)
    try first["bar"]?.act("Navigation")
    try first["first"]?.act("some text")
    try first["navigation"]?.act("one")
    try first["navigation"]?.act("two")
    try first["table"]?.act("blue")
    #expect(try ControlTool.run(["save", "org.example.Tabs", "-j"], status: 0).json["stale"] == [])
    for process in first.values { try process.kill() }

    let second = try start(["table", "navigation", "first", "bar"], ["blue", "yellow", "green", "red"])
    try second["bar"]?.expect("selected Navigation", "ready")
    try second["first"]?.expect("ready", "text some text")
    try second["table"]?.expect("ready", "row 0 blue")
    try second["navigation"]?.expect("ready", "title ", "title one", "title two")
    for process in second.values { try process.kill() }
  }

  /// They are read as examples.
  @Test(arguments: ["inventory/inventory.py", "tabs/Tabs.swift"])
  func aSampleIsShortAndMostlyAboutOtherThings(_ name: String) throws {
    let lines = try Files.text("\(Products.repository)/Protocol/examples/\(name)").split(
      separator: "\n",
      omittingEmptySubsequences: false
    ).dropLast()
    #expect(lines.count <= 100)
    let restoring = lines.count { line in
      line.contains(/(?i)session|restor|encode|decode|registr|element|indexpath|identifier|finished/)
    }
    #expect(restoring * 2 <= lines.count, "\(restoring) of \(lines.count)")
  }
}

/// A process of a sample application.
private final class SampleProcess {
  private let role: String
  private let process: ChildProcess
  private let errors: String

  /// Starts one after the other, without waiting for any.
  static func start(_ roles: [String], _ command: (String) -> [String]) throws -> [String: SampleProcess] {
    var processes: [String: SampleProcess] = [:]
    for role in roles { processes[role] = try SampleProcess(role, command(role)) }
    return processes
  }

  static func expectReady(_ processes: [String: SampleProcess]) throws {
    for process in processes.values { try process.skip(to: "ready") }
  }

  private init(_ role: String, _ command: [String]) throws {
    self.role = role
    errors = broker.directory.file("errors-\(role)-\(Deadline.now)")
    process = try ChildProcess(command, environment: ["RESTORATIOND_SOCKET": broker.socket], errors: errors)
  }

  /// Its next lines are these, in any order: objects of one process finish together.
  func expect(_ lines: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
    try expect(lines, sourceLocation: sourceLocation)
  }

  func expect(_ lines: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let printed = try lines.map { _ in try process.output?.next() ?? "the end" }
    let errors = try Files.text(errors)
    #expect(printed.sorted() == lines.sorted(), "\(role): \(errors)", sourceLocation: sourceLocation)
  }

  /// Types a line, and reads until it is done.
  func act(_ line: String) throws {
    try process.write(line + "\n")
    try skip(to: "done")
  }

  private func skip(to line: String) throws {
    while let printed = try process.output?.next(), !printed.hasPrefix(line) {}
  }

  func kill() throws { try process.kill() }
}
