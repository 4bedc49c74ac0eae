// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import SystemdSupport

/// The line that the service manager shows: the activity, and a complaint while it applies.
final class StatusLine: Sendable {
  private struct Parts {
    var activity: String?
    var complaint: String?
  }

  private let parts = Mutex(Parts())
  private let notifier: Notifier

  init(_ notifier: Notifier) { self.notifier = notifier }

  func report(_ activity: String) { change { $0.activity = activity } }

  /// - Parameter complaint: `nil` clears the complaint.
  func complain(_ complaint: String?) { change { $0.complaint = complaint } }

  private func change(_ body: (inout Parts) -> Void) {
    parts.withLock { parts in
      let former = parts
      body(&parts)
      guard former.activity != parts.activity || former.complaint != parts.complaint else { return }
      // Sent under the lock, so that the newest line is sent last.
      notifier.send(.status([parts.activity, parts.complaint].compactMap(\.self).joined(separator: "; ")))
    }
  }
}
