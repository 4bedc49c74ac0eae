// SPDX-License-Identifier: Apache-2.0

/// How much of what the connections of one process have sent waits here: requests without an answer, input that is held
/// back behind them, and frames that are not complete. While that is too much, none of these connections is read but
/// one, which may bring its frame to an end: so each comes to its end, one after the other. Also the process's place in
/// the queue of those that have more input than is taken at once. Used on the connections' event loop only.
final class ProcessAccount {
  private let waitingBytesMax: Int
  @exclusivity(unchecked) private var waitingBytes = 0
  @exclusivity(unchecked) private var paused: [ConnectionHandler] = []
  /// Is read although too much waits.
  private var finishing: ConnectionHandler?
  /// Connections with frames left over, the next one first.
  private var behind: [ConnectionHandler] = []

  init(limits: TransportLimits) { waitingBytesMax = limits.waitingBytesPerProcessMax }

  /// Zero if nothing waits.
  var held: Int { waitingBytes + paused.count + (finishing == nil ? 0 : 1) }

  var isOver: Bool { waitingBytes > waitingBytesMax }

  /// Whether the connection is the one that is read although too much waits.
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

  /// The connection has paused its input until there is less.
  func addPaused(_ handler: ConnectionHandler) { paused.append(handler) }

  /// It has closed.
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
