// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The system refuses what the real broker asks of it, at any call: every request is answered or its connection ends,
/// nothing is told to be stored that is not, and the next broker is as it should be (R15).
@Suite(
  .broker(limits: ["openArchivesMax": 2]),
  .enabled(if: Faults.isUsable, Comment(rawValue: Faults.requirement))
)
struct CallFailureTests {
  private static let steps = 33

  /// Errors that a call may have.
  private static let errors: [(call: Faults.Call, errors: [Int32])] = [
    (.pwrite, [EIO, ENOSPC, EDQUOT, EROFS, EINTR]),
    (.fdatasync, [EIO, ENOSPC, EDQUOT, EROFS, EINTR]),
    (.fsync, [EIO, ENOSPC, EDQUOT, EROFS, EINTR]),
    (.ftruncate, [EIO, ENOSPC, EROFS, EINTR]),
    (.unlink, [EIO, EROFS, EACCES, ENOMEM]),
    (.rename, [EIO, ENOSPC, EDQUOT, EROFS, EACCES]),
    (.link, [EIO, ENOSPC, EDQUOT, EPERM]),
    (.mkdir, [EIO, ENOSPC, EACCES]),
    (.create, [EIO, ENOSPC, EDQUOT, EROFS, EACCES, EMFILE, ENOMEM]),
    (.open, [EIO, EACCES, EMFILE, ENOMEM]),
    (.fallocate, [EIO, ENOSPC, EDQUOT, EINTR]),
    (.lock, [EIO, EAGAIN, ENOLCK]),
    (.send, [EPIPE, ENOBUFS, ENOMEM, EAGAIN, EINTR]),
    (.accept, [EMFILE, ENFILE, ECONNABORTED, ENOMEM, EINTR]),
    (.epoll, [ENOMEM, ENOSPC]),
  ]

  /// Whether an error can last: no kernel goes on giving some of them, and without connections nobody would be answered.
  private static func canLast(_ error: Int32, of call: Faults.Call) -> Bool {
    error != EINTR && error != EAGAIN && call != .accept
  }

  /// Whether the process may end by a trap: NIO gives up if it cannot watch a descriptor of its own, and libdispatch,
  /// on which the Swift runtime relies, if it cannot open `/proc` when it looks whether its threads wait.
  private static func mayTrap(_ error: Int32, of call: Faults.Call, isLasting: Bool) -> Bool {
    call == .epoll || call == .open && (isLasting || error == ENOMEM)
  }

  /// Lets a broker work that meets what was armed, and checks the next one; how the first one ended.
  private static func meet(
    _ broker: BrokerFixture,
    _ faults: Faults,
    _ what: String
  ) throws -> ChildProcess.End {
    broker.variables = faults.variables
    var workload = Workload(.everything)
    if (try? broker.start()) != nil { workload.run(broker.socket, count: steps) }
    #expect(workload.silence == nil, "\(what)")
    let end = try broker.terminate()
    broker.variables = [:]
    try broker.start()
    do {
      try workload.check(broker.socket)
      try Workload.checkSoundness(broker.socket)
    } catch {
      throw TestFailure("\(what): \(error)\n\(broker.log.suffix(2_000))")
    }
    try broker.kill()
    Files.removeContents(of: broker.archives)
    return end
  }

  /// Counts the calls of a broker that meets nothing.
  private static func counts(_ broker: BrokerFixture, _ faults: Faults) throws -> [Faults.Call: Int] {
    try broker.kill()
    Files.removeContents(of: broker.archives)
    #expect(try meet(broker, faults, "nothing") == .exit(0))
    return Dictionary(uniqueKeysWithValues: Faults.Call.allCases.map { ($0, faults.count($0)) })
  }

  /// Of the numbers up to `count`, so many, from the first to the last.
  private static func numbers(_ points: Int, of count: Int) -> [Int] {
    (0..<min(points, count)).map { 1 + $0 * (count - 1) / max(1, min(points, count) - 1) }
  }

  @Test func anErrorOfAnyCallIsNeitherTakenForSuccessNorWaitedFor() throws {
    let faults = try Faults(in: broker.directory)
    let counts = try Self.counts(broker, faults)
    var ends: [ChildProcess.End: Int] = [:]
    var points = 0
    for (call, errors) in Self.errors {
      let count = counts[call] ?? 0
      for number in Environment.isLong ? Self.numbers(8, of: count) : [(count + 1) / 2] {
        for error in Environment.isLong ? errors : Array(errors.prefix(1)) {
          for isLasting in Environment.isLong ? [false, true] : [false]
          where !isLasting || Self.canLast(error, of: call) {
            faults.reset()
            faults.arm(call, .fail(error), from: number, onlyOnce: !isLasting)
            let name = String(cString: strerror(error))
            let what = "\(name) at \(call) \(number) of \(count), \(isLasting ? "lasting" : "once")"
            let end = try Self.meet(broker, faults, what)
            if case .signal = end {
              let mayTrap = Self.mayTrap(error, of: call, isLasting: isLasting)
              #expect(mayTrap, "\(what): \(end)\n\(broker.log.suffix(2_000))")
            }
            ends[end, default: 0] += 1
            points += 1
          }
        }
      }
    }
    print("\(points) errors: \(ends)")
    // What a trap has left there would be taken for one that was not expected.
    Files.remove(broker.directory.file("log"))
    try broker.start()
  }

  /// Without memory the process ends, as every program in Swift does; SQLite and jansson report it instead.
  @Test func aLackOfMemoryLosesNothingAcknowledged() throws {
    let faults = try Faults(in: broker.directory)
    let count = try Self.counts(broker, faults)[.malloc] ?? 0
    var ends: [ChildProcess.End: Int] = [:]
    let numbers = Self.numbers(Environment.isLong ? 300 : 6, of: count * 9 / 10)
    for number in numbers {
      faults.reset()
      faults.arm(.malloc, .fail(ENOMEM), from: number, onlyOnce: number.isMultiple(of: 2))
      ends[try Self.meet(broker, faults, "allocation \(number) of \(count)"), default: 0] += 1
    }
    print("\(numbers.count) of \(count) allocations failed: \(ends)")
    #expect(ends.keys.contains { $0 != .exit(0) }, "no lack was met")
    Files.remove(broker.directory.file("log"))
    try broker.start()
  }
}
