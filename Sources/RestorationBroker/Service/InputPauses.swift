// SPDX-License-Identifier: Apache-2.0

/// Which clients are not read, and why. A client is resumed when none of its reasons is left.
package struct InputPauses {
  private var writers: Set<ClientID> = []
  /// Clients that have sent much behind a call that waits for an archive to open.
  private var waiting: Set<ClientID> = []
  private var isStopping = false

  package init() {}

  package var count: Int { writers.count + waiting.count }

  package var hasWriters: Bool { !writers.isEmpty }

  /// Returns whether the client must be paused now.
  package mutating func pauseWriter(_ client: ClientID) -> Bool { writers.insert(client).inserted }

  /// Returns the clients to resume, because the disk has caught up.
  package mutating func resumeWriters() -> Set<ClientID> {
    guard !isStopping else { return [] }
    defer { writers = [] }
    return writers.subtracting(waiting)
  }

  /// Returns whether the client must be paused, or else resumed.
  package mutating func setWaiting(_ client: ClientID, _ isWaiting: Bool) -> Bool {
    if isWaiting { waiting.insert(client) } else { waiting.remove(client) }
    return isWaiting || writers.contains(client) || isStopping
  }

  package mutating func stop() { isStopping = true }

  package mutating func forget(_ client: ClientID) {
    writers.remove(client)
    waiting.remove(client)
  }
}
