// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import Logging
package import NIOCore
internal import RestorationArchive
package import RestorationTransport
package import RestorationWire

/// A running broker: the listening socket, its service and its store.
package final class Broker: Sendable {
  package static let version = ProtocolVersion.program

  let listener: UnixListener
  let service: BrokerService
  let store: any ArchiveStore
  private let replicated: (any ArchiveReplicating)?
  private let logger: Logger
  /// `nil` if the broker uses the computer's clock.
  package let clock: TestClock?
  private let watcher: ProcessWatcher

  /// Binds the socket and returns once connections are accepted. Blocks its thread, which must not be the event loop's.
  ///
  /// - Parameters:
  ///   - descriptors: holds connections when this process ends; `nil` ends them with it.
  ///   - inherited: the connections held for the former process.
  ///   - manager: the user's service manager; `nil` if there is none.
  ///   - replica: makes the store of archives that follow their user, if that is configured.
  ///   - whenLost: called with the reason when no client can connect any longer. The process must end in order, with an
  ///     error.
  ///   - whenFatal: called when the broker cannot continue without breaking a promise. The process must end at once,
  ///     with an error.
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
    let lock = try Self.lock(archives.path, logger)
    let files = try Self.files(limits, in: archives.path)
    replicated = try replica?(files, eventLoop, AppendMeter())
    let store: any ArchiveStore = replicated ?? files
    if replicated == nil, !files.isReadOnly { try Self.forgetReplica(of: files, logger) }
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

  /// A second broker must not use the same archives, on whatever socket. In a read-only directory it may.
  private static func lock(_ archives: String, _ logger: Logger) throws -> LockFile? {
    guard SystemFiles().refusal(toWriteIn: archives) == nil else {
      logger.warning("\(archives) is read-only: what is saved there is read, and nothing is stored")
      return nil
    }
    return try LockFile(
      path: "\(archives)/archives.lock",
      subject: "the archives in \(archives)",
      remedy: "stop it first or give another --archives DIR"
    )
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

  /// How long peers have to complete what they have begun to send.
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
    var settings = CoreSettings(
      version: version,
      systemVersion: Host.systemVersion,
      isDeveloperMode: configuration.developerMode,
      loginPolicies: configuration.restoreAtLogin,
      random: {
        var generator = SystemRandomNumberGenerator()
        return (generator.next(), generator.next())
      }
    )
    settings.archivesRoam = configuration.replica != nil
    return settings
  }

  /// `stop` for a synchronous caller. Blocks its thread, which must not be the event loop's.
  @discardableResult
  package func stopAndWait(milliseconds: Int64) throws -> Int {
    try EventLoopTaskExecutor(service.eventLoop).wait { await self.stop(milliseconds: milliseconds) }
  }

  /// Stops accepting, makes durable and answers all requests, closes all archives; within `milliseconds`, because a
  /// disk may never answer. Returns the number of applications with unsent changes to archives that follow their user.
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
  /// The application, without instance, to which a client of the broker's own socket is confined; `nil` if it may use
  /// all.
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
  /// The protocol's limits that concern connections.
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
  /// The configuration in effect after a reload: only the parts that `Broker.reload` has applied are new.
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
  /// Applies settings that may change while clients are connected. Returns the names of those that need a restart.
  package func reload(_ configuration: BrokerConfiguration, from former: BrokerConfiguration) throws -> [String] {
    let service = service
    var rest: [String] = []
    // An inherited socket overrides the configuration.
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
