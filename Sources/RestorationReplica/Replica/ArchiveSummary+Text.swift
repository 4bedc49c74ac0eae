// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// The summary that a host leaves in the replica for other hosts' lists (`Protocol/replica-format.md`).
extension ArchiveSummary {
  private static let title = "restorationd summary 1"
  /// Sealing adds a few bytes, and the gateway takes 4,096.
  private static let bytesMax = 4_000

  /// Leaves out the run if it is too long.
  package var text: [UInt8] {
    let lines = [Self.title, "\(objects)\t\(generation)\t\(bytes)\t\(modified)"].map { $0 + "\n" }.joined()
    guard let run, !run.facts.contains("\n") else { return Array(lines.utf8) }
    let text = Array("\(lines)\(run.run)\t\(run.restorations)\t\(run.facts)\n".utf8)
    return text.count <= Self.bytesMax ? text : Array(lines.utf8)
  }

  /// An archive of the replica as a host sees it. An invalid text leaves all details unknown.
  package init(of summary: ReplicaSummary, at host: String) {
    self.init(application: summary.application, state: .available)
    (holder, isHere) = (summary.holder.flatMap { $0.host == host ? nil : $0 }, false)
    let lines = String(decoding: summary.summary, as: UTF8.self).split(separator: "\n")
    guard lines.first == Self.title[...], lines.count >= 2 else { return }
    let numbers = lines[1].split(separator: "\t").compactMap(Self.number)
    guard numbers.count == 4 else { return }
    (objects, bytes) = (Int(clamping: numbers[0]), Int(clamping: numbers[2]))
    (generation, modified) = (numbers[1], numbers[3])
    guard lines.count == 3 else { return }
    let words = lines[2].split(separator: "\t", maxSplits: 2)
    guard words.count == 3, let run = Self.number(words[0]), let restorations = Self.number(words[1]) else { return }
    self.run = RunRecord(run: run, restorations: restorations, facts: String(words[2]))
  }

  /// Checked, because the text comes from outside.
  private static func number(_ word: Substring) -> Int64? {
    Int64(word).flatMap { $0 >= 0 && $0 <= ChangeBatch.sequenceMax ? $0 : nil }
  }
}
