// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Calls of the broker to clients that have not ended.
///
/// Invariant: a call exists until its answer is accepted, lost or no longer needed; a later answer is dropped.
package struct OutgoingCalls {
  private var calls: [CallNumber: PendingCall] = [:]

  package init() {}

  package var isEmpty: Bool { calls.isEmpty }
  package var count: Int { calls.count }

  package subscript(number: CallNumber) -> PendingCall? { calls[number] }

  /// In the order of the calls.
  package func numbers(where isMeant: (PendingCall) -> Bool) -> [CallNumber] {
    calls.isEmpty ? [] : calls.filter { isMeant($0.value) }.keys.sorted()
  }

  /// Adds a call. If it has no client, the session fetches it by `nextRequest`.
  package mutating func make(
    _ call: PendingCall,
    _ method: String,
    _ parameters: JSONText,
    in turn: inout Turn
  ) -> CallNumber {
    let number = turn.nextCallNumber()
    calls[number] = call
    if let client = call.client { send(number, method, parameters, over: client, in: &turn) }
    return number
  }

  /// Sends a call over a connection, because the session has not fetched it.
  package mutating func send(
    _ number: CallNumber,
    _ method: String,
    _ parameters: JSONText,
    over client: ClientID,
    in turn: inout Turn
  ) {
    calls[number]?.client = client
    turn.ask(.call(turn.application, number, client, method: method, parameters: parameters))
  }

  package mutating func end(_ number: CallNumber) -> PendingCall? { calls.removeValue(forKey: number) }

  /// Removes a call whose answer is no longer needed.
  package mutating func giveUp(_ number: CallNumber, in turn: inout Turn) -> PendingCall? {
    guard let call = calls.removeValue(forKey: number) else { return nil }
    if let client = call.client { turn.ask(.endCall(client, number, of: turn.application)) }
    return call
  }
}
