// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix

/// The contents of a `DescriptorStore` for this process.
package struct InheritedConnections: Sendable {
  private let ledger: Int32?
  private let sockets: [(key: UInt64, name: String, descriptor: Int32)]
  /// Listening sockets for one application each. The caller that takes them owns them.
  package let applicationSockets: [(application: String, descriptor: Int32)]
  /// Descriptors of unknown names, which are closed.
  private let others: [(name: String, descriptor: Int32)]

  /// - Parameter descriptors: open descriptors with their names; this value owns them from now on.
  package init(_ descriptors: [(name: String, descriptor: Int32)] = []) {
    ledger = descriptors.last { $0.name == ConnectionHandoff.ledgerName }?.descriptor
    var sockets: [(key: UInt64, name: String, descriptor: Int32)] = []
    var others: [(name: String, descriptor: Int32)] = []
    var applicationSockets: [(application: String, descriptor: Int32)] = []
    for (name, descriptor) in descriptors {
      if let key = ConnectionPage.key(ofName: name) {
        sockets.append((key, name, descriptor))
      } else if let application = Self.application(ofStored: name) {
        applicationSockets.append((application, descriptor))
      } else if descriptor != ledger {
        others.append((name, descriptor))
      }
    }
    (self.sockets, self.others, self.applicationSockets) = (sockets, others, applicationSockets)
  }

  private static let applicationPrefix = "application-"

  package static func storedName(ofApplication name: String) -> String { applicationPrefix + name }

  private static func application(ofStored name: String) -> String? {
    name.hasPrefix(applicationPrefix) ? String(name.dropFirst(applicationPrefix.count)) : nil
  }

  /// Closes the applications' sockets, for a process without a directory for them.
  package func endApplicationSockets(_ store: (any DescriptorStore)?) {
    for (application, descriptor) in applicationSockets {
      store?.remove(Self.storedName(ofApplication: application))
      // Also ends copies that the manager, or a process being started, may have for a moment.
      SystemCalls.shutDown(descriptor)
      SystemCalls.close(descriptor)
    }
  }

  /// Adopts the connections whose snapshots are valid, and ends the others. On the acceptor's event loop.
  func adopt(
    _ store: any DescriptorStore,
    limits: TransportLimits,
    on eventLoop: any EventLoop,
    _ makeAcceptor: (ConnectionHandoff) -> Acceptor
  ) throws(TransportError) -> (Acceptor, EventLoopFuture<AdoptedConnections>) {
    for other in others {
      store.remove(other.name)
      SystemCalls.close(other.descriptor)
    }
    let (ledger, records, fault) = try openLedger(store, limits)
    let handoff = ConnectionHandoff(store: store, ledger: ledger, eventLoop: eventLoop)
    let acceptor = makeAcceptor(handoff)
    let bound = NIOLoopBound(acceptor, eventLoop: eventLoop)
    var adopted: [EventLoopFuture<Bool>] = []
    var names: Set<String> = []
    for (key, name, socket) in sockets {
      // Two descriptors of one name would be two readers of one connection.
      guard let record = records[key], limits.connectionsMax > adopted.count, names.insert(name).inserted,
        (try? SystemCalls.isUnixStream(socket, listening: false)) == true
      else {
        Self.end(socket, name, store)
        continue
      }
      let channel = ClientBootstrap(group: eventLoop)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try bound.value.adopt(channel, key: key, record) }
        }
        .withConnectedSocket(socket)
      adopted.append(
        channel.map { _ in true }.flatMapErrorThrowing { _ in
          // NIO has closed the socket, but the store holds a duplicate.
          store.remove(name)
          return false
        }
      )
    }
    let ended = sockets.count - adopted.count
    let all = EventLoopFuture.whenAllSucceed(adopted, on: eventLoop).assumeIsolated().map { outcomes in
      handoff.endAdoption()
      let kept = outcomes.count { $0 }
      return AdoptedConnections(kept: kept, ended: ended + outcomes.count - kept, fault: fault)
    }.nonisolated()
    return (acceptor, all)
  }

  /// The inherited ledger; if it is missing or invalid, a new one, so that no connection is adopted.
  private func openLedger(
    _ store: any DescriptorStore,
    _ limits: TransportLimits
  ) throws(TransportError) -> (ConnectionLedger, [UInt64: ConnectionSnapshot], fault: TransportError?) {
    var fault: TransportError?
    if let ledger {
      do {
        let (ledger, records) = try ConnectionLedger.inherit(ledger, connectionsMax: limits.connectionsMax)
        return (ledger, records, nil)
      } catch {
        fault = error
        store.remove(ConnectionHandoff.ledgerName)
      }
    }
    return (try ConnectionLedger.make(connectionsMax: limits.connectionsMax), [:], fault)
  }

  private static func end(_ socket: Int32, _ name: String, _ store: any DescriptorStore) {
    SystemCalls.shutDown(socket)
    SystemCalls.close(socket)
    store.remove(name)
  }
}

/// How many connections of the former process were adopted, and how many were ended.
package struct AdoptedConnections: Hashable, Sendable {
  package var kept = 0
  package var ended = 0
  /// Why no connection could be adopted.
  package var fault: TransportError?

  package init(kept: Int = 0, ended: Int = 0, fault: TransportError? = nil) {
    (self.kept, self.ended, self.fault) = (kept, ended, fault)
  }
}
