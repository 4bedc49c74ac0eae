// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One connection's page of a `ConnectionLedger`. Used on the connection's event loop only.
package final class ConnectionPage {
  package let key: UInt64
  private let number: Int
  private let ledger: ConnectionLedger
  private var isBusy = true
  /// A connection with more of it can only be handed over in order.
  private var contextFits = true

  init(key: UInt64, number: Int, ledger: ConnectionLedger) {
    (self.key, self.number, self.ledger) = (key, number, ledger)
  }

  /// What is stored beside the page: the connection's socket, under this name.
  var name: String { Self.namePrefix + String(key) }

  private static let namePrefix = "connection-"

  /// The key of a stored connection; nil for any other name.
  static func key(ofName name: String) -> UInt64? {
    name.hasPrefix(namePrefix) ? UInt64(name.dropFirst(namePrefix.count)) : nil
  }

  /// To be called before a byte is read or sent.
  @inline(__always)
  package func markBusy() {
    guard !isBusy else { return }
    isBusy = true
    ledger.setState(.busy, page: number)
  }

  /// Nothing of the connection is in this process.
  package func markIdle(framing: Framing?, callsMade: CallsMade) {
    guard isBusy, contextFits else { return }
    ledger[number, .framing] = ConnectionSnapshot(framing: framing).framingNumber
    ledger[number, .lastCall] = UInt64(callsMade.lastID)
    ledger[number, .unanswered] = UInt64(callsMade.unanswered)
    isBusy = false
    ledger.setState(.idle, page: number)
  }

  /// The page says `busy` afterwards.
  package func setContext(_ context: [UInt8]) {
    markBusy()
    contextFits = context.count <= ConnectionLedger.contextBytesMax
    if contextFits { ledger.setContext(context, page: number) }
  }

  package func handOver(_ record: ConnectionSnapshot) throws(TransportError) {
    try TransportError.reporting("cannot hand over a connection", calling: try ledger.handOver(record, page: number))
  }

  /// The connection has ended.
  package func release() { ledger.release(number) }
}
