// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What another process has to know to go on with a connection, beside its socket.
package struct ConnectionSnapshot: Hashable, Sendable {
  /// Nil where the peer has not sent enough to tell.
  package var framing: Framing?
  /// Our calls to the peer so far.
  package var callsMade = CallsMade()
  /// What the connection's delegate wants to know again.
  package var context: [UInt8] = []
  /// What was read and not taken in.
  package var input: [UInt8] = []
  /// What the peer is still to be sent.
  package var output: [UInt8] = []
  /// The connection ends when the peer has taken that.
  package var isClosing = false
  /// The process before was killed: what was not durable is gone, and nobody knows what peers have not been told.
  package var wasKilled = false

  package init(framing: Framing? = nil, callsMade: CallsMade = CallsMade()) {
    (self.framing, self.callsMade) = (framing, callsMade)
  }
}

extension ConnectionSnapshot {
  /// The framing as it is written down.
  var framingNumber: UInt64 {
    switch framing {
    case nil: 0
    case .jsonStream: 1
    case .contentLength: 2
    case .http: 3
    }
  }

  /// Nil for a number that means nothing to us.
  static func framing(_ number: UInt64) -> Framing?? {
    switch number {
    case 0: .some(nil)
    case 1: .jsonStream
    case 2: .contentLength
    case 3: .http(keepsAlive: true)
    default: nil
    }
  }
}
