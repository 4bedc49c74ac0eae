// SPDX-License-Identifier: Apache-2.0

/// Counts the waiting input of one process's connections: unanswered requests, input that is held back behind them, and
/// incomplete frames. While that is too much, only one of these connections is read, so that it can complete its frame;
/// thus all make progress, one after the other. Also the process's place in the queue of those that are behind. Used on
/// the connections' event loop only.
final class ProcessAccount {
  private let waitingBytesMax: Int
  @exclusivity(unchecked) private var waitingBytes = 0
  @exclusivity(unchecked) private var paused: [ConnectionHandler] = []
  /// The connection that is read although too much waits.
  private var finishing: ConnectionHandler?
  /// Connections with frames left over, the next one first.
  private var behind: [ConnectionHandler] = []

  init(limits: TransportLimits) { waitingBytesMax = limits.waitingBytesPerProcessMax }

  /// Zero if nothing waits.
  var held: Int { waitingBytes + paused.count + (finishing == nil ? 0 : 1) }

  var isOver: Bool { waitingBytes > waitingBytesMax }

  func letsFinish(_ handler: ConnectionHandler) -> Bool {
    if finishing === handler, handler.unfinishedBytes == 0 { letNextFinish() }
    if finishing == nil, handler.unfinishedBytes > 0 { finishing = handler }
    return finishing === handler
  }

  private func letNextFinish() {
    finishing = nil
    guard let index = paused.firstIndex(where: { $0.unfinishedBytes > 0 }) else { return }
    let next = paused.remove(at: index)
    finishing = next
    next.resumeForProcess()
  }

  /// The connection has paused its input until less waits.
  func addPaused(_ handler: ConnectionHandler) { paused.append(handler) }

  func forget(_ handler: ConnectionHandler) {
    if !paused.isEmpty { paused.removeAll { $0 === handler } }
    if finishing === handler { letNextFinish() }
  }

  func change(by bytes: Int) {
    waitingBytes += bytes
    guard !isOver else { return }
    finishing = nil
    guard !paused.isEmpty else { return }
    let resumed = paused
    paused = []
    for handler in resumed { handler.resumeForProcess() }
  }

  // MARK: Turns

  var isBehind: Bool { !behind.isEmpty }
  var behindCount: Int { behind.count }

  func addBehind(_ handler: ConnectionHandler) { behind.append(handler) }

  func takeBehind() -> ConnectionHandler { behind.removeFirst() }
}
