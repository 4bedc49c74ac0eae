// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Testing

extension NaiveArchive {
  /// What the author's archive shows is this: at the head, in every kept generation, and at `held`.
  func expectSame(_ author: ArchiveAuthor, holding held: [SequenceNumber] = []) async throws {
    let points = [.head, .beforeClaim] + (generations.map(\.sequence) + held).map { ArchivePoint.sequence($0) }
    let nodes = Array(0...lastNode + 1)
    for point in points {
      let contents = contents(at: point)
      let readings = try await author.store.read(nodes, at: point, lease: author.lease)
      let expected = nodes.map { node in
        contents.states[node].map { StateReading.state($0.record, sequence: $0.sequence) }
      }
      #expect(readings == expected, "\(point)")
      var scanned: [NodeReading] = []
      while true {
        let last = scanned.last?.node.node
        let page = try await author.store.scan(after: last, limit: 7, at: point, lease: author.lease)
        if page.isEmpty { break }
        scanned += page
      }
      #expect(scanned == self.readings(at: point), "\(point)")
    }
    for withheld in withheld.values.map(\.row) {
      let point = ArchivePoint.sequence(withheld.sequence)
      let reading = try await author.store.read([withheld.node], at: point, lease: author.lease)[0]
      guard case .state(_, withheld.sequence) = reading else {
        Issue.record("what is withheld is gone: \(withheld)")
        continue
      }
    }
  }
}

extension ArchiveOpening {
  /// Another opening says the same, but for the archive's name and the contexts.
  func expectSame(_ opening: ArchiveOpening) {
    #expect(opening.sequence == sequence)
    #expect(opening.contentSequence == contentSequence)
    #expect(opening.reachableBytes == reachableBytes)
    #expect(opening.nodes == nodes)
    #expect(opening.generations == generations)
    #expect(opening.lastGeneration == lastGeneration)
    #expect(opening.lastNode == lastNode)
    #expect(opening.lastContext == lastContext)
    #expect(opening.lastSession == lastSession)
    #expect(opening.sessions == sessions)
    #expect(opening.claims == claims)
    #expect(opening.run == run)
    #expect(opening.withheld == withheld)
  }
}
