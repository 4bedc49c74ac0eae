// SPDX-License-Identifier: Apache-2.0

// Nearly every file of these tests has a broker in memory.
@_exported public import InMemory
internal import Logging
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import TestSupport
internal import Testing

extension MemoryBroker {
  /// What the broker must never do is an issue of the test.
  convenience init(
    limits: Limits = Limits(),
    isDeveloperMode: Bool = false,
    hasManager: Bool = true,
    logLevel: Logger.Level = .info,
    pieceObjects: Int? = nil,
    archivesRoam: Bool = false,
    seed: UInt64 = 1,
    makeStore: ((TestEventLoop) -> any ArchiveStore)? = nil
  ) {
    self.init(
      limits: limits,
      isDeveloperMode: isDeveloperMode,
      hasManager: hasManager,
      logLevel: logLevel,
      pieceObjects: pieceObjects,
      archivesRoam: archivesRoam,
      seed: seed,
      makeStore: makeStore,
      record: { Issue.record("\($0)") }
    )
  }
}

extension MemoryConnection: VectorConnection {
  /// The next frame that nothing else takes; lets up to five seconds pass.
  package func receive() throws -> String {
    for _ in 0..<500 where frames.isEmpty && isOpen { broker?.advance(milliseconds: 10) }
    guard !frames.isEmpty else { throw TestFailure(isOpen ? "nothing came" : "the broker closed the connection") }
    return frames.removeFirst()
  }

  /// Lets up to five seconds pass, until this has come true.
  func wait(until hasComeTrue: () -> Bool) {
    for _ in 0..<5_000 where isOpen && !hasComeTrue() { broker?.advance(milliseconds: 1) }
  }

  package func receiveToEnd() throws -> [String] {
    for _ in 0..<500 where isOpen { broker?.advance(milliseconds: 10) }
    guard !isOpen else { throw TestFailure("the broker did not close the connection") }
    defer { frames = [] }
    return frames
  }
}
