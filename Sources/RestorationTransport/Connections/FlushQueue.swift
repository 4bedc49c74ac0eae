// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// The connections of one event loop that have something to do at the end of the loop's current tick.
///
/// All answers of a tick are written together afterwards: a write inside the read loop was measured to be slower.
/// Used on its event loop only.
final class FlushQueue {
  private let eventLoop: any EventLoop
  private var waiting: [ConnectionHandler] = []
  private var spare: [ConnectionHandler] = []
  private var isScheduled = false

  init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  /// Has the connection's `endTick` called soon; it may be added again from there.
  func add(_ handler: ConnectionHandler) {
    waiting.append(handler)
    if isScheduled { return }
    isScheduled = true
    eventLoop.assumeIsolated().execute { self.run() }
  }

  private func run() {
    isScheduled = false
    // The two arrays change places, so that neither is allocated anew.
    swap(&waiting, &spare)
    for handler in spare { handler.endTick() }
    spare.removeAll(keepingCapacity: true)
  }
}
