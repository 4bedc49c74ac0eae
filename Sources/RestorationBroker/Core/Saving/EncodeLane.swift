// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// An object whose owner is to be asked for its state.
package struct EncodeTarget: Hashable, Sendable {
  package let node: NodeID
  /// The claim it is asked under: an answer of an owner that has lost it since does not count.
  package let handle: ObjectHandle
  package let session: SessionID
  /// About what it adds to the call and its answer.
  package let bytes: Int

  package init(node: NodeID, handle: ObjectHandle, session: SessionID, bytes: Int) {
    (self.node, self.handle, self.session, self.bytes) = (node, handle, session, bytes)
  }
}

/// The objects that one session is to be asked for, in their order, one batch at a time.
package struct EncodeLane: Hashable, Sendable {
  /// Objects of one batch at most.
  package static let countMax = 64
  /// So often one object alone may be put off in a row.
  package static let delaysMax = 3

  /// Bytes of one batch at most; a single object may be larger.
  private let bytesMax: Int
  package private(set) var waiting: [EncodeTarget] = []
  /// The batch that has no answer yet.
  package private(set) var asked: [EncodeTarget] = []
  private var count = countMax
  private var delays = 0

  package init(bytesMax: Int) { self.bytesMax = bytesMax }

  package var isAsking: Bool { !asked.isEmpty }

  package mutating func add(_ target: EncodeTarget) { waiting.append(target) }

  /// The batch to ask for now; nil while one is asked for, and where none waits.
  package mutating func next() -> [EncodeTarget]? {
    guard asked.isEmpty, !waiting.isEmpty else { return nil }
    var bytes = 0
    var end = 0
    while end < min(count, waiting.count), end == 0 || bytes + waiting[end].bytes <= bytesMax {
      bytes += waiting[end].bytes
      end += 1
    }
    asked = Array(waiting[..<end])
    waiting.removeFirst(end)
    return asked
  }

  /// The batch is answered; those put off come first in the next one. A batch that brought nothing is halved, so that
  /// a client whose answer would be too long gets on.
  ///
  /// - Returns: an object that was put off too often, and is not asked for again.
  package mutating func answered(later isLater: (EncodeTarget) -> Bool) -> EncodeTarget? {
    let batch = asked
    asked = []
    let later = batch.filter(isLater)
    guard later.count == batch.count else {
      delays = 0
      count = min(Self.countMax, count * 2)
      waiting.insert(contentsOf: later, at: 0)
      return nil
    }
    if let alone = later.first, later.count == 1 {
      delays += 1
      if delays == Self.delaysMax {
        delays = 0
        return alone
      }
    } else {
      count = max(1, batch.count / 2)
    }
    waiting.insert(contentsOf: later, at: 0)
    return nil
  }

  /// The batch will not be answered; it is asked for again if there is an occasion.
  package mutating func lost() {
    waiting.insert(contentsOf: asked, at: 0)
    asked = []
  }

  /// Gives up everything that has no answer yet.
  package mutating func giveUp() -> [EncodeTarget] {
    defer {
      asked = []
      waiting = []
    }
    return asked + waiting
  }
}
