// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Takes what connections receive.
///
/// Always called on the connection's event loop, and never from inside a method of `Connection`: an actor whose
/// executor is that loop may implement these as `nonisolated` and enter itself by `assumeIsolated`.
package protocol ConnectionDelegate: AnyObject, Sendable {
  /// First call for a connection.
  func connectionOpened(_ connection: Connection)

  /// First call for a connection that the process before had, with what it last gave to `setContext`.
  ///
  /// - Parameter afterKill: that process was killed; else it has ended in order.
  func connectionAdopted(_ connection: Connection, context: [UInt8], afterKill: Bool)

  /// One message, in the order of arrival. `closeAfterOutput` is never delivered.
  func received(_ delivery: Conversation.Delivery, from connection: Connection)

  /// The peer has ended its input: these calls of ours will never be answered. Its own requests still are.
  func callsAbandoned(_ callIDs: [Int], by connection: Connection)

  /// The peer has taken so much that notifications may be offered again; called once after one or more were refused.
  func hasRoomForOffers(_ connection: Connection)

  /// Last call for a connection; whatever it still owed or was owed is void.
  func connectionClosed(_ connection: Connection, reason: CloseReason)
}

extension ConnectionDelegate {
  package func connectionAdopted(_ connection: Connection, context: [UInt8], afterKill: Bool) {
    connectionOpened(connection)
  }

  package func hasRoomForOffers(_ connection: Connection) {}
}

/// Why a connection has ended.
package enum CloseReason: Hashable, Sendable {
  /// The peer closed it or has ended.
  case peerClosed
  /// `Connection.close` was called.
  case closed
  /// The peer does not speak the protocol, or broke it beyond repair.
  case protocolFault
  /// A frame stayed incomplete for too long.
  case partialFrame
  /// The peer did not take our notifications and calls.
  case outputOverflow
}
