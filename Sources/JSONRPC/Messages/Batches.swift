// SPDX-License-Identifier: Apache-2.0

struct Batches {
  struct Key: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  private struct Batch {
    let key: Key
    var waiting = 0
    /// Whether messages of the batch are still arriving.
    var isReading = true
    /// The answers so far, without the closing bracket.
    var answers: [UInt8] = []
  }

  private var open: [Batch] = []
  private var lastNumber: UInt64 = 0

  private(set) var gatheredBytes = 0

  mutating func begin() -> Key {
    lastNumber += 1
    let key = Key(number: lastNumber)
    open.append(Batch(key: key))
    return key
  }

  mutating func expect(_ key: Key) {
    guard let index = index(of: key) else { return }
    open[index].waiting += 1
  }

  /// Adds an expected answer. If it was the last, appends the whole batch to `out` and returns true.
  mutating func add(to key: Key, into out: inout [UInt8], _ write: (inout [UInt8]) -> Void) -> Bool {
    guard let index = index(of: key) else { return false }
    let before = open[index].answers.count
    open[index].answers.append(UInt8(ascii: open[index].answers.isEmpty ? "[" : ","))
    write(&open[index].answers)
    gatheredBytes += open[index].answers.count - before
    open[index].waiting -= 1
    return appendIfComplete(index, to: &out)
  }

  func gatheredBytes(of key: Key) -> Int { index(of: key).map { open[$0].answers.count } ?? 0 }

  /// All messages of the batch have arrived. If all answers are there, appends the batch to `out` and returns true.
  mutating func endReading(_ key: Key, into out: inout [UInt8]) -> Bool {
    guard let index = index(of: key) else { return false }
    open[index].isReading = false
    return appendIfComplete(index, to: &out)
  }

  private mutating func appendIfComplete(_ index: Int, to out: inout [UInt8]) -> Bool {
    guard open[index].waiting == 0, !open[index].isReading else { return false }
    let answers = open.remove(at: index).answers
    gatheredBytes -= answers.count
    guard !answers.isEmpty else { return false }
    out += answers
    out.append(UInt8(ascii: "]"))
    return true
  }

  private func index(of key: Key) -> Int? { open.firstIndex { $0.key == key } }
}
