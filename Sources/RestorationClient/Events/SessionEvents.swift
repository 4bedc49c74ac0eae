// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The streams a session offers its application: its state, and notifications.
final class SessionEvents: Sendable {
  private static let notificationsMax = 1_024
  /// The most unread states of a stream; the oldest are dropped first.
  private static let statesMax = 16

  private struct Contents {
    var state: SessionState
    var watchers: [Int: AsyncStream<SessionState>.Continuation] = [:]
    var notifications = NotificationQueue<SessionNotification>(capacity: SessionEvents.notificationsMax)
    var waiters: [(number: Int, continuation: CheckedContinuation<SessionNotification?, Never>)] = []
    var lastNumber = 0

    var hasEnded: Bool { if case .ended = state { true } else { false } }

    mutating func nextNumber() -> Int {
      lastNumber += 1
      return lastNumber
    }
  }

  private let contents: Mutex<Contents>

  init(_ state: SessionState) { contents = Mutex(Contents(state: state)) }

  var state: SessionState { contents.withLock { $0.state } }

  func become(_ state: SessionState) {
    let (watchers, waiters) = contents.withLock { contents in
      contents.state = state
      let waiters = contents.hasEnded ? contents.waiters : []
      if contents.hasEnded { contents.waiters = [] }
      return (Array(contents.watchers.values), waiters)
    }
    for watcher in watchers { watcher.yield(state) }
    guard case .ended = state else { return }
    for watcher in watchers { watcher.finish() }
    for waiter in waiters { waiter.continuation.resume(returning: nil) }
  }

  func states() -> AsyncStream<SessionState> {
    let (stream, watcher) = AsyncStream.makeStream(
      of: SessionState.self,
      bufferingPolicy: .bufferingNewest(Self.statesMax)
    )
    let number = contents.withLock { contents -> Int? in
      // Inside, so that no change comes between.
      watcher.yield(contents.state)
      guard !contents.hasEnded else { return nil }
      let number = contents.nextNumber()
      contents.watchers[number] = watcher
      return number
    }
    if let number {
      watcher.onTermination = { [weak self] _ in
        self?.contents.withLock { $0.watchers[number] = nil }
      }
    } else {
      watcher.finish()
    }
    return stream
  }

  func notify(_ notification: SessionNotification) {
    let waiter = contents.withLock { contents in
      if contents.waiters.isEmpty {
        contents.notifications.append(notification)
        return nil as CheckedContinuation<SessionNotification?, Never>?
      }
      return contents.waiters.removeFirst().continuation
    }
    waiter?.resume(returning: notification)
  }

  /// The next notification; `nil` after the end of the session, or if the task was cancelled.
  func nextNotification() async -> SessionNotification? {
    let number = contents.withLock { $0.nextNumber() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let next: SessionNotification?? = contents.withLock { contents in
          if let notification = contents.notifications.next() { return .some(notification) }
          if contents.hasEnded || Task.isCancelled { return .some(nil) }
          contents.waiters.append((number, continuation))
          return nil
        }
        if let next { continuation.resume(returning: next) }
      }
    } onCancel: {
      let waiter = contents.withLock { contents in
        contents.waiters.firstIndex { $0.number == number }.map { contents.waiters.remove(at: $0).continuation }
      }
      waiter?.resume(returning: nil)
    }
  }
}
