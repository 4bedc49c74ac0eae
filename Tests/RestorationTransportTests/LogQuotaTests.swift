// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationTransport
internal import Testing

@Suite struct LogQuotaTests {
  private typealias Quota = LogQuota<Int>

  private static func moment(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

  @Test func aPeerHasItsEntriesAndTheRestIsCounted() {
    var quota = Quota()
    for _ in 1...Quota.entriesMax { #expect(quota.admit(1, at: Self.moment(5)) == .written) }
    #expect(quota.admit(1, at: Self.moment(30)) == .firstLeftOut(until: Self.moment(65)))
    #expect(quota.admit(1, at: Self.moment(40)) == .leftOut)
    #expect(quota.admit(2, at: Self.moment(40)) == .written)
    let leftOut = quota.takeLeftOut()
    #expect(leftOut.map { $0.peer } == [1] && leftOut.map { $0.count } == [2])
    #expect(quota.takeLeftOut().isEmpty)
    #expect(quota.admit(1, at: Self.moment(66)) == .written)
  }

  @Test func afterAMinuteAPeerHasItsEntriesAgain() {
    var quota = Quota()
    for minute: Int64 in 0..<3 {
      for _ in 1...Quota.entriesMax { #expect(quota.admit(1, at: Self.moment(minute * 60)) == .written) }
    }
    // What was left out is told before that.
    #expect(quota.admit(1, at: Self.moment(120)) == .firstLeftOut(until: Self.moment(180)))
    #expect(quota.admit(1, at: Self.moment(200)) == .leftOut)
    #expect(quota.takeLeftOut().map { $0.count } == [2])
  }

  @Test func peersBeyondManyShareTheEntriesOfOne() {
    var quota = Quota()
    for peer in 1...Quota.peersMax { #expect(quota.admit(peer, at: Self.moment(0)) == .written) }
    let others = (1...100).map { quota.admit(Quota.peersMax + $0, at: Self.moment(0)) }
    #expect(others.count { $0 == .written } == Quota.entriesMax)
    #expect(quota.admit(1, at: Self.moment(0)) == .written)
    let leftOut = quota.takeLeftOut()
    #expect(leftOut.map { $0.peer } == [nil] && leftOut.map { $0.count } == [100 - Quota.entriesMax])
  }
}
