// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import Logging
package import NIOCore
internal import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// A running broker: the listening socket, the service behind it, the store behind that.
package final class Broker: Sendable {
  package static let version = ProtocolVersion.program

  let listener: UnixListener
  let service: BrokerService
  let store: any ArchiveStore
  private let replicated: ReplicatedStore?
  private let logger: Logger
  /// The broker's, if it is one that can be moved.
  package let clock: TestClock?
  private let watcher: ProcessWatcher

  /// Takes the socket and begins to accept; returns when it does. Blocks its thread, which must not be the event
  /// loop's.
  ///
  /// - Parameters:
  ///   - descriptors: keeps connections when this process ends; nil if nothing does.
  ///   - inherited: the connections that it has kept of the process before.
  ///   - meter: that of the event loop, if it has one.
  ///   - manager: the user's service manager; nil where there is none.
  ///   - replica: makes the way to where archives follow their user, if that is configured.
  ///   - whenLost: no client can connect from now on, for this reason: the process is to end in order, with an error.
  ///   - whenFatal: to continue would break a promise: the process is to end with an error, at once.
  package init(
    _ configuration: BrokerConfiguration,
    handingOverTo descriptors: (any DescriptorStore)? = nil,
    adopting inherited: InheritedConnections = InheritedConnections(),
    on eventLoop: any EventLoop,
    meter: LoopMeter? = nil,
    manager: (any ServiceManager)? = nil,
    replica: ReplicaSource? = nil,
    logger: Logger,
    whenLost: @escaping @Sendable (String) -> Void,
    whenFatal: @escaping @Sendable (String) -> Void
  ) throws {
    let (limits, transport) = (configuration.limits, TransportLimits(configuration.limits))
    Self.raiseDescriptorLimit(limits, logger)
    Host.keepLittleMemory()
    let archives = try PrivateDirectory(preparing: configuration.archives, use: .dedicated)
    // A second broker must not get at the same archives, whatever socket it is to listen on.
    let lock = try LockFile(
      path: "\(archives.path)/archives.lock",
      subject: "the archives in \(archives.path)",
      remedy: "stop it first or give another --archives DIR"
    )
    let files = try Self.files(limits, in: archives.path)
    replicated = try Self.replicated(configuration, around: files, eventLoop, replica)
    let store: any ArchiveStore = replicated ?? files
    if replicated == nil { try Self.forgetReplica(of: files, logger) }
    let watcher = try ProcessWatcher()
    let clock = configuration.testClock.map { TestClock(over: eventLoop, offset: .milliseconds($0)) }
    let service = BrokerService(
      on: clock ?? eventLoop,
      meter: meter,
      limits: limits,
      settings: Self.settings(configuration),
      store: store,
      lock: lock,
      processes: watcher,
      manager: manager,
      handsConnectionsOver: descriptors != nil,
      opensSockets: configuration.sandboxes != nil,
      wallMilliseconds: { clock?.wallMilliseconds ?? Host.wallMilliseconds },
      logger: logger,
      whenFatal: whenFatal
    )
    // Last, so that a broker that cannot serve leaves no socket behind; clients queue from here on.
    listener = try EventLoopTaskExecutor(eventLoop).wait {
      try await UnixListener.start(
        try configuration.socket.listen(backlog: transport.backlogMax),
        on: eventLoop,
        settings: Self.connections(transport, meter),
        handingOverTo: descriptors,
        adopting: inherited,
        confining: { PeerOrigin(of: $0).confinement },
        whenAdopted: { outcome in
          guard outcome != AdoptedConnections() else { return }
          if let fault = outcome.fault { logger.warning("\(fault); they end, and their clients connect again") }
          logger.info("connections taken over: \(outcome.kept); busy, and ended: \(outcome.ended)")
        },
        whenLost: { whenLost("the listening socket has closed: \($0)") },
        delegate: service
      )
    }
    (self.service, self.store, self.clock, self.watcher, self.logger) = (service, store, clock, watcher, logger)
    if let sandboxes = configuration.sandboxes {
      try openSockets(below: sandboxes, transport.backlogMax, keptBy: descriptors, adopting: inherited, logger)
    } else {
      inherited.endApplicationSockets(descriptors)
    }
    replicated?.sendLeft()
    logger.info("serving", metadata: ["socket": "\(configuration.socket)", "archives": "\(archives.path)"])
  }

  private static func files(_ limits: Limits, in directory: String) throws -> SQLiteArchiveStore {
    let quota = ArchiveQuota(
      applicationsMax: limits.applicationsMax,
      allArchivesBytesMax: limits.allArchivesBytesMax,
      openArchivesMax: limits.openArchivesMax
    )
    let upkeep = ArchiveUpkeep(archiveBytesMax: limits.archiveBytesMax)
    return try SQLiteArchiveStore(directory: directory, quota: quota, upkeep: upkeep)
  }

  private static func replicated(
    _ configuration: BrokerConfiguration,
    around files: SQLiteArchiveStore,
    _ eventLoop: any EventLoop,
    _ source: ReplicaSource?
  ) throws -> ReplicatedStore? {
    guard let settings = configuration.replica, let source else { return nil }
    let max = configuration.limits.archiveBytesMax
    return try ReplicatedStore(around: files, settings, archiveBytesMax: max, wakingOn: eventLoop, by: source)
  }

  private static func forgetReplica(of files: SQLiteArchiveStore, _ logger: Logger) throws {
    let applications = try files.forgetReplica()
    guard !applications.isEmpty else { return }
    let text = "without the setting replica these applications are not sent to the fleet's store, nor fetched from it"
    logger.warning("\(text): \(applications.joined(separator: ", "))")
  }

  private static func raiseDescriptorLimit(_ limits: Limits, _ logger: Logger) {
    // Each connection takes a socket and a pidfd; the rest is for archives and the process itself.
    let needed = 2 * limits.connectionsMax + 512
    let allowed = Host.raiseDescriptorLimit(to: needed)
    if allowed < needed {
      let text = "\(allowed) descriptors are allowed, \(needed) may be needed; raise the hard limit of open files"
      logger.report(.descriptorLimitLow, .warning, text)
    }
  }

  /// Serves the sockets of applications beside the listener's.
  private func openSockets(
    below directory: String,
    _ backlog: Int,
    keptBy descriptors: (any DescriptorStore)?,
    adopting inherited: InheritedConnections,
    _ logger: Logger
  ) throws {
    try service.eventLoop.submit { [service, listener] in
      service.assumeIsolated {
        let sockets = ApplicationSockets(
          beside: listener,
          below: directory,
          keptBy: descriptors,
          backlog: backlog,
          logger: logger
        )
        $0.open(sockets, adopting: inherited)
      }
    }.wait()
  }

  /// How long connections have to come to the end of what their peers have begun to send.
  private static let drainMilliseconds: Int64 = 3_000

  private static func connections(_ limits: TransportLimits, _ meter: LoopMeter?) -> ConnectionSettings {
    ConnectionSettings(
      limits: limits,
      vocabulary: EncodedState.vocabulary,
      pages: MetricsPage.paths,
      meter: meter
    )
  }

  private static func settings(_ configuration: BrokerConfiguration) -> CoreSettings {
    CoreSettings(
      version: version,
      systemVersion: Host.systemVersion,
      isDeveloperMode: configuration.developerMode,
      loginPolicies: configuration.restoreAtLogin,
      random: {
        var generator = SystemRandomNumberGenerator()
        return (generator.next(), generator.next())
      }
    )
  }

  /// `stop` for a caller that is not asynchronous; blocks its thread, which must not be the event loop's.
  @discardableResult
  package func stopAndWait(milliseconds: Int64) throws -> Int {
    try EventLoopTaskExecutor(service.eventLoop).wait { await self.stop(milliseconds: milliseconds) }
  }

  /// Stops accepting, makes durable and answers what was asked, closes all archives.
  ///
  /// - Parameter milliseconds: after so long the process is to end as it is: a disk may never answer.
  /// - Returns: of how many applications something was not sent to where they follow their user.
  private func stop(milliseconds: Int64) async -> Int {
    let limit = listener.eventLoop.scheduleTask(in: .milliseconds(milliseconds)) { [service] in
      service.whenFatal("the archives could not be closed within \(milliseconds) milliseconds")
    }
    defer { limit.cancel() }
    await listener.stop()
    await service.stopSockets()
    await service.prepareToStop()
    await listener.drain(milliseconds: Self.drainMilliseconds)
    replicated?.drain()
    await service.stop()
    let unsent = await replicated?.reportUnsent(logger) ?? 0
    _ = await listener.handOver()
    watcher.stop()
    return unsent
  }
}

extension PeerOrigin {
  /// The application, without instance, that a client is confined to which has come through the broker's own socket;
  /// `nil` if it may use all.
  package var confinement: Result<String?, ErrorObject> {
    switch self {
    case .host: .success(nil)
    case .flatpak(let application): .success(application)
    case .unclear(let doubt):
      .failure(
        .restoration(
          .forbidden,
          "it cannot be told which application this client may use: \(doubt)",
          hint: "Run `restorationctl sandbox APPLICATION` outside, and give the sandbox the directory that it prints."
        )
      )
    }
  }
}

extension TransportLimits {
  /// The limits of the protocol that concern connections.
  package init(_ limits: Limits) {
    self.init()
    connectionsMax = limits.connectionsMax
    connectionsPerProcessMax = limits.connectionsPerProcessMax
    waitingBytesPerProcessMax = limits.waitingBytesPerProcessMax
    partialFrameMilliseconds = limits.partialFrameMilliseconds
    replyBytesPause = limits.replyBytesPause
    outQueueBytesMax = limits.outQueueBytesMax
    offeredBytesMax = limits.eventBytesMax
    frame.frameBytesMax = limits.frameBytesMax
    frame.depthMax = limits.depthMax
    frame.valuesPerFrameMax = limits.valuesPerFrameMax
    frame.keysPerObjectMax = limits.keysPerObjectMax
    conversation.batchMax = limits.batchMax
    conversation.batchReplyBytesMax = limits.frameBytesMax / 2
    conversation.inFlightMax = limits.inFlightMax
    conversation.parkedMax = limits.parkedMax
  }
}

extension BrokerConfiguration {
  /// What is in effect after `configuration` was read again: only what `Broker.reload` has taken over is new.
  package func reloaded(_ configuration: BrokerConfiguration) -> BrokerConfiguration {
    var result = self
    result.logLevel = configuration.logLevel
    result.idleExitSeconds = configuration.idleExitSeconds
    result.restoreAtLogin = configuration.restoreAtLogin
    for limit in Limit.all where Limits.changeable.contains(limit.name) {
      result.limits[keyPath: limit.keyPath] = configuration.limits[keyPath: limit.keyPath]
    }
    return result
  }
}

extension Broker {
  /// Takes over what may change while clients are connected.
  ///
  /// - Returns: names of settings that are different now but change only when the broker is started again.
  package func reload(_ configuration: BrokerConfiguration, from former: BrokerConfiguration) throws -> [String] {
    let service = service
    var rest: [String] = []
    // Where it was given a socket, the configuration has no say.
    if case .path(let new) = configuration.socket, case .path(let old) = former.socket, new != old {
      rest.append("socket")
    }
    if configuration.archives != former.archives { rest.append("archives") }
    if configuration.developerMode != former.developerMode { rest.append("developerMode") }
    if configuration.replica != former.replica { rest.append("replica") }
    let (limits, policies) = (configuration.limits, configuration.restoreAtLogin)
    for limit in Limit.all where limits[keyPath: limit.keyPath] != former.limits[keyPath: limit.keyPath] {
      if !Limits.changeable.contains(limit.name) { rest.append(limit.name) }
    }
    try service.eventLoop.submit {
      service.assumeIsolated { $0.configure(limits, policies) }
    }.wait()
    return rest
  }
}
