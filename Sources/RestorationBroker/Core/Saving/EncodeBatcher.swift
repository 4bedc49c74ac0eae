// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
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
  /// Of the session.
  fileprivate let batchBytesMax: Int

  package init(node: NodeID, handle: ObjectHandle, session: SessionID, bytes: Int, batchBytesMax: Int) {
    (self.node, self.handle, self.session, self.bytes) = (node, handle, session, bytes)
    self.batchBytesMax = batchBytesMax
  }

  /// Nil if there is no session to ask.
  init?(_ node: Node, _ ancestry: inout Ancestry, _ sessions: SessionTable, frameBytesMax: Int) {
    guard let claim = node.claim, let owner = sessions[claim.session], !owner.isDiscarded,
      owner.serves(.encodeRestorableStateWithCoder)
    else { return nil }
    let bytes = ancestry.jsonBytes(of: node) + 64 + (node.state?.bytes ?? 0)
    let batchBytesMax = owner.batchBytesMax(frameBytesMax: frameBytesMax)
    self.init(node: node.id, handle: claim.handle, session: owner.id, bytes: bytes, batchBytesMax: batchBytesMax)
  }
}

/// Why an owner that was asked gave no state.
package struct EncodeRefusal: Hashable, Sendable {
  /// A word of `StaleObject`.
  package let why: String
  /// The same for subscribers, if no round asked.
  package let failure: EncodeFailed.Failure
  /// What the owner says about it.
  package let message: String?

  package init(_ cause: StaleObject.Cause, message: String? = nil) {
    (why, self.message) = (cause.rawValue, message)
    failure =
      switch cause {
      case .late: .init(code: ErrorCode.timedOut.rawValue, kind: ErrorCode.timedOut.kind)
      case .failed: .init(code: -32603, kind: cause.rawValue)
      case .malformed, .missing, .ended, .disconnected: .init(code: -32602, kind: cause.rawValue)
      }
  }

  init(_ error: ErrorObject) { (why, failure, message) = (error.kind, .init(error), nil) }
}

/// Which states sessions are asked for: all sessions at the same time, each one batch after the other.
package struct EncodeBatcher: Hashable, Sendable {
  /// What an answer says about one object.
  package enum Fate: Hashable, Sendable {
    /// There is a state that passes, or nothing has changed.
    case encoded
    /// To be asked for again.
    case later
    case refused(EncodeRefusal)
  }

  /// An object whose state did not come; `refusal` is nil if its session was lost.
  package struct Stale: Hashable, Sendable {
    package let target: EncodeTarget
    package let refusal: EncodeRefusal?

    package init(target: EncodeTarget, _ refusal: EncodeRefusal?) { (self.target, self.refusal) = (target, refusal) }
  }

  private var queues: [SessionID: Queue] = [:]
  /// Sessions that cannot be asked now.
  private var absent: Set<SessionID> = []

  package init() {}

  package var isAsking: Bool { queues.values.contains { !$0.asked.isEmpty } }

  package func isAbsent(_ session: SessionID) -> Bool { absent.contains(session) }

  /// The batch that the session is to answer.
  package func asked(of session: SessionID) -> [EncodeTarget] { queues[session]?.asked ?? [] }

  /// Everything that the session has not answered.
  package func unanswered(by session: SessionID) -> [EncodeTarget] { queues[session]?.unanswered ?? [] }

  /// By session.
  package var unanswered: [EncodeTarget] { queues.keys.sorted().flatMap { unanswered(by: $0) } }

  package var count: Int { queues.values.reduce(0) { $0 + $1.asked.count + $1.waiting.count } }

  /// Zero if no session is to be asked, or has been.
  package var held: Int { queues.count + absent.count }

  // MARK: Asking

  package mutating func add(_ target: EncodeTarget) { queues[target.session, default: Queue()].waiting.append(target) }

  /// The batches that are to be asked for now.
  package mutating func next() -> [(session: SessionID, batch: [EncodeTarget])] {
    var batches: [(SessionID, [EncodeTarget])] = []
    for session in queues.keys.sorted() where !absent.contains(session) {
      if let batch = queues[session]?.next() { batches.append((session, batch)) }
    }
    return batches
  }

  /// A session has answered its batch. An object that it does not mention is missing.
  ///
  /// - Returns: what is not asked for again although there is no state.
  package mutating func answered(_ session: SessionID, _ fates: [NodeID: Fate]) -> [Stale] {
    var stale = asked(of: session).compactMap { target -> Stale? in
      switch fates[target.node] {
      case .encoded, .later: nil
      case .refused(let refusal): Stale(target: target, refusal)
      case nil: Stale(target: target, EncodeRefusal(.missing))
      }
    }
    if let late = queues[session]?.answered(later: { fates[$0.node] == .later }) {
      stale.append(Stale(target: late, EncodeRefusal(.late)))
    }
    return stale
  }

  /// The batch will not be answered; it is asked for again when the session is back.
  ///
  /// - Parameter isBack: it is already, by another connection.
  package mutating func lost(_ session: SessionID, isBack: Bool) {
    queues[session]?.lost()
    if !isBack { absent.insert(session) }
  }

  package mutating func resumed(_ session: SessionID) { absent.remove(session) }

  /// Gives up everything that has no answer yet.
  package mutating func giveUp() -> [Stale] { queues.keys.sorted().flatMap { giveUp($0) } }

  package mutating func giveUp(_ session: SessionID) -> [Stale] {
    let refusal = absent.contains(session) ? nil : EncodeRefusal(.late)
    return (queues.removeValue(forKey: session)?.unanswered ?? []).map { Stale(target: $0, refusal) }
  }

  /// The session has ended.
  package mutating func forget(_ session: SessionID) {
    queues[session] = nil
    absent.remove(session)
  }

  /// The objects that one session is to be asked for, in their order.
  private struct Queue: Hashable {
    /// Objects of one batch at most.
    static let countMax = 64
    /// So often one object alone may be put off in a row.
    static let delaysMax = 3

    var waiting: [EncodeTarget] = []
    /// The batch that has no answer yet.
    var asked: [EncodeTarget] = []
    var count = countMax
    var delays = 0

    var unanswered: [EncodeTarget] { asked + waiting }

    /// The batch to ask for now; nil while one is asked for, and if none waits.
    mutating func next() -> [EncodeTarget]? {
      guard asked.isEmpty, let bytesMax = waiting.first?.batchBytesMax else { return nil }
      var bytes = 0
      var end = 0
      // A single object may be larger.
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
    mutating func answered(later isLater: (EncodeTarget) -> Bool) -> EncodeTarget? {
      let later = asked.filter(isLater)
      let isInVain = later.count == asked.count
      asked = []
      if !isInVain {
        delays = 0
        count = min(Self.countMax, count * 2)
      } else if let alone = later.first, later.count == 1 {
        delays += 1
        if delays == Self.delaysMax {
          delays = 0
          return alone
        }
      } else {
        count = max(1, later.count / 2)
      }
      waiting.insert(contentsOf: later, at: 0)
      return nil
    }

    mutating func lost() {
      waiting.insert(contentsOf: asked, at: 0)
      asked = []
    }
  }
}
