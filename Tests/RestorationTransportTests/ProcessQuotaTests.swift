// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import Testing

/// Which process may have another connection, without connections.
@Suite struct ProcessQuotaTests {
  private func quota(_ total: Int, _ own: Int) -> ProcessQuota {
    var limits = TransportLimits()
    (limits.connectionsMax, limits.connectionsPerProcessMax) = (total, own)
    return ProcessQuota(limits: limits)
  }

  private func process(_ pid: Int32, _ startTicks: UInt64 = 1) -> ProcessIdentity {
    ProcessIdentity(pid: pid, startTicks: startTicks, bootID: "boot")
  }

  private func expect(_ error: ErrorObject?, _ limit: String, max: Int64, value: Int64) {
    #expect(error?.code == ErrorObject.limitExceededCode)
    #expect(error?.data?["limit"] == .string(limit))
    #expect(error?.data?["max"] == .integer(max) && error?.data?["value"] == .integer(value))
  }

  @Test func aProcessHasItsConnectionsAndNotOneMore() {
    var quota = quota(100, 2)
    for _ in 1...2 {
      #expect(quota.refusal(to: process(1)) == nil)
      quota.add(process(1))
    }
    expect(quota.refusal(to: process(1)), "connectionsPerProcessMax", max: 2, value: 3)
    #expect(quota.refusal(to: process(2)) == nil)
    quota.remove(process(1))
    #expect(quota.refusal(to: process(1)) == nil && quota.total == 1)
  }

  @Test func aProcessWithTheNumberOfAnotherIsAnother() {
    var quota = quota(100, 1)
    quota.add(process(1))
    expect(quota.refusal(to: process(1)), "connectionsPerProcessMax", max: 1, value: 2)
    #expect(quota.refusal(to: process(1, 2)) == nil)
  }

  @Test func theLastTenthIsKeptForProcessesWithoutAny() {
    var quota = quota(20, 20)
    for _ in 1...18 {
      #expect(quota.refusal(to: process(1)) == nil)
      quota.add(process(1))
    }
    expect(quota.refusal(to: process(1)), "connectionsMax", max: 18, value: 19)
    #expect(quota.refusal(to: process(2)) == nil)
    quota.add(process(2))
    expect(quota.refusal(to: process(2)), "connectionsMax", max: 18, value: 20)
    quota.add(process(3))
    expect(quota.refusal(to: process(4)), "connectionsMax", max: 20, value: 21)
  }

  @Test func anApplicationInASandboxHasHalfOfWhatTheOthersLeave() {
    var quota = quota(20, 20)
    for _ in 1...4 { quota.add(process(1)) }
    for pid: Int32 in 2...9 {
      #expect(quota.refusal(toConfined: "Box") == nil)
      quota.add(process(pid), confinement: "Box")
    }
    expect(quota.refusal(toConfined: "Box"), "connectionsMax", max: 8, value: 9)
    // As much again is left for all others, of which another one in a sandbox may have half.
    for _ in 1...4 {
      #expect(quota.refusal(toConfined: "Crate") == nil)
      quota.add(process(10), confinement: "Crate")
    }
    expect(quota.refusal(toConfined: "Crate"), "connectionsMax", max: 4, value: 5)
    #expect(quota.refusal(to: process(11)) == nil)
    for pid: Int32 in 2...9 { quota.remove(process(pid), confinement: "Box") }
    #expect(quota.refusal(toConfined: "Crate") == nil && quota.total == 8)
  }

  /// A peer in a sandbox is not told its number outside.
  @Test func noRefusalNamesTheProcess() {
    for (total, own) in [(100, 1), (10, 20)] {
      var quota = quota(total, own)
      for _ in 1...9 { quota.add(process(77_777)) }
      let hint = quota.refusal(to: process(77_777))?.data?["hint"]?.string
      #expect(hint?.contains("77777") == false)
    }
  }

  @Test func whatIsTakenOverCountsBeyondALimit() {
    var quota = quota(20, 2)
    for _ in 1...3 { quota.add(process(1)) }
    quota.remove(process(1))
    #expect(quota.refusal(to: process(1)) != nil && quota.total == 2)
    quota.remove(process(1))
    #expect(quota.refusal(to: process(1)) == nil)
  }
}
