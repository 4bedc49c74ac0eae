// SPDX-License-Identifier: Apache-2.0

/// One complete frame of a peer: a message, or a batch.
package struct Frame: Sendable {
  private enum Form: Sendable {
    case message(Message)
    case batch(FrameStorage)
  }

  private let form: Form

  /// The bytes of the frame.
  package let byteCount: Int

  init(_ storage: FrameStorage) {
    let root = storage.root
    form = root.kind == .array ? .batch(storage) : .message(Message(reading: root))
    byteCount = storage.bytes.count
  }

  package enum Content: Sendable {
    case message(Message)
    case batch([Message])
  }

  /// The messages. Those of a batch are made anew each time: look at `batchCount` first.
  package var content: Content {
    switch form {
    case .message(let message): .message(message)
    case .batch(let storage): .batch((storage.root.elements ?? []).map { Message(reading: $0) })
    }
  }

  /// How many messages a batch holds; nil when the frame is a single message.
  package var batchCount: Int? {
    guard case .batch(let storage) = form else { return nil }
    var count = 0
    storage.root.forEachChild { _, _ in
      count += 1
      return true
    }
    return count
  }

  /// Whether any message is not an answer.
  var holdsCalls: Bool {
    switch content {
    case .message(let message): !message.isResponse
    case .batch(let messages): messages.contains { !$0.isResponse }
    }
  }
}
