// SPDX-License-Identifier: Apache-2.0

/// A message with an unreadable end.
package struct BrokenMessage: Sendable {
  /// `nil` if the id was not read.
  package let id: RequestID?
  /// Whether it has members of a call; otherwise it may be the answer to a call of ours.
  package let isCall: Bool
  /// The fault, to complete "the answer is".
  package let reason: String
}

extension JSONScan {
  /// The readable part of the message. `nil` for a batch, because the broken message in it is unknown.
  ///
  /// - Parameter bytes: the scanned part of the message.
  func brokenMessage(_ bytes: [UInt8], _ reason: String) -> BrokenMessage? {
    guard case .message = subject, state.noted > 0 else { return nil }
    let storage = FrameStorage(bytes: bytes, tape: Array(tape[..<state.noted]), references: [])
    var names: [SliceName] = []
    var id: RequestID?
    var index = 1
    while index < storage.tape.count {
      let entry = storage.tape[index]
      let name = SliceName(entry)
      names.append(name)
      if name.isEqual(to: "id", in: bytes) { id = RequestID(JSONSlice(storage: storage, entry: index)) }
      // Only the member begun last can be incomplete.
      guard Int(entry.next) > index else { break }
      index = Int(entry.next)
    }
    // A member whose value is missing or incomplete is not on the tape.
    if state.depth == 1, [.colon, .value, .insideString, .insideNumber].contains(state.phase) {
      names.append(SliceName(range: state.nameStart..<state.nameEnd, escaped: state.nameEscaped))
    }
    let isCall = names.contains { $0.isEqual(to: "method", in: bytes) || $0.isEqual(to: "params", in: bytes) }
    return BrokenMessage(id: id, isCall: isCall, reason: reason)
  }

  func brokenMessage(_ bytes: [UInt8], exceeding error: ErrorObject) -> BrokenMessage? {
    brokenMessage(bytes, "over the limit \(error.data?["limit"]?.string ?? "of frames")")
  }
}
