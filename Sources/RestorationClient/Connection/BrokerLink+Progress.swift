// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Who is told how far a call has come.
extension BrokerLink {
  /// A token for the calls of one operation; what the broker tells under it goes to `handler`.
  func add(_ handler: @escaping ArchiveProgress.Handler) -> ProgressToken {
    lastProgress += 1
    let token = ProgressToken("progress-\(lastProgress)")
    progressHandlers[token] = handler
    return token
  }

  func removeProgress(_ token: ProgressToken?) {
    if let token { progressHandlers[token] = nil }
  }

  /// Whether the notification is about progress; it is told to who asked for it.
  func tellProgress(_ notification: JSONRPC.Notification) -> Bool {
    guard notification.method == ArchiveProgress.method.rawValue else { return false }
    if notification.fault == nil, case .named(let parameters) = notification.parameters,
      let progress = try? ArchiveProgress(wire: parameters)
    {
      progressHandlers[progress.progressToken]?(progress)
    }
    return true
  }
}
