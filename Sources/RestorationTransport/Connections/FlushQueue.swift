// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// What the connections of one listener share: those that have work to do at the end of the event loop's current tick,
/// and the load of all. Used on that loop only.
///
/// All answers of a tick are written together afterwards: writing inside the read loop was measured to be slower.
final class FlushQueue {
  private let eventLoop: any EventLoop
  private var waiting: [ConnectionHandler] = []
  private var spare: [ConnectionHandler] = []
  private var isScheduled = false
  private(set) var load = ReplyLoad()
  private var isTrimScheduled = false

  init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  /// Schedules the handler's `endTick`, which may add the handler again.
  func add(_ handler: ConnectionHandler) {
    waiting.append(handler)
    if isScheduled { return }
    isScheduled = true
    eventLoop.assumeIsolated().execute { self.run() }
  }

  /// One connection holds so many bytes of replies more, or less. A second after a peak the memory is given back: the
  /// allocator keeps it otherwise, for as long as the process lives.
  func count(_ difference: Int) {
    guard load.change(by: difference), !isTrimScheduled else { return }
    isTrimScheduled = true
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) {
      self.isTrimScheduled = false
      self.load.trimmed()
      SystemCalls.trimMemory()
    }
  }

  private func run() {
    isScheduled = false
    // The arrays are swapped, so that neither is allocated again.
    swap(&waiting, &spare)
    for handler in spare { handler.endTick() }
    spare.removeAll(keepingCapacity: true)
  }
}
