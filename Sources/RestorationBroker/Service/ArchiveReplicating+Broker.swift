// SPDX-License-Identifier: Apache-2.0

internal import Logging
package import NIOCore
package import RestorationArchive
internal import RestorationTransport
internal import Synchronization

/// Puts a store around the broker's own whose archives follow their user.
package typealias ReplicaSource = (
  _ files: SQLiteArchiveStore, _ eventLoop: any EventLoop, _ meter: any ReplicaMeter
) throws -> any ArchiveReplicating

final class AppendMeter: ReplicaMeter {
  private let durations = Mutex(Durations())

  var counted: Durations { durations.withLock { $0 } }

  func appended(in milliseconds: Int64) { durations.withLock { $0.add(nanoseconds: milliseconds * 1_000_000) } }
}

extension ArchiveReplicating {
  var appendDurations: Durations? { (meter as? AppendMeter)?.counted }

  /// Waits for the data being sent, and logs the rest. Returns the number of applications with unsent changes.
  nonisolated(nonsending) func reportUnsent(_ logger: Logger) async -> Int {
    let unsent = await drained()
    for (application, changes) in unsent.sorted(by: { $0.key < $1.key }) {
      let text = "\(ReplicaFact.lack(of: changes)); the next broker sends what is left"
      logger.report(.replicaBehind, .warning, text, ["application": "\(application)"])
    }
    return unsent.count
  }
}

extension SessionRecord {
  /// The record for other hosts. Its process and token mean nothing there, so the session counts as ended.
  package var shared: SessionRecord {
    var record = self
    record.token = ""
    var facts = SessionFacts(stored: facts)
    facts.process = nil
    record.facts = facts.stored
    return record
  }
}
