// SPDX-License-Identifier: Apache-2.0

/// Accounts of what clients and calls hold in the broker, by name. If every client has left, its sessions have ended
/// and nothing is under way, each is zero; the rest was leaked.
package typealias Holdings = [String: Int]

extension Holdings {
  /// The sums of all accounts that are not empty.
  package static func sum(_ all: Holdings...) -> Holdings {
    all.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }.filter { $0.value != 0 }
  }

  package init(of core: BrokerCore) {
    let queued = core.clients.values.reduce(0) { $0 + $1.queue.count + $1.cancelled.count }
    let uploads = core.clients.values.count { $0.upload != nil }
    self = core.applications.values.reduce(
      into: [
        "clients": core.clients.count, "messages that wait": queued, "imports in parts": uploads,
        "subscriptions": core.context.subscriptions.held,
      ]
    ) { $0.merge(Holdings(of: $1), uniquingKeysWith: +) }
  }

  private init(of application: Application) {
    self = [
      "sessions": application.sessions.held, "waits for parents": application.parentWaits.count,
      "calls to clients": application.calls.count, "archive jobs": application.jobs.held,
      "saving": application.saving.held, "restoring": application.restoring.held,
      "deliveries": application.deliveries.held, "providers": application.providers.held,
      "elements": application.resolver.count, "decodes on trial": application.trials.held,
      "growth that is not counted": application.budget.held,
      "facts": application.turn.fact == nil ? 0 : 1,
      "long turns": application.turn.isLong ? 1 : 0,
    ]
  }
}
