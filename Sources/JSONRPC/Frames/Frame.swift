// SPDX-License-Identifier: Apache-2.0

/// One complete frame of a peer: a message, or a batch.
package struct Frame: Sendable {
  private let storage: FrameStorage

  /// The frame is complete and its upper levels are on the tape.
  init(_ storage: FrameStorage) { self.storage = storage }

  /// About the bytes of memory that the frame takes.
  var memory: Int {
    storage.bytes.count + storage.tape.count * MemoryLayout<TapeEntry>.stride
      + storage.references.count * MemoryLayout<TapeReference>.stride + 160
  }

  var text: [UInt8] { storage.bytes }

  package enum Content: Sendable {
    case message(Message)
    case batch([Message])
  }

  /// The messages, parsed at each access; check `batchCount` first.
  package var content: Content {
    var method = ""
    return content(after: &method)
  }

  /// The same; a message that names the same method shares its text.
  func content(after method: inout String) -> Content {
    guard let elements = storage.root.elements else { return .message(Message(reading: storage.root, after: &method)) }
    return .batch(elements.map { Message(reading: $0, after: &method) })
  }

  /// How many messages a batch holds; `nil` when the frame is a single message.
  package var batchCount: Int? {
    guard storage.tape[0].kind == .array else { return nil }
    var count = 0
    var index = 1
    while index < storage.tape.count {
      count += 1
      index = Int(storage.tape[index].next)
    }
    return count
  }

  /// Reads the message as one that is incomplete; `nil` for a batch.
  func brokenMessage(_ reason: String) -> BrokenMessage? {
    let root = storage.root
    guard root.elements == nil else { return nil }
    let isCall = root["method"] != nil || root["params"] != nil
    return BrokenMessage(id: root["id"].flatMap { RequestID($0) }, isCall: isCall, reason: reason)
  }

  /// Whether any message is not an answer.
  var holdsCalls: Bool {
    switch content {
    case .message(let message): !message.isResponse
    case .batch(let messages): messages.contains { !$0.isResponse }
    }
  }
}
