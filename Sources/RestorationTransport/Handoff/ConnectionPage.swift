// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One connection's page of a `ConnectionLedger`. Used on the connection's event loop only.
package final class ConnectionPage {
  package let key: UInt64
  private let number: Int
  private let ledger: ConnectionLedger
  private(set) var isBusy: Bool
  /// Otherwise the connection can be handed over only if the process ends in order.
  private var contextFits = true

  init(key: UInt64, number: Int, isBusy: Bool, ledger: ConnectionLedger) {
    (self.key, self.number, self.isBusy, self.ledger) = (key, number, isBusy, ledger)
  }

  /// The name under which the connection's socket is stored.
  var name: String { Self.namePrefix + String(key) }

  private static let namePrefix = "connection-"

  /// The key of a stored connection; `nil` for any other name.
  static func key(ofName name: String) -> UInt64? {
    name.hasPrefix(namePrefix) ? UInt64(name.dropFirst(namePrefix.count)) : nil
  }

  /// Called before a byte is read or sent.
  @inline(__always)
  package func markBusy() {
    guard !isBusy else { return }
    isBusy = true
    ledger.setState(.busy, page: number)
  }

  /// This process holds nothing of the connection.
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

  package func release() { ledger.release(number) }
}
