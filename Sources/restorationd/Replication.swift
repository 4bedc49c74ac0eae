// SPDX-License-Identifier: Apache-2.0

#if Fleet
internal import CLinux
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationReplica
internal import RestorationTransport

/// The broker's connection to this host's gateway, by which archives follow their user. A broker has it if it is built
/// with the package trait Fleet, which is on by default.
enum Replication {
  /// Reads the keys if data is sealed before it leaves this host; `nil` if archives stay here.
  static func source(_ configuration: BrokerConfiguration, _ logger: Logger) throws -> ReplicaSource? {
    let archives = configuration.archives
    guard let replica = configuration.replica else { return nil }
    // An administrator's setting must not take restoration from users who have no key yet.
    if case .directory(let path) = replica.keys, !KeyDirectory(path).exists {
      let text = "archives stay on this host, because there is no key in \(path)"
      logger.warning("\(text); copy it from another host, or run restorationctl store key new; then restart the broker")
      return nil
    }
    if replica.acknowledgement == .disk, isInMemory(archives) {
      let text = "the archives in \(archives) are in memory: what is acknowledged may be lost with this host"
      logger.warning("\(text); set acknowledge to replica, or put the archives on a disk")
    }
    let path = try SocketPath.resolve(flag: replica.socket, environment: { _ in nil })
    let keys = try keys(replica.keys)
    let settings = settings(replica, keys, archiveBytesMax: configuration.archiveBytesMax)
    return { files, eventLoop, meter in
      var settings = settings
      settings.meter = meter
      let clock = ReplicaClock(now: { Host.bootMilliseconds }) { milliseconds, body in
        eventLoop.scheduleTask(in: .milliseconds(milliseconds), body)
      }
      return try ReplicatedStore(around: files, settings, clock: clock, sharing: \.shared) { attention in
        let link = GatewayLink(
          to: path,
          host: replica.host,
          term: settings.term,
          // A separate thread, so that large shipments do not delay this host's clients.
          on: MultiThreadedEventLoopGroup(numberOfThreads: 1).next(),
          attention: attention,
          standingChanged: { failure in
            if let failure {
              logger.warning("the fleet's store cannot be reached: \(failure.message)")
            } else {
              logger.notice("the fleet's store can be reached again")
            }
          }
        )
        guard let keys else { return link }
        return SealedReplica(around: link, keys: keys) { logger.warning("\($0.message)") }
      }
    }
  }

  private static func settings(
    _ replica: ReplicaConfiguration,
    _ keys: ReplicaKeys?,
    archiveBytesMax: Int
  ) -> ReplicaSettings {
    let term = LeaseTerm(milliseconds: Int64(replica.leaseSeconds) * 1_000)
    var settings = ReplicaSettings(host: replica.host ?? Host.name, term: term, promise: replica.acknowledgement)
    // A snapshot has up to two and a half times as much as the limit counts (`Protocol/limits.md`); batches follow it.
    settings.contentsBytesMax = 4 * archiveBytesMax
    settings.keyring = keys.map { keys in
      ReplicaKeyring(currentID: { "\(keys.current.id)" }) {
        do throws(ReplicaKeyError) {
          try await keys.reread()
          return nil
        } catch {
          return error.description
        }
      }
    }
    return settings
  }

  /// Whether the directory is lost when the machine ends. Makes it if it does not exist.
  private static func isInMemory(_ path: String) -> Bool {
    var (path, file) = (path[...], statfs())
    while !path.isEmpty, statfs(String(path), &file) != 0 {
      path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
    }
    return !path.isEmpty && file.f_type == tmpfs
  }

  /// `TMPFS_MAGIC`.
  private static let tmpfs = 0x0102_1994

  private static func keys(_ keys: ReplicaConfiguration.Keys) throws -> ReplicaKeys? {
    switch keys {
    case .directory(let path): try ReplicaKeys { () throws(ReplicaKeyError) in try KeyDirectory(path).read() }
    case .command(let words): try ReplicaKeys { () throws(ReplicaKeyError) in try KeyCommand(words).read() }
    case .none: nil
    }
  }
}
#else
internal import Logging
internal import RestorationBroker

/// Without the package trait Fleet archives stay on their host.
enum Replication {
  static func source(_ configuration: BrokerConfiguration, _: Logger) throws -> ReplicaSource? {
    guard configuration.replica == nil else {
      let fault = "replica: this restorationd was built without the package trait Fleet, so archives stay on their host"
      throw BrokerConfiguration.Fault(description: "\(fault); remove the setting, or build it with the trait")
    }
    return nil
  }
}
#endif
