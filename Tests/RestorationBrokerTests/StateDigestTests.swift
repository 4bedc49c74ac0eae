// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

@Suite struct StateDigestTests {
  private static func record(_ text: [UInt8], _ change: (inout StateRecord) -> Void = { _ in }) -> StateRecord {
    var record = StateRecord(node: 1, context: 2, written: 3, text: text[...])
    change(&record)
    return record
  }

  @Test func sameStatesHaveOneDigestWhereverTheirTextLies() {
    for count in 0...40 {
      let text = (0..<count).map { UInt8($0) }
      let elsewhere = ([7] + text + [8]).dropFirst().dropLast()
      let other = Self.record(text) { ($0.text, $0.written) = (elsewhere, 4) }
      #expect(StateDigest(other) == StateDigest(Self.record(text)))
    }
  }

  /// Bytes may move from one text to the next, or be zeros at the end.
  @Test func whateverIsStoredMakesAnotherDigest() {
    var records: [StateRecord] = (0...40).map { Self.record([UInt8](repeating: 0, count: $0)) }
    for place in 0..<40 {
      for bit in 0..<8 {
        var text = [UInt8](repeating: 0, count: 40)
        text[place] = 1 << bit
        records.append(Self.record(text))
      }
    }
    records += [
      Self.record([0]) { $0.context = 3 }, Self.record([0]) { $0.session = 3 }, Self.record([0]) { $0.isEarly = true },
      Self.record([0]) { $0.references = "" }, Self.record([0]) { $0.references = "\0" },
      Self.record([0]) { $0.elements = "" }, Self.record([0]) { $0.elements = "\0" },
      Self.record([]) { $0.references = "\0" }, Self.record([]) { $0.elements = "\0" },
    ]
    let digests = records.map { StateDigest($0) }
    for (place, digest) in digests.enumerated() {
      #expect(digests.firstIndex(of: digest) == place, "\(records[place])")
    }
  }
}
