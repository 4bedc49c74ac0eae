// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
package import RestorationArchive
internal import RestorationTransport
internal import Synchronization

/// Makes the replica of archives that follow their user.
package struct ReplicaSource {
  /// The last argument must be called when another host has begun to wait for an archive.
  package typealias Way = (ReplicaConfiguration, LeaseTerm, @escaping @Sendable () -> Void) -> any ArchiveReplica

  let keyring: ReplicaKeyring?
  let way: Way

  /// - Parameter keyring: `nil` if data is not sealed.
  package init(_ keyring: ReplicaKeyring?, way: @escaping Way) { (self.keyring, self.way) = (keyring, way) }
}

extension ReplicatedStore {
  convenience init(
    around files: SQLiteArchiveStore,
    _ configuration: ReplicaConfiguration,
    archiveBytesMax: Int,
    wakingOn eventLoop: any EventLoop,
    by source: ReplicaSource
  ) throws(ArchiveError) {
    let term = LeaseTerm(milliseconds: Int64(configuration.leaseSeconds) * 1_000)
    let clock = ReplicaClock(now: { Host.bootMilliseconds }) { milliseconds, body in
      eventLoop.scheduleTask(in: .milliseconds(milliseconds), body)
    }
    let host = configuration.host ?? Host.name
    var settings = ReplicaSettings(host: host, term: term, promise: configuration.acknowledgement)
    (settings.keyring, settings.meter) = (source.keyring, AppendMeter())
    // A snapshot has up to two and a half times as much as the limit counts (`Protocol/limits.md`); batches follow it.
    settings.contentsBytesMax = 4 * archiveBytesMax
    try self.init(around: files, settings, clock: clock, sharing: \.shared) { source.way(configuration, term, $0) }
  }
}

private final class AppendMeter: ReplicaMeter {
  let durations = Mutex(Durations())

  func appended(in milliseconds: Int64) { durations.withLock { $0.add(nanoseconds: milliseconds * 1_000_000) } }
}

extension ReplicatedStore {
  var appendDurations: Durations? { (meter as? AppendMeter)?.durations.withLock { $0 } }
}

extension ReplicatedStore {
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
