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
/// Everything but the constants is used on `eventLoop` only; elsewhere it traps. Output is collected, and written at
/// the end of the loop's tick. After the connection has closed, output is dropped.
package final class Connection: Sendable {
  package let id: ConnectionID
  package let peer: PeerCredentials
  /// The application to which the delegate confines the peer (`PeerConfining`). `nil` for an adopted connection, whose
  /// context contains it.
  package let confinement: String?
  package let eventLoop: any EventLoop
  private let handler: NIOLoopBound<ConnectionHandler>

  init(peer: PeerCredentials, confinement: String?, eventLoop: any EventLoop, handler: ConnectionHandler) {
    self.id = ConnectionID.next()
    (self.peer, self.confinement, self.eventLoop) = (peer, confinement, eventLoop)
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
  }

  /// Answers a request. Answers are never dropped while the connection is open. While the peer does not read its
  /// answers, its requests are not read.
  package func respond(to call: Conversation.Call, with outcome: Outcome) {
    handler.value.respond(to: call, with: outcome)
  }

  /// Answers a request; `writing` writes the result as one value into the output.
  package func respond(to call: Conversation.Call, writing: (inout JSONWriter) -> Void) {
    handler.value.respond(to: call, writing: writing)
  }

  /// Answers a request for a page; an unavailable one is answered with an error.
  package func respond(to call: Conversation.Call, mediaType: String, page: String) {
    handler.value.respond(to: call, mediaType: mediaType, page: page)
  }

  /// Announces an answer of about this many bytes, which count as if they were there.
  package func expect(_ bytes: Int, from call: Conversation.Call) { handler.value.expect(bytes, from: call) }

  /// Whether a waiting request may begin.
  package enum Admission {
    case granted
    /// Earlier answers must go first; `ConnectionDelegate.hasRoomForReplies` says when to ask again.
    case later
    case refused
  }

  package func admit(_ call: Conversation.Call) -> Admission { handler.value.admitWaiting(call) }

  /// Sends a notification. Counts against `TransportLimits.outQueueBytesMax`.
  package func notify(method: String, parameters: JSONText?) {
    handler.value.notify(method: method, parameters: parameters)
  }

  /// Sends a notification that may be dropped if the peer does not read. Returns false if it was refused, because more
  /// than `TransportLimits.offeredBytesMax` of offers would wait; `ConnectionDelegate.hasRoomForOffers` then says when
  /// to try again. An offer is always accepted if no other waits, or if nothing can reach the peer.
  package func offer(method: String, parameters: JSONText?) -> Bool {
    handler.value.offer(method: method, parameters: parameters)
  }

  /// Calls the peer and returns the call's id; `nil` if no answer can come. The answer is delivered, unless the call is
  /// reported abandoned or the connection closes. Counts against `TransportLimits.outQueueBytesMax`.
  package func call(method: String, parameters: JSONText?) -> Int? {
    handler.value.call(method: method, parameters: parameters)
  }

  /// Reads only the rest of a frame that has begun.
  package func drain() { handler.value.drain() }

  /// Leaves the connection to the process that continues it (`ConnectionSettings.install`); `nil` if an answer is owed.
  package func leave() -> ConnectionSnapshot? { handler.value.leave() }

  /// Drops the answer to a call of ours when it comes.
  package func forget(_ callID: Int) { handler.value.conversation.forget(callID) }

  package func awaitsAnswer(to callID: Int) -> Bool { handler.value.conversation.awaitsAnswer(to: callID) }

  /// Stops counting a request as in flight, because its answer depends on others.
  ///
  /// Throws the error to answer with if too many requests are parked.
  package func park(_ call: Conversation.Call) throws(ErrorObject) { try handler.value.park(call) }

  /// Counts a parked request as in flight again.
  package func unpark(_ call: Conversation.Call) { handler.value.conversation.unpark(call) }

  /// The unanswered request with that id.
  package func pendingCall(withID id: RequestID) -> Conversation.Call? {
    handler.value.conversation.pendingCall(withID: id)
  }

  /// Whether the peer can receive nothing more; its earlier messages are still delivered.
  package var isGone: Bool { handler.value.isGone }

  /// Pauses or resumes reading from the peer, for a receiver that has too much to do.
  package func setInputPaused(_ isPaused: Bool) { handler.value.setInputPaused(isPaused) }

  /// Stops delivering, and closes the connection at the end of the tick, or with `afterOutput` once the kernel has
  /// taken all output so far.
  package func close(afterOutput: Bool) { handler.value.beginClosing(.closed, afterOutput: afterOutput) }

  /// Stores the context that `ConnectionDelegate.connectionAdopted` gets if another process adopts the connection.
  package func setContext(_ context: [UInt8]) { handler.value.setContext(context) }

  /// Counts notifications of the peer whose effects are not durable yet. Until they are, the connection is not idle.
  package func countUnsettled(_ change: Int) { handler.value.countUnsettled(change) }

  /// Whether the peer can be sent calls and notifications; otherwise they are dropped. Known after its first message.
  package var canBeCalled: Bool { handler.value.canBeCalled }

  /// Whether another request of the peer's process may be parked.
  package var mayPark: Bool { !handler.value.account.isOver }

  package var isOpen: Bool { handler.value.isOpen }

  package var usage: ConnectionUsage { handler.value.usage }
}

package struct ConnectionUsage: Hashable, Sendable {
  /// Not decoded yet.
  package var inputBytes = 0
  /// Requests that were read while too many were in flight.
  package var heldBackBytes = 0
  /// Answers that the peer has not taken, or that are not finished.
  package var replyBytes = 0
  /// Notifications and calls that the peer has not taken.
  package var unsolicitedBytes = 0
  package var offeredBytes = 0
  package var isPaused = false
}
