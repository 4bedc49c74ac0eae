// SPDX-License-Identifier: Apache-2.0

/// A small text file beside a host's copy of an archive (`Protocol/archive-format.md`).
package struct ReplicaNote: Hashable, Sendable {
  /// Of the copy; `nil` if the copy was never at the replica.
  package var standing: ReplicaStanding?
  /// Of a file that is about to replace the copy. It counts once the copy has that file's UUID.
  package var incoming: ReplicaStanding?

  package init(standing: ReplicaStanding? = nil, incoming: ReplicaStanding? = nil) {
    (self.standing, self.incoming) = (standing, incoming)
  }

  private static let title = "restorationd replica 1"

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
  fileprivate var words: String {
    [history, String(lease.rawValue), String(epoch.rawValue), phase.rawValue, archive].joined(separator: "\t")
  }

  fileprivate init?(words: ArraySlice<Substring>) {
    let words = Array(words)
    guard words.count == 5, let lease = Int64(words[1]), let epoch = Int64(words[2]),
      epoch >= 0, epoch <= lease, let phase = Phase(rawValue: String(words[3]))
    else { return nil }
    self.init(
      history: String(words[0]),
      lease: ReplicaEpoch(rawValue: lease),
      epoch: ReplicaEpoch(rawValue: epoch),
      phase: phase,
      archive: String(words[4])
    )
  }
}
