// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// All that readers see of an archive.
struct ArchiveContents: Equatable {
  /// At the head, and then in each generation.
  var nodes: [[NodeReading]] = []
  var texts: [[NodeID: String]] = []
  var contexts: [ContextID: String]
  var generations: [SealedGeneration]
  var sessions: [SessionRecord]
  var claims: [ClaimRecord]
  var run: RunRecord?
  var withheld: [WithheldRow]
  /// Numbers given out last, and the bytes that count.
  var numbers: [Int64]

  init(of author: ArchiveAuthor) async throws {
    let opening = author.opening
    (contexts, generations, sessions) = (opening.contexts, opening.generations, opening.sessions)
    (claims, run, withheld) = (opening.claims, opening.run, opening.withheld)
    numbers = [opening.sequence, opening.contentSequence, Int64(opening.reachableBytes), opening.lastGeneration]
    numbers += [opening.lastNode, opening.lastContext, opening.lastSession]
    for point in [.head] + opening.generations.map({ ArchivePoint.sequence($0.sequence) }) {
      let shown = try await author.scan(at: point)
      var read: [NodeID: String] = [:]
      for node in 1...opening.lastNode { read[node] = try await author.text(of: node, at: point) }
      nodes.append(shown)
      texts.append(read)
    }
  }
}
