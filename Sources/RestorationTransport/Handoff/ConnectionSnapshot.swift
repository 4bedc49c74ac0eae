// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The state that another process needs to adopt a connection, besides its socket.
package struct ConnectionSnapshot: Hashable, Sendable {
  /// `nil` if the peer has not sent enough to decide it.
  package var framing: Framing?
  package var callsMade = CallsMade()
  package var context: [UInt8] = []
  package var input: [UInt8] = []
  package var output: [UInt8] = []
  /// Whether the connection ends after that output.
  package var isClosing = false
  /// Whether the former process was killed: non-durable changes are lost, and what the peers were told is unknown.
  package var wasKilled = false

  package init(framing: Framing? = nil, callsMade: CallsMade = CallsMade()) {
    (self.framing, self.callsMade) = (framing, callsMade)
  }
}

extension ConnectionSnapshot {
  /// The framing in a ledger.
  var framingNumber: UInt64 {
    switch framing {
    case nil: 0
    case .jsonStream: 1
    case .contentLength: 2
    case .http: 3
    }
  }

  /// `nil` if the number is unknown.
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
