// SPDX-License-Identifier: Apache-2.0

/// A reference found in a payload (R14).
package struct JSONReference: Sendable {
  /// The whole reference object, as offsets from the first byte of the slice's `compactText`.
  package let objectRange: Range<Int>

  /// The value of the reference key.
  package let target: JSONSlice

  package let object: JSONSlice
}

extension JSONSlice {
  /// Every object in this value that has the vocabulary's reference key and does not lie in an object with its literal
  /// key: outermost only, in the order of the text.
  ///
  /// The message itself and its `params` or `result` are never taken for references.
  package var references: [JSONReference] {
    let all = storage.references
    guard !all.isEmpty else { return [] }
    var index = all.partitioningIndex { $0.start >= start }
    let first = index
    while index < all.count, all[index].end <= end { index += 1 }
    let inside = all[first..<index]
    guard !inside.isEmpty else { return [] }
    let marks = inside.flatMap { [Int($0.start), Int($0.end)] }
    let moved =
      mayHoldWhiteSpace
      ? JSONWalk.compact(storage.bytes, in: range, marks: marks).marks : marks.map { $0 - Int(start) }
    return inside.enumerated().map { number, reference in
      JSONReference(
        objectRange: moved[2 * number]..<moved[2 * number + 1],
        target: target(of: reference),
        object: JSONSlice(storage: storage, range: Int(reference.start)..<Int(reference.end), kind: .object)
      )
    }
  }

  private func target(of reference: TapeReference) -> JSONSlice {
    var walk = JSONWalk(bytes: storage.bytes, index: Int(reference.nameEnd) + 1)
    walk.skipWhiteSpace()
    walk.index += 1
    walk.skipWhiteSpace()
    let start = walk.index
    let kind = walk.skipValue()
    return JSONSlice(storage: storage, range: start..<walk.index, kind: kind)
  }
}

extension [TapeReference] {
  /// The first index whose element satisfies the predicate, which must hold for all later ones.
  fileprivate func partitioningIndex(_ predicate: (TapeReference) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
