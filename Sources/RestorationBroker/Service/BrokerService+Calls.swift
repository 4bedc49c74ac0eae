// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire

/// The broker's own calls to clients.
///
/// The core hears of each exactly once, unless it ended the call itself or its client has disconnected.
extension BrokerService {
  func call(_ client: ClientID, _ call: PendingCall, _ method: String, _ parameters: JSONText) {
    guard let callID = connections[client]?.call(method: method, parameters: parameters) else {
      core.callEnded(call.application, call.number, .lost, at: clock.now)
      return
    }
    calls[client, default: [:]][callID] = call
  }

  func endCall(_ client: ClientID, _ call: PendingCall) {
    guard let callID = calls[client]?.first(where: { $0.value == call })?.key else { return }
    calls[client]?[callID] = nil
    connections[client]?.forget(callID)
  }

  func answered(_ callID: Int, _ answer: CallAnswer, by client: ClientID) {
    guard let call = calls[client]?.removeValue(forKey: callID) else { return }
    handle { $0.callEnded(call.application, call.number, answer, at: $1) }
  }

  /// A client does not want the answer to a call of its own any more.
  func cancel(_ parameters: Parameters, of client: ClientID) {
    guard let id = CancelRequest(parameters)?.id, let call = connections[client]?.pendingCall(withID: id)
    else { return }
    handle { $0.cancelled(Caller(client: client, call: call), at: $1) }
  }

  func abandoned(_ callIDs: [Int], by client: ClientID) {
    for callID in callIDs {
      guard let call = calls[client]?.removeValue(forKey: callID) else { continue }
      handle { $0.callEnded(call.application, call.number, .lost, at: $1) }
    }
  }
}
