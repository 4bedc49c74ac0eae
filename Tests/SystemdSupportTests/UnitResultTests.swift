// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SystemdSupport
internal import TestSupport
internal import Testing

/// Conclusions from the properties of a unit, and from its files.
@Suite struct UnitResultTests {
  typealias Stop = (
    result: String, code: Int32, status: Int32, left: UInt64, started: UInt64, exited: UInt64, wasStopped: Bool
  )

  private static let stops: [Stop] = [
    // Stopped: it was no longer active while the process still ran.
    ("success", 1, 0, 20, 10, 30, true),
    ("success", 2, 15, 20, 10, 30, true),
    ("timeout", 2, 9, 20, 10, 30, true),
    ("exit-code", 1, 1, 20, 10, 30, true),
    ("signal", 2, 1, 20, 10, 30, true),
    // It ended first, or the unit was never active.
    ("success", 1, 0, 30, 10, 20, false),
    ("success", 1, 0, 20, 10, 20, false),
    ("signal", 2, 11, 0, 10, 20, false),
    // The unit was active with an earlier process; this one crashed while the unit was starting again.
    ("core-dump", 3, 11, 20, 30, 40, false),
    ("signal", 2, 9, 20, 30, 40, false),
    ("exit-code", 1, 1, 20, 30, 40, false),
    // It crashed while it was being stopped.
    ("core-dump", 3, 11, 20, 10, 30, false),
    ("signal", 2, 6, 20, 10, 30, false),
    ("watchdog", 2, 6, 20, 10, 30, false),
    // A signal that its unit takes for success.
    ("success", 2, 3, 20, 10, 30, true),
    // Nothing of it has ended yet.
    ("success", 0, 0, 20, 30, 0, false),
  ]

  @Test(arguments: stops.indices)
  func aUnitWasStoppedIfItsProcessEndedAfterItsOwnActivation(index: Int) {
    let given = Self.stops[index]
    var unit = UnitResult(
      activeState: "failed",
      subState: "failed",
      result: given.result,
      lastProcess: 7,
      lastCode: given.code,
      lastStatus: given.status
    )
    unit.judge(isService: true, left: given.left, started: given.started, exited: given.exited)
    #expect(unit.wasStopped == given.wasStopped)
    #expect(!unit.wasCollected)
  }

  private static let collections: [(state: String, result: String, last: Int32?, isService: Bool, collected: Bool)] = [
    ("inactive", "success", nil, true, true), ("inactive", "success", 7, true, false),
    ("failed", "signal", nil, true, false), ("inactive", "exit-code", nil, true, false),
    ("activating", "success", nil, true, false), ("active", "success", nil, true, false),
    ("inactive", "success", nil, false, false),
  ]

  @Test(arguments: collections.indices)
  func aServiceThatSeemsNeverToHaveRunWasForgottenAfterItEndedWell(index: Int) {
    let given = Self.collections[index]
    var unit = UnitResult(activeState: given.state, subState: "", result: given.result, lastProcess: given.last)
    unit.judge(isService: given.isService, left: 0, started: 0, exited: 0)
    #expect(unit.wasCollected == given.collected)
    #expect(!unit.wasStopped)
  }

  @Test func r22AFileThatCannotBeReadIsNotSkipped() throws {
    let directory = try ScratchDirectory()
    defer { directory.remove() }
    #expect(try UnitText.read(directory.file("gone.conf")) == nil)
    #expect(try UnitText.read(try directory.write("[Unit]\n", to: "a.conf")) == "[Unit]\n")
    #expect(try UnitText.read("/dev/null")?.isEmpty == true)
    let loop = directory.file("loop.conf")
    try #require(symlink(loop, loop) == 0)
    let long = try directory.write(String(repeating: "#", count: 1 << 18), to: "long.conf")
    for path in [loop, directory.file("."), long] { #expect(throws: UserManagerError.self) { try UnitText.read(path) } }
  }
}
