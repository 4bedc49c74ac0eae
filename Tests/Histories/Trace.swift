// SPDX-License-Identifier: Apache-2.0

/// What happened, and what was wrong with it.
package final class Trace {
  package private(set) var lines: [String] = []
  package private(set) var faults: [String] = []
  package private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
  private let keeping: Keeping

  /// What becomes of lines. To write them is a good part of the work of a history.
  package enum Keeping { case nothing, digest, lines }

  package init(_ keeping: Keeping) { self.keeping = keeping }

  package func add(_ line: @autoclosure () -> String) {
    guard keeping != .nothing else { return }
    let line = line()
    for byte in line.utf8 { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3 }
    if keeping == .lines { lines.append(line) }
  }

  package func fault(_ text: String) {
    add("FAULT \(text)")
    faults.append(text)
  }
}
