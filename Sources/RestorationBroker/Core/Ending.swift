// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// The broker is ending: callers do not wait for what the next broker can do.
extension BrokerCore {
  /// Ends all waits. Calls in progress are answered when they are done.
  package mutating func endWaiting(at now: Moment) {
    context.now = now
    context.isEnding = true
    let error = ErrorObject.shuttingDown()
    for application in applications.values.sorted(by: { $0.id < $1.id }) {
      application.settled.endWaiting(for: error)
      application.jobs.cancelAll(for: error, in: &application.turn)
    }
    for client in clients.values.filter(\.isImporting).sorted(by: { $0.id < $1.id }) { goOnImporting(client) }
  }
}

extension Application {
  /// Refuses callers that wait for other processes.
  func endWaiting(for error: ErrorObject) {
    endPolls()
    parentWaits.abandon(for: error, in: &turn) { _ in true }
    trials.abandon(for: error, in: &turn) { _ in true }
    abandonRestoration(for: error)
    for number in resolver.numbers { finishResolution(number) }
  }
}
