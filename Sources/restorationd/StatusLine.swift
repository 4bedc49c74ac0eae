// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import SystemdSupport

/// The line that the service manager shows: what there is, and what the broker complains of as long as it is so.
final class StatusLine: Sendable {
  private struct Parts {
    var activity: String?
    var complaint: String?
  }

  private let parts = Mutex(Parts())
  private let notifier: Notifier

  init(_ notifier: Notifier) { self.notifier = notifier }

  func report(_ activity: String) { change { $0.activity = activity } }

  /// - Parameter complaint: nil where there is nothing to complain of any more.
  func complain(_ complaint: String?) { change { $0.complaint = complaint } }

  private func change(_ body: (inout Parts) -> Void) {
    parts.withLock { parts in
      let former = parts
      body(&parts)
      guard former.activity != parts.activity || former.complaint != parts.complaint else { return }
      // Sent in here, so that the line that was made last is also the last to be sent.
      notifier.send(.status([parts.activity, parts.complaint].compactMap(\.self).joined(separator: "; ")))
    }
  }
}
