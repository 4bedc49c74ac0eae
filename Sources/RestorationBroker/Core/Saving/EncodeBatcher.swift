// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
package import RestorationWire

/// An object to ask its owner for.
package struct EncodeTarget: Hashable, Sendable {
  package let node: NodeID
  /// The claim it is asked under: an answer of an owner that has lost it since does not count.
  package let handle: ObjectHandle
  package let session: SessionID
  /// Approximate bytes in the call and its answer.
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
  /// The same for the owner itself and for subscribers.
  package let failure: EncodeFailed.Failure
  package let message: String?
  /// Whether the owner is to be told, because it may not know.
  let isNews: Bool

  /// - Parameter fault: why its answer was never read.
  package init(_ cause: StaleObject.Cause, message: String? = nil, fault: ErrorCode? = nil) {
    (why, self.message) = (cause.rawValue, message)
    failure =
      switch cause {
      case .late: .init(code: ErrorCode.timedOut.rawValue, kind: ErrorCode.timedOut.kind)
      case .failed: .init(code: fault?.rawValue ?? -32603, kind: fault?.kind ?? cause.rawValue)
      case .malformed, .missing, .ended, .disconnected: .init(code: -32602, kind: cause.rawValue)
      }
    isNews = fault != nil || [.late, .malformed, .missing].contains(cause)
  }

  init(_ error: ErrorObject) { (why, failure, message, isNews) = (error.kind, .init(error), nil, true) }
}

/// Asks all sessions for states at the same time, each one batch after the other.
package struct EncodeBatcher: Hashable, Sendable {
  /// The answer's outcome for one object.
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

  package typealias Batch = (session: SessionID, batch: [EncodeTarget])

  private var queues: [SessionID: Queue] = [:]
  /// Sessions that cannot be asked now.
  private var absent: Set<SessionID> = []

  package init() {}

  package var isAsking: Bool { queues.values.contains { !$0.asked.isEmpty } }

  package func isAbsent(_ session: SessionID) -> Bool { absent.contains(session) }

  /// The session's unanswered batch.
  package func asked(of session: SessionID) -> [EncodeTarget] { queues[session]?.asked ?? [] }

  package func unanswered(by session: SessionID) -> [EncodeTarget] { queues[session]?.unanswered ?? [] }

  /// In the order of sessions.
  package var unanswered: [EncodeTarget] { queues.keys.sorted().flatMap { unanswered(by: $0) } }

  package var count: Int { queues.values.reduce(0) { $0 + $1.asked.count + $1.waiting.count } }

  /// Zero if no session is asked or absent.
  package var held: Int { queues.count + absent.count }

  // MARK: Asking

  package mutating func add(_ target: EncodeTarget) { queues[target.session, default: Queue()].waiting.append(target) }

  /// The batches to ask for now.
  package mutating func next() -> [Batch] {
    queues.keys.sorted().compactMap { session in
      absent.contains(session) ? nil : queues[session]?.next().map { (session, $0) }
    }
  }

  /// A session has answered its batch; objects that it omits are missing. Returns objects given up without a state.
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

  /// The batch gets no answer, and is asked for again when the session is back; `isBack`: it is back already.
  package mutating func lost(_ session: SessionID, isBack: Bool) {
    queues[session]?.lost()
    if !isBack { absent.insert(session) }
  }

  package mutating func resumed(_ session: SessionID) { absent.remove(session) }

  package mutating func giveUp() -> [Stale] { queues.keys.sorted().flatMap { giveUp($0) } }

  package mutating func giveUp(_ session: SessionID) -> [Stale] {
    let refusal = absent.contains(session) ? nil : EncodeRefusal(.late)
    return (queues.removeValue(forKey: session)?.unanswered ?? []).map { Stale(target: $0, refusal) }
  }

  package mutating func forget(_ session: SessionID) {
    queues[session] = nil
    absent.remove(session)
  }

  /// The objects to ask one session for, in order.
  private struct Queue: Hashable {
    /// The most objects of a batch.
    static let countMax = 64
    /// How often in a row a single object may be put off.
    static let delaysMax = 3

    var waiting: [EncodeTarget] = []
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

    /// Ends the batch; objects put off come first in the next one. It is halved if nothing came, because the answer may
    /// be too long. Returns an object that was put off too often, and is given up.
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
