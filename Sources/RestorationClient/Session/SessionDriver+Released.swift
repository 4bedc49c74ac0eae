// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationWire

/// Objects that the program has released: they count as closed. A program that ends releases its objects too, and then
/// says goodbye or is gone. So an object only counts as closed at a round, or if the session lives on. Time in which
/// the process was stopped does not count.
extension SessionDriver {
  private static let lookMilliseconds: Int64 = 1_000
  /// The number of looks that must find an object released.
  private static let looks = 3

  func watchForReleases() {
    guard timers.look == nil, !machine.isEnding else { return }
    timers.look = eventLoop.scheduleTask(in: .milliseconds(Self.lookMilliseconds)) {
      self.assumeIsolated { $0.look() }
    }
  }

  private func look() {
    timers.look = nil
    guard !machine.isEnding else { return }
    let released = objects.released(times: Self.looks)
    if !released.isEmpty { Task { await unregister(released) } }
    if objects.areAsked { watchForReleases() }
  }

  /// Returns when the broker has answered.
  func unregister(_ released: [RestorableObject]) async {
    guard !released.isEmpty else { return }
    await withTaskGroup { group in
      for object in released { group.addTask { await self.unregister(object) } }
    }
  }

  private func unregister(_ object: RestorableObject) async {
    do {
      _ = try await perform(.unregistering(object, keepState: false)).answer.get()
    } catch {
      objects.stays(object.id)
    }
  }
}
