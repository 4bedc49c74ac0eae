// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// A small text file beside a host's copy of an archive (`Protocol/archive-format.md`).
package struct ReplicaNote: Hashable, Sendable {
  /// Of the copy; `nil` if the copy was never at the replica.
  package var standing: ReplicaStanding?
  /// Of a file that is about to replace the copy. It counts once the copy has that file's UUID.
  package var incoming: ReplicaStanding?

  package init(standing: ReplicaStanding? = nil, incoming: ReplicaStanding? = nil) {
    (self.standing, self.incoming) = (standing, incoming)
  }

  /// As a store has kept it; empty if there is no note, or an invalid one.
  init(kept text: String?) { self = text.flatMap(ReplicaNote.init) ?? ReplicaNote() }

  private static let title = "restorationd replica 2"

  package var text: String {
    let lines = [("copy", standing), ("incoming", incoming)].compactMap { name, standing in
      standing.map { "\(name)\t\($0.words)" }
    }
    return ([Self.title] + lines).map { $0 + "\n" }.joined()
  }

  /// `nil` if the text is invalid: the copy then counts as never having been at the replica.
  package init?(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.first == Self.title[...], lines.last == "" else { return nil }
    for line in lines.dropFirst().dropLast() {
      var words = line.split(separator: "\t", omittingEmptySubsequences: false)[...]
      let name = words.removeFirst()
      guard let standing = ReplicaStanding(words: words) else { return nil }
      switch name {
      case "copy": self.standing = standing
      case "incoming": incoming = standing
      default: return nil
      }
    }
  }
}

extension ReplicaStanding {
  fileprivate var words: String { [history, phase.rawValue, archive, reigns.text].joined(separator: "\t") }

  fileprivate init?(words: ArraySlice<Substring>) {
    let words = Array(words)
    guard words.count == 4, let phase = Phase(rawValue: String(words[1])),
      let reigns = [ReplicaReign](text: words[3]), reigns.count <= ReplicaReign.max
    else { return nil }
    self.init(history: String(words[0]), reigns: reigns, phase: phase, archive: String(words[2]))
  }
}
