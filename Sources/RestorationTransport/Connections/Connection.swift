// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import NIOCore
internal import Synchronization

/// Names a connection within this process; never reused.
package struct ConnectionID: Hashable, Sendable, CustomStringConvertible {
  package let value: UInt64

  package var description: String { String(value) }

  private static let last = Atomic<UInt64>(0)

  static func next() -> ConnectionID { ConnectionID(value: last.wrappingAdd(1, ordering: .relaxed).newValue) }
}

/// One connection to a peer.
///
/// Everything but the constants is used on `eventLoop` only; elsewhere it traps. Output is collected and written at
/// the end of the loop's tick. After the connection has closed, output goes nowhere.
package final class Connection: Sendable {
  package let id: ConnectionID
  package let peer: PeerCredentials
  package let eventLoop: any EventLoop
  private let handler: NIOLoopBound<ConnectionHandler>

  init(peer: PeerCredentials, eventLoop: any EventLoop, handler: ConnectionHandler) {
    self.id = ConnectionID.next()
    (self.peer, self.eventLoop) = (peer, eventLoop)
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
  }

  /// Answers a request. Answers are never dropped while the peer is there; a peer that does not read them is not read.
  package func respond(to call: Conversation.Call, with outcome: Outcome) {
    handler.value.respond(to: call, with: outcome)
  }

  /// The same with the result that `writing` writes as one value, straight into the output.
  package func respond(to call: Conversation.Call, writing: (inout JSONWriter) -> Void) {
    handler.value.respond(to: call, writing: writing)
  }

  /// Sends a notification. Counts against `TransportLimits.outQueueBytesMax`.
  package func notify(method: String, parameters: JSONText?) {
    handler.value.notify(method: method, parameters: parameters)
  }

  /// Sends a notification that may be left out when the peer does not read: false where it was refused, because more
  /// than `TransportLimits.offeredBytesMax` of such would wait. `ConnectionDelegate.hasRoomForOffers` then tells when
  /// to go on. One is always taken when none waits, and when nothing can reach the peer any more.
  package func offer(method: String, parameters: JSONText?) -> Bool {
    handler.value.offer(method: method, parameters: parameters)
  }

  /// Calls the peer and gives the call's id; its answer is delivered, or the call is reported abandoned or void with
  /// the connection. Nil when no answer can come any more. Counts against `TransportLimits.outQueueBytesMax`.
  package func call(method: String, parameters: JSONText?) -> Int? {
    handler.value.call(method: method, parameters: parameters)
  }

  /// No longer expects an answer to a call of ours; one that comes is dropped.
  package func forget(_ callID: Int) { handler.value.conversation.forget(callID) }

  /// Takes a request out of the count of those under way, because its answer depends on others.
  ///
  /// Throws the error to answer with when too many are parked.
  package func park(_ call: Conversation.Call) throws(ErrorObject) { try handler.value.park(call) }

  /// Counts a parked request as under way again.
  package func unpark(_ call: Conversation.Call) { handler.value.conversation.unpark(call) }

  /// The peer's request with that id, while it awaits its answer.
  package func pendingCall(withID id: RequestID) -> Conversation.Call? {
    handler.value.conversation.pendingCall(withID: id)
  }

  /// Stops (or resumes) reading from the peer, for a receiver that has too much to do already.
  package func setInputPaused(_ isPaused: Bool) { handler.value.setInputPaused(isPaused) }

  /// Closes the connection at the end of the tick, `afterOutput` only when the peer has taken all output so far.
  /// Nothing is delivered any more.
  package func close(afterOutput: Bool) { handler.value.beginClosing(.closed, afterOutput: afterOutput) }

  /// Has this told to `ConnectionDelegate.connectionAdopted` where the connection goes on in another process.
  package func setContext(_ context: [UInt8]) { handler.value.setContext(context) }

  /// A notification of the peer has effects that are not durable, or has none such any more: the connection is not
  /// idle meanwhile.
  package func countUnsettled(_ change: Int) { handler.value.countUnsettled(change) }

  /// Whether the peer can be sent calls and notifications; known with its first message. What is sent to one that
  /// cannot is dropped.
  package var canBeCalled: Bool { handler.value.canBeCalled }

  /// Whether output can still reach the peer.
  package var isOpen: Bool { handler.value.isOpen }

  /// What the connection holds now.
  package var usage: ConnectionUsage { handler.value.usage }
}

/// What one connection holds now.
package struct ConnectionUsage: Hashable, Sendable {
  /// Input in bytes that is not decoded yet.
  package var inputBytes = 0
  /// Requests in bytes that were read while too many were under way.
  package var heldBackBytes = 0
  /// Answers in bytes that the peer has not taken yet.
  package var replyBytes = 0
  /// Notifications and calls in bytes that the peer has not taken yet.
  package var unsolicitedBytes = 0
  /// Offered notifications in bytes that the peer has not taken yet.
  package var offeredBytes = 0
  /// Whether nothing more is read from the peer for now.
  package var isPaused = false
}
