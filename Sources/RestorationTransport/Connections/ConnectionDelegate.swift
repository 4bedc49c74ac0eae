// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Receives the messages of connections.
///
/// Always called on the connection's event loop, and never from inside a method of `Connection`. An actor whose
/// executor is that loop may therefore implement these as `nonisolated` and enter itself by `assumeIsolated`.
package protocol ConnectionDelegate: AnyObject, Sendable {
  func connectionOpened(_ connection: Connection)

  /// First call for a connection of the former process, with the context that process stored last.
  ///
  /// - Parameter afterKill: whether the former process was killed; otherwise it ended in order.
  func connectionAdopted(_ connection: Connection, context: [UInt8], afterKill: Bool)

  /// The confinement of such a connection, in the form of `Connection.confinement`.
  func confinement(inContext context: [UInt8]) -> String?

  /// One message, in the order of arrival. `closeAfterOutput` is never delivered.
  func received(_ delivery: Conversation.Delivery, from connection: Connection)

  /// The peer takes no calls, or could not read one. The connection closes as `protocolFault`; `error` is the peer's.
  func refused(_ error: JSONSlice, by connection: Connection)

  /// An HTTP request for one of `ConnectionSettings.pages`. Answer it exactly once.
  func requested(_ page: String, _ call: Conversation.Call, from connection: Connection)

  /// The peer has ended its input, so these calls of ours will never be answered. Its own requests are still answered.
  func callsAbandoned(_ callIDs: [Int], by connection: Connection)

  /// Notifications can be offered again. Called once after offers were refused.
  func hasRoomForOffers(_ connection: Connection)

  /// Requests may begin again. Called once after `Connection.admit` returned `later`.
  func hasRoomForReplies(_ connection: Connection)

  /// Last call for a connection; all pending calls in both directions are void.
  func connectionClosed(_ connection: Connection, reason: CloseReason)
}

extension ConnectionDelegate {
  package func connectionAdopted(_ connection: Connection, context: [UInt8], afterKill: Bool) {
    connectionOpened(connection)
  }

  package func confinement(inContext context: [UInt8]) -> String? { nil }

  package func requested(_ page: String, _ call: Conversation.Call, from connection: Connection) {
    connection.respond(to: call, with: .error(.invalidRequest(hint: "There is nothing at \(page).")))
  }

  package func refused(_ error: JSONSlice, by connection: Connection) {}

  package func hasRoomForOffers(_ connection: Connection) {}

  package func hasRoomForReplies(_ connection: Connection) {}
}

package enum CloseReason: Hashable, Sendable {
  /// The peer closed the connection, or its process ended.
  case peerClosed
  case closed
  /// The peer does not speak the protocol, or violated it irrecoverably.
  case protocolFault
  case partialFrame
  /// The peer did not take our notifications and calls.
  case outputOverflow
}
