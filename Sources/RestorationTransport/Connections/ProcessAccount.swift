// SPDX-License-Identifier: Apache-2.0

/// How much of what the connections of one process have sent waits here: requests without an answer, and input that is
/// held back behind them. While that is too much, none of these connections is read. Used on their event loop only.
final class ProcessAccount {
  private let waitingBytesMax: Int
  @exclusivity(unchecked) private var waitingBytes = 0
  @exclusivity(unchecked) private var paused: [ConnectionHandler] = []

  init(limits: TransportLimits) { waitingBytesMax = limits.waitingBytesPerProcessMax }

  var isOver: Bool { waitingBytes > waitingBytesMax }

  /// The connection has paused its input until there is less.
  func addPaused(_ handler: ConnectionHandler) { paused.append(handler) }

  /// It has closed.
  func removePaused(_ handler: ConnectionHandler) { paused.removeAll { $0 === handler } }

  func change(by bytes: Int) {
    waitingBytes += bytes
    guard !paused.isEmpty, !isOver else { return }
    let resumed = paused
    paused = []
    for handler in resumed { handler.resumeForProcess() }
  }
}
