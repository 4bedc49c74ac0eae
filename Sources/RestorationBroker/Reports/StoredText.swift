// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Checks the stored texts of a state, its references and its elements.
enum StoredText {
  /// The problem of a row's texts; `nil` if there is none.
  static func fault(of record: StateRecord, lastNode: NodeID) -> (kind: ArchiveProblem.Kind, message: String)? {
    let state: JSONSlice
    do throws(JSONError) {
      state = try JSONSlice.scan(Array(record.text), vocabulary: EncodedState.vocabulary, limits: .unframed)
    } catch {
      return (.text, "the stored state is not JSON: \(error.message), at byte \(error.position)")
    }
    guard state.kind == .object else { return (.text, "the stored state is not an object") }
    if let elements = record.elements, !areElements(elements) { return (.text, "the stored elements are malformed") }
    return faultOfReferences(record, state, lastNode: lastNode).map { (.reference, $0) }
  }

  private static func areElements(_ text: String) -> Bool {
    let slice = try? JSONSlice.scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: .unframed)
    return slice.map { (try? [RestorableElement](wire: $0)) != nil } ?? false
  }

  private static func faultOfReferences(_ record: StateRecord, _ state: JSONSlice, lastNode: NodeID) -> String? {
    let found = state.references.filter { !$0.target.isNull }
    let listed = record.references.map { ArchiveReferences.numbers(inTable: $0) } ?? []
    guard listed.count == 3 * found.count else {
      return "the state has \(found.count) references, its table lists \(listed.count / 3)"
    }
    for (index, reference) in found.enumerated() {
      let (offset, length, node) = (listed[3 * index], listed[3 * index + 1], listed[3 * index + 2])
      let range = reference.objectRange
      guard Int(clamping: offset) == range.lowerBound, Int(clamping: length) == range.count,
        reference.target.integer() == node
      else { return "the reference at byte \(range.lowerBound) is not the one its table lists" }
      guard (1...max(1, lastNode)).contains(node) else {
        return "the reference at byte \(range.lowerBound) leads to object \(node), which never existed"
      }
    }
    return nil
  }
}
