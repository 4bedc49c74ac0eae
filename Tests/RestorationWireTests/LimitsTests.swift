// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire
internal import Testing

@Suite struct LimitsTests {
  @Test func theListHoldsEveryPropertyUnderItsName() {
    let properties = Mirror(reflecting: Limits()).children.compactMap(\.label)
    #expect(Set(Limit.all.map(\.name)) == Set(properties))
    #expect(Limit.all.count == properties.count)
    for limit in Limit.all {
      let value = Mirror(reflecting: Limits()).children.first { $0.label == limit.name }?.value as? Int
      #expect(value == Limits()[keyPath: limit.keyPath])
      #expect(limit.range.contains(Limits()[keyPath: limit.keyPath]), "\(limit.name)")
      #expect(limit.summary.hasSuffix("."))
    }
  }

  @Test func defaultsAreWhatTheProtocolSays() {
    let limits = Limits()
    #expect(limits.frameBytesMax == 4_194_304)
    #expect(limits.stateBytesMax == 262_144)
    #expect(limits.archiveBytesMax == 67_108_864)
    #expect(limits.allArchivesBytesMax == 1_073_741_824)
    #expect(limits.outQueueBytesMax == 8_388_608)
  }

  /// A client of this version works with a broker that knew fewer limits.
  @Test func aLimitThatABrokerDoesNotReportHasItsDefault() throws {
    let report = try slice(#"{"stateBytesMax":4096,"later":true}"#)
    let limits = try #require(Limits(report))
    #expect(limits.stateBytesMax == 4_096)
    #expect(limits.depthMax == Limits().depthMax)
  }
}
