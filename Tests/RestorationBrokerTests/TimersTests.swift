// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOEmbedded
internal import RestorationBroker
internal import Synchronization
internal import Testing

/// Timers by name, in a time that the test moves.
@Suite struct TimersTests {
  private final class Fired: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func note(_ name: String) { names.withLock { $0.append(name) } }
  }

  private let loop = EmbeddedEventLoop()
  private let fired = Fired()

  @Test func aTimerReplacesTheOneOfItsNameOnly() {
    var timers = Timers(on: loop)
    timers.set(.round(1), milliseconds: 10) { [fired] in fired.note("first") }
    timers.set(.round(2), milliseconds: 20) { [fired] in fired.note("other") }
    timers.set(.round(1), milliseconds: 30) { [fired] in fired.note("second") }
    #expect(timers.count == 2)
    loop.advanceTime(by: .milliseconds(29))
    #expect(fired.all == ["other"])
    loop.advanceTime(by: .milliseconds(1))
    #expect(fired.all == ["other", "second"])
  }

  @Test func aTimerThatWasCancelledDoesNotFire() {
    var timers = Timers(on: loop)
    timers.set(.round(1), milliseconds: 10) { [fired] in fired.note("cancelled") }
    timers.set(.pulls(1), milliseconds: 10) { [fired] in fired.note("ended") }
    timers.set(.changes(1), milliseconds: 10) { [fired] in fired.note("fired") }
    timers.cancel(.round(1))
    timers.cancel(.round(1))
    loop.advanceTime(by: .milliseconds(9))
    timers.cancel(.pulls(1))
    loop.advanceTime(by: .milliseconds(1))
    #expect(fired.all == ["fired"])
    timers.fired(.changes(1))
    #expect(timers.count == 0)
  }

  @Test func noTimerFiresAfterAllWereCancelled() {
    var timers = Timers(on: loop)
    for number in 1...3 { timers.set(.round(number), milliseconds: 10) { [fired] in fired.note("\(number)") } }
    timers.cancelAll()
    loop.advanceTime(by: .seconds(1))
    #expect(fired.all.isEmpty && timers.count == 0)
  }
}
