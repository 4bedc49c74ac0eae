// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import Synchronization

/// Shipping in the background, apart from writing and closing.
extension ReplicatedStore {
  /// The pause after the replica did not answer, before former brokers' changes are looked for again.
  private static let leftPause: Int64 = 30_000

  package func sendLeft() {
    context.start { [weak self] in
      guard let applications = try? await self?.context.base.noted() else { return }
      await self?.sendLeft(applications)
    }
  }

  private func sendLeft(_ applications: [String]) async {
    guard !applications.isEmpty, context.stopping.withLock({ $0 == nil }) else { return }
    isSendingLeft.withLock { $0 = true }
    defer { isSendingLeft.withLock { $0 = false } }
    var rest = applications
    if case .success(let summaries) = await context.look() {
      let elsewhere = Set(summaries.filter { $0.isElsewhere(host) }.map(\.application))
      while context.stopping.withLock({ $0 == nil }), let application = rest.last {
        if !elsewhere.contains(application), await !archive(application).sendLeft() { break }
        rest.removeLast()
      }
    }
    guard !rest.isEmpty else { return }
    context.clock.wake(Self.leftPause) { [weak self, rest] in
      guard let self else { return }
      context.start { await self.sendLeft(rest) }
    }
  }

  package nonisolated var isShipping: Bool { isSendingLeft.withLock { $0 } || all.contains(where: \.isShipping) }

  package func drain() {
    context.stopping.withLock { $0 = context.now + context.settings.stopMilliseconds }
    for archive in all { context.start { await archive.hurry() } }
  }

  nonisolated(nonsending) package func drained() async -> [String: SequenceNumber] {
    var unsent: [String: SequenceNumber] = [:]
    for archive in all {
      let changes = await archive.sent(by: context.closingDeadline)
      if changes > 0 {
        unsent[archive.application] = changes
      } else if archive.held != nil {
        await archive.leaveLate(by: context.closingDeadline)
      }
    }
    return unsent
  }
}
