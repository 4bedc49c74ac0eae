// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

@Suite struct StateCacheTests {
  private func record(_ node: NodeID, bytes: Int) -> StateRecord {
    StateRecord(node: node, context: 1, written: 0, text: [UInt8](repeating: 0x20, count: bytes)[...])
  }

  @Test func aRowIsFoundByItsNumberOnly() {
    var cache = StateCache(bytesMax: 1 << 20)
    cache.insert(record(1, bytes: 10), sequence: 5, of: 1)
    #expect(cache.record(1, 1, sequence: 5)?.text.count == 10)
    #expect(cache.record(1, 1, sequence: 4) == nil)
    #expect(cache.record(2, 1, sequence: 5) == nil)
    cache.insert(record(1, bytes: 20), sequence: 6, of: 1)
    #expect(cache.record(1, 1, sequence: 5) == nil)
    #expect(cache.record(1, 1, sequence: 6)?.text.count == 20)
  }

  @Test func itNeverHoldsMoreThanItMay() {
    var cache = StateCache(bytesMax: 64 << 10)
    for number in 1...10_000 {
      cache.insert(record(NodeID(number % 700), bytes: number % 3_000), sequence: Int64(number), of: number % 3)
      #expect(cache.bytes <= cache.bytesMax)
    }
    #expect(cache.bytes > cache.bytesMax / 2)
  }

  @Test func whatWasUsedStaysLongerThanWhatWasNot() {
    var cache = StateCache(bytesMax: 16 << 10)
    cache.insert(record(1, bytes: 100), sequence: 1, of: 1)
    for number in 2...1_000 {
      #expect(cache.record(1, 1, sequence: 1) != nil)
      cache.insert(record(NodeID(number), bytes: 100), sequence: Int64(number), of: 1)
    }
    #expect(cache.record(1, 2, sequence: 2) == nil)
  }

  /// Storage without other references is changed in place.
  private func isHeldElsewhere(_ text: inout [UInt8]) -> Bool {
    let before = text.withUnsafeBufferPointer { $0.baseAddress }
    text[0] ^= 1
    return text.withUnsafeBufferPointer { $0.baseAddress } != before
  }

  @Test func aTextThatHasLeftIsFreedAtOnce() {
    var cache = StateCache(bytesMax: 64 << 10)
    var evicted = [UInt8](repeating: 0x20, count: 4_000)
    cache.insert(StateRecord(node: 1, context: 1, written: 0, text: evicted[...]), sequence: 1, of: 1)
    #expect(isHeldElsewhere(&evicted))
    cache.insert(StateRecord(node: 1, context: 1, written: 0, text: evicted[...]), sequence: 2, of: 1)
    for number in 2...100 { cache.insert(record(NodeID(number), bytes: 4_000), sequence: 1, of: 1) }
    #expect(cache.record(1, 1, sequence: 2) == nil)
    #expect(!isHeldElsewhere(&evicted))
    var outgrown = [UInt8](repeating: 0x20, count: 4_000)
    cache.insert(StateRecord(node: 1, context: 1, written: 0, text: outgrown[...]), sequence: 3, of: 1)
    cache.insert(record(1, bytes: 10_000), sequence: 4, of: 1)
    #expect(cache.record(1, 1, sequence: 3) == nil)
    #expect(cache.record(1, 1, sequence: 4) == nil)
    #expect(!isHeldElsewhere(&outgrown))
  }

  @Test func aTextTooLargeForItIsLeftOut() {
    var cache = StateCache(bytesMax: 8_000)
    cache.insert(record(1, bytes: 900), sequence: 1, of: 1)
    #expect(cache.bytes == 0)
  }

  @Test func aClosedApplicationLeavesNothingBehind() {
    var cache = StateCache(bytesMax: 1 << 20)
    cache.insert(record(1, bytes: 10), sequence: 1, of: 1)
    cache.insert(record(1, bytes: 10), sequence: 1, of: 2)
    cache.removeAll(of: 1)
    #expect(cache.record(1, 1, sequence: 1) == nil)
    #expect(cache.record(2, 1, sequence: 1) != nil)
    cache.removeAll(of: 2)
    #expect(cache.bytes == 0)
  }
}
