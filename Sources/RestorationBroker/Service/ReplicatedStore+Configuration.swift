// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
package import RestorationArchive
internal import RestorationTransport

/// Makes the way to where archives follow their user; the last argument is called when another host has begun to wait
/// for one.
package typealias ReplicaSource = (ReplicaConfiguration, LeaseTerm, @escaping @Sendable () -> Void) ->
  any ArchiveReplica

extension ReplicatedStore {
  convenience init(
    around files: SQLiteArchiveStore,
    _ configuration: ReplicaConfiguration,
    wakingOn eventLoop: any EventLoop,
    by source: ReplicaSource
  ) throws(ArchiveError) {
    let term = LeaseTerm(milliseconds: Int64(configuration.leaseSeconds) * 1_000)
    let clock = ReplicaClock(now: { Host.bootMilliseconds }) { milliseconds, body in
      eventLoop.scheduleTask(in: .milliseconds(milliseconds), body)
    }
    try self.init(
      around: files,
      ReplicaSettings(host: configuration.host ?? Host.name, term: term, promise: configuration.acknowledgement),
      clock: clock,
      sharing: \.shared
    ) { source(configuration, term, $0) }
  }
}

extension ReplicatedStore {
  /// Waits for what is still being sent, and says in the log what is left.
  ///
  /// - Returns: of how many applications.
  nonisolated(nonsending) func reportUnsent(_ logger: Logger) async -> Int {
    let unsent = await drained()
    for (application, changes) in unsent.sorted(by: { $0.key < $1.key }) {
      let lack = changes == 1 ? "1 change" : "\(changes) changes"
      let text = "the fleet's store lacks \(lack) of this host; the next broker sends what is left"
      logger.report(.replicaBehind, .warning, text, ["application": "\(application)"])
    }
    return unsent.count
  }
}

extension SessionRecord {
  /// What other hosts are told: its process and token mean nothing there, so it has ended if it has not.
  package var shared: SessionRecord {
    var record = self
    record.token = ""
    var facts = SessionFacts(stored: facts)
    facts.process = nil
    record.facts = facts.stored
    return record
  }
}
