// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Lets connections outlive this process: a `DescriptorStore` holds their sockets, and a `ConnectionLedger` beside them
/// holds their state. Used on one event loop only.
///
/// If the process is killed, the next one adopts the connections that were idle, and the peers of the others see them
/// end. If the process ends in order, all connections are adopted. Those that a process has not adopted yet when it is
/// killed are left to the next one.
final class ConnectionHandoff {
  /// Younger connections are not stored, because most belong to a short command.
  private static let ageMilliseconds: Int64 = 50
  static let ledgerName = "ledger"

  private let store: any DescriptorStore
  private let ledger: ConnectionLedger
  private let eventLoop: any EventLoop
  private var handlers: [ObjectIdentifier: ConnectionHandler] = [:]
  private var young: [ConnectionHandler] = []
  private var hasTimer = false
  /// Connections that still owe answers while all are drained.
  private var draining: Set<ObjectIdentifier> = []
  private var whenDrained: EventLoopPromise<Void>?

  init(store: any DescriptorStore, ledger: ConnectionLedger, eventLoop: any EventLoop) {
    (self.store, self.ledger, self.eventLoop) = (store, ledger, eventLoop)
    store.store(ledger.descriptor, as: Self.ledgerName)
  }

  func opened(_ handler: ConnectionHandler) {
    handlers[ObjectIdentifier(handler)] = handler
    young.append(handler)
    guard !hasTimer else { return }
    hasTimer = true
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.ageMilliseconds)) { [self] in
      hasTimer = false
      // Connections opened meanwhile are stored a little early.
      let due = young
      young = []
      for handler in due { keep(handler) }
    }
  }

  /// Adds a connection of the former process, which is stored already.
  func adopted(_ handler: ConnectionHandler, key: UInt64, on channel: any Channel) throws {
    handlers[ObjectIdentifier(handler)] = handler
    handler.page = ledger.claim(key)
    try markReads(of: handler, on: channel)
  }

  func endAdoption() { ledger.endAdoption() }

  private func markReads(of handler: ConnectionHandler, on channel: any Channel) throws {
    try channel.syncOptions?.setOption(.recvAllocator, value: MarkingAllocator(handler, eventLoop: eventLoop))
  }

  func closed(_ handler: ConnectionHandler) {
    handlers[ObjectIdentifier(handler)] = nil
    if let page = handler.page {
      store.remove(page.name)
      page.release()
    }
    handler.page = nil
    drained(handler)
  }

  private func keep(_ handler: ConnectionHandler) {
    guard handler.isOpen, handler.page == nil, let socket = handler.socket, let channel = handler.context?.channel,
      (try? markReads(of: handler, on: channel)) != nil, let page = ledger.claim(ledger.nextKey())
    else { return }
    page.setContext(handler.handoffState.context)
    handler.page = page
    store.store(socket, as: page.name)
    handler.queueForEndOfTick()
  }

  // MARK: Ending

  /// Stops reading; succeeds when no connection owes an answer, or the time is over.
  func drain(milliseconds: Int64) -> EventLoopFuture<Void> {
    let promise = eventLoop.makePromise(of: Void.self)
    draining = Set(handlers.keys)
    whenDrained = promise
    for handler in handlers.values { handler.drain() }
    let timer = eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) { [self] in
      draining = []
      endRest()
    }
    promise.futureResult.whenComplete { _ in timer.cancel() }
    endRest()
    return promise.futureResult
  }

  func drained(_ handler: ConnectionHandler) {
    guard whenDrained != nil, draining.remove(ObjectIdentifier(handler)) != nil else { return }
    endRest()
  }

  private func endRest() {
    guard draining.isEmpty, let promise = whenDrained else { return }
    whenDrained = nil
    promise.succeed()
  }

  /// Writes snapshots of all connections and closes them on this side.
  ///
  /// - Returns: how many were handed over, and how many end because they owe an answer.
  func handOver() -> AdoptedConnections {
    var outcome = AdoptedConnections()
    for handler in Array(handlers.values) {
      keep(handler)
      if handler.handOver() { outcome.kept += 1 } else { outcome.ended += 1 }
    }
    return outcome
  }
}

/// Stores descriptors by name for the next process.
///
/// Neither call waits. The store duplicates a descriptor, which remains the caller's.
package protocol DescriptorStore: Sendable {
  func store(_ descriptor: Int32, as name: String)
  /// Drops the descriptors of that name, if there are any.
  func remove(_ name: String)
}
