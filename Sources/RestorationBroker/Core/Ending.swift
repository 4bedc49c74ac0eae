// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// The broker is ending: callers need not wait for what the next broker can do.
extension BrokerCore {
  /// Ends all waits. Calls in progress are answered when they are done.
  package mutating func endWaiting(at now: Moment) {
    context.now = now
    context.isEnding = true
    for application in applications.values.sorted(by: { $0.id < $1.id }) { application.settled.endWaiting() }
    for client in clients.values.filter(\.isImporting).sorted(by: { $0.id < $1.id }) { goOnImporting(client) }
  }
}

extension Application {
  fileprivate func endWaiting() {
    let error = ErrorObject.shuttingDown()
    endPolls()
    parentWaits.abandon(for: error, in: &turn) { _ in true }
    trials.abandon(for: error, in: &turn) { _ in true }
    abandonRestoration(for: error)
    for number in resolver.numbers { finishResolution(number) }
    jobs.cancelAll(for: error, in: &turn)
  }
}
