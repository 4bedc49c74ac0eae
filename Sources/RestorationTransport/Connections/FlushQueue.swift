// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// The connections that have work to do at the end of the event loop's current tick. Used on that loop only.
///
/// All answers of a tick are written together afterwards: writing inside the read loop was measured to be slower.
final class FlushQueue {
  private let eventLoop: any EventLoop
  private var waiting: [ConnectionHandler] = []
  private var spare: [ConnectionHandler] = []
  private var isScheduled = false

  init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  /// Schedules the handler's `endTick`, which may add the handler again.
  func add(_ handler: ConnectionHandler) {
    waiting.append(handler)
    if isScheduled { return }
    isScheduled = true
    eventLoop.assumeIsolated().execute { self.run() }
  }

  private func run() {
    isScheduled = false
    // The arrays are swapped, so that neither is allocated again.
    swap(&waiting, &spare)
    for handler in spare { handler.endTick() }
    spare.removeAll(keepingCapacity: true)
  }
}
