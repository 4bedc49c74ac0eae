// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationTransport
internal import Testing

/// What a process learns about the previous one's connections.
@Suite struct ConnectionLedgerTests {
  private let framings: [Framing?] = [nil, .jsonStream, .contentLength, .http(keepsAlive: true)]

  /// Another process's reading of the ledger after this one is gone.
  private func inherit(
    _ ledger: ConnectionLedger,
    connectionsMax: Int = 4
  ) throws -> (ledger: ConnectionLedger, records: [UInt64: ConnectionSnapshot]) {
    let (ledger, records) = try ConnectionLedger.inherit(dup(ledger.descriptor), connectionsMax: connectionsMax)
    return (ledger, records)
  }

  private func claim(_ ledger: ConnectionLedger) throws -> ConnectionPage {
    try #require(ledger.claim(ledger.nextKey()))
  }

  private func snapshot(of page: ConnectionPage, _ framing: Framing?) -> ConnectionSnapshot {
    var record = ConnectionSnapshot(framing: framing, callsMade: CallsMade(lastID: 7, unanswered: 2))
    record.context = Array("context of \(page.key)".utf8)
    return record
  }

  @Test func idleConnectionsAreGoneOnWithAndBusyOnesAreNot() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 4)
    var expected: [UInt64: ConnectionSnapshot] = [:]
    for framing in framings {
      let page = try claim(ledger)
      var record = snapshot(of: page, framing)
      page.setContext(record.context)
      page.markIdle(framing: record.framing, callsMade: record.callsMade)
      record.wasKilled = true
      expected[page.key] = record
    }
    #expect(try inherit(ledger).records == expected)
  }

  @Test func aPageSaysBusyFromTheFirstByteOnUntilItIsIdleAgain() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 1)
    let page = try claim(ledger)
    #expect(try inherit(ledger).records.isEmpty)
    page.markIdle(framing: .jsonStream, callsMade: CallsMade())
    page.markBusy()
    #expect(try inherit(ledger).records.isEmpty)
  }

  @Test func whatIsLeftOfAConnectionIsHandedOverWhole() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 4)
    var expected: [UInt64: ConnectionSnapshot] = [:]
    for (index, framing) in framings.enumerated() {
      let page = try claim(ledger)
      var record = ConnectionSnapshot(framing: framing)
      record.context = [UInt8](repeating: UInt8(index), count: index * 5_000)
      record.input = [UInt8](repeating: 10 + UInt8(index), count: index * 70_000)
      record.output = [UInt8](repeating: 20 + UInt8(index), count: (3 - index) * 300_000)
      record.isClosing = index == 1
      try page.handOver(record)
      expected[page.key] = record
    }
    let (next, records) = try inherit(ledger)
    #expect(records == expected)
    // A process that is killed before it adopts them leaves them as they were.
    #expect(try inherit(next).records == expected)
    next.endAdoption()
    #expect(try inherit(next).records.isEmpty)
  }

  @Test func anIdleConnectionStaysIdleWhileTheNextProcessAdoptsIt() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 4)
    let page = try claim(ledger)
    page.setContext([1, 2])
    page.markIdle(framing: .jsonStream, callsMade: CallsMade())
    let (next, records) = try inherit(ledger)
    let adopted = try #require(next.claim(page.key))
    next.endAdoption()
    #expect(try inherit(next).records == records)
    adopted.markBusy()
    #expect(try inherit(next).records.isEmpty)
  }

  /// Also while the ledger grows, when further pages take the place of what was handed over behind the former ones.
  @Test(arguments: [4, 40])
  func aConnectionThatWasHandedOverAtRestOutlivesAKillOfItsAdopter(connectionsMax: Int) throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 4)
    var expected: [UInt64: ConnectionSnapshot] = [:]
    for framing in framings {
      let page = try claim(ledger)
      let record = snapshot(of: page, framing)
      try page.handOver(record)
      expected[page.key] = record
    }
    let (next, records) = try inherit(ledger, connectionsMax: connectionsMax)
    #expect(records == expected)
    for key in expected.keys { expected[key]?.wasKilled = true }
    #expect(try inherit(next, connectionsMax: connectionsMax).records == expected)
    let adopted = try expected.keys.map { try #require(next.claim($0)) }
    next.endAdoption()
    #expect(try inherit(next, connectionsMax: connectionsMax).records == expected)
    for page in adopted { page.markBusy() }
    #expect(try inherit(next, connectionsMax: connectionsMax).records.isEmpty)
  }

  @Test func inputAndOutputThatWereHandedOverAreAdoptedOnce() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 4)
    var records = [ConnectionSnapshot](repeating: ConnectionSnapshot(framing: .jsonStream), count: 4)
    records[0].input = [1]
    records[1].output = [1]
    records[2].isClosing = true
    records[3].context = [UInt8](repeating: 1, count: ConnectionLedger.contextBytesMax + 1)
    let keys = try records.map { record in
      let page = try claim(ledger)
      try page.handOver(record)
      return page.key
    }
    let next = try inherit(ledger).ledger
    #expect(try keys.map { try #require(try inherit(next).records[$0]) } == records)
    for key in keys { _ = try #require(next.claim(key)) }
    #expect(try inherit(next).records.isEmpty)
  }

  @Test func contextThatDoesNotFitIntoAPageOnlySurvivesAnOrderlyEnd() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 1)
    let page = try claim(ledger)
    for (count, isKept) in [(ConnectionLedger.contextBytesMax, true), (ConnectionLedger.contextBytesMax + 1, false)] {
      let context = [UInt8](repeating: 1, count: count)
      page.setContext(context)
      page.markIdle(framing: .jsonStream, callsMade: CallsMade())
      let (_, records) = try inherit(ledger)
      #expect(records[page.key]?.context == (isKept ? context : nil))
    }
  }

  @Test func keysAreNeverGivenTwiceAndPagesAre() throws {
    let first = try ConnectionLedger.make(connectionsMax: 2)
    let pages = [try claim(first), try claim(first)]
    #expect(first.claim(first.nextKey()) == nil)
    pages[0].release()
    let third = try claim(first)
    let second = try inherit(first).ledger
    let keys = pages.map(\.key) + [third.key, second.nextKey(), second.nextKey()]
    #expect(Set(keys).count == keys.count)
  }

  @Test func alsoAfterMoreConnectionsAreAllowedEachHasAPage() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 1)
    let page = try claim(ledger)
    page.markIdle(framing: nil, callsMade: CallsMade())
    let (larger, records) = try inherit(ledger, connectionsMax: 3)
    #expect(Array(records.keys) == [page.key])
    larger.endAdoption()
    let others = try (0..<3).map { _ in try claim(larger) }
    for page in others { page.markIdle(framing: nil, callsMade: CallsMade()) }
    #expect(try inherit(larger, connectionsMax: 3).records.count == 3)
  }

  @Test func aFileThatIsNoLedgerOrOfALaterVersionOrTooShortIsRefused() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 1)
    var version: UInt64 = 2
    #expect(pwrite(ledger.descriptor, &version, 8, 8) == 8)
    #expect(throws: TransportError.self) { try inherit(ledger) }
    version = 1
    #expect(pwrite(ledger.descriptor, &version, 8, 8) == 8)
    #expect(ftruncate(ledger.descriptor, 4_095) == 0)
    #expect(throws: TransportError.self) { try inherit(ledger) }
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    close(ends[1])
    #expect(throws: TransportError.self) { try ConnectionLedger.inherit(ends[0], connectionsMax: 1) }
  }

  @Test func numbersThatMakeNoSenseAreNotFollowed() throws {
    let ledger = try ConnectionLedger.make(connectionsMax: 1)
    let page = try claim(ledger)
    var record = ConnectionSnapshot(framing: .jsonStream)
    record.input = [1, 2, 3]
    // State, framing, numbers of calls, the three lengths and the place.
    for word in 1...8 {
      try page.handOver(record)
      var value = UInt64.max - 1
      #expect(pwrite(ledger.descriptor, &value, 8, off_t(4_096 + 8 * word)) == 8)
      #expect(try inherit(ledger).records.isEmpty)
    }
  }

  @Test func aKeyOrNumberOfPagesThatMakesNoSenseIsNoLedger() throws {
    for word in [2, 3] {
      let ledger = try ConnectionLedger.make(connectionsMax: 1)
      for value in [UInt64.max, 1 << 53, 1 << 24] where word == 2 || value > 1 << 24 {
        var value = value
        #expect(pwrite(ledger.descriptor, &value, 8, off_t(8 * word)) == 8)
        #expect(throws: TransportError.self) { try inherit(ledger) }
      }
    }
  }
}
