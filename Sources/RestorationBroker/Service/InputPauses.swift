// SPDX-License-Identifier: Apache-2.0

/// Which clients are not read, and why: a reason that ends resumes only those without another one.
package struct InputPauses {
  /// Clients that write faster than the disk takes it.
  private var writers: Set<ClientID> = []
  /// Clients that have sent much behind a call that waits for an archive to open.
  private var waiting: Set<ClientID> = []
  /// Reading has ended for all clients.
  private var isStopping = false

  package init() {}

  /// Clients that are not read.
  package var count: Int { writers.count + waiting.count }

  package var hasWriters: Bool { !writers.isEmpty }

  /// Whether the client is to be paused now.
  package mutating func pauseWriter(_ client: ClientID) -> Bool { writers.insert(client).inserted }

  /// The clients to be resumed, now that the disk has kept pace.
  package mutating func resumeWriters() -> Set<ClientID> {
    guard !isStopping else { return [] }
    defer { writers = [] }
    return writers.subtracting(waiting)
  }

  /// Whether the client is to be paused, or else resumed.
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
