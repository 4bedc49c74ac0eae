// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Cancels calls. A call that is done already, or cannot be stopped, is answered as usual.
extension BrokerCore {
  package mutating func cancelled(_ caller: Caller, at now: Moment) {
    context.now = now
    if let client = clients[caller.client], client.queue.contains(where: { $0.caller == caller }) {
      // It never begins; it is refused in its turn, so later messages keep their order.
      client.cancelled.insert(caller)
    } else if clients[caller.client]?.applications.contains(where: { applications[$0]?.settled.cancel(caller) == true })
      == true
    {
      refuseCancelled(caller)
    }
  }

  mutating func refuseCancelled(_ caller: Caller) {
    let error = ErrorObject.requestCancelled(hint: "The client cancelled the call by $/cancelRequest.")
    context.emit(.respond(caller, .error(error)))
  }
}

extension Application {
  /// - Returns: whether the caller was waiting.
  func cancel(_ caller: Caller) -> Bool {
    cancelSaving(caller) || restoring.leave(caller, in: &turn) || cancelPoll(caller)
      || parentWaits.cancel(caller, in: &turn)
      || trials.cancel(caller, in: &turn) || jobs.cancel(caller, in: &turn)
  }
}
