// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Sees to it that connections outlive this process: their sockets are in a `DescriptorStore`, and what has to be known
/// of them is in a `ConnectionLedger` beside those. Used on one event loop only.
///
/// When the process is killed, whoever comes after it goes on with the connections that were idle, and the peers of the
/// others see them end. When it ends in order, all of them go on.
final class ConnectionHandoff {
  /// A connection is stored at this age: most are those of a command that is over before.
  private static let ageMilliseconds: Int64 = 50
  static let ledgerName = "ledger"

  private let store: any DescriptorStore
  private let ledger: ConnectionLedger
  private let eventLoop: any EventLoop
  private var handlers: [ObjectIdentifier: ConnectionHandler] = [:]
  private var young: [ConnectionHandler] = []
  private var hasTimer = false
  /// Those that still owe answers, while all of them are brought to rest.
  private var draining: Set<ObjectIdentifier> = []
  private var whenDrained: EventLoopPromise<Void>?

  init(store: any DescriptorStore, ledger: ConnectionLedger, eventLoop: any EventLoop) {
    (self.store, self.ledger, self.eventLoop) = (store, ledger, eventLoop)
    store.store(ledger.descriptor, as: Self.ledgerName)
  }

  /// The connection with this socket is new.
  func opened(_ handler: ConnectionHandler) {
    handlers[ObjectIdentifier(handler)] = handler
    young.append(handler)
    guard !hasTimer else { return }
    hasTimer = true
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.ageMilliseconds)) { [self] in
      hasTimer = false
      // Those that came meanwhile are stored a little early.
      let due = young
      young = []
      for handler in due { keep(handler) }
    }
  }

  /// The connection is one of those that the process before had; it is stored already.
  func adopted(_ handler: ConnectionHandler, key: UInt64, on channel: any Channel) throws {
    handlers[ObjectIdentifier(handler)] = handler
    handler.page = ledger.claim(key)
    try markReads(of: handler, on: channel)
  }

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

  /// Stops reading, and tells when all connections owe no answer or that time is over.
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

  /// Puts down what is left of all connections and closes them on this side.
  ///
  /// - Returns: how many go on, and how many do not because they owe an answer.
  func handOver() -> AdoptedConnections {
    var outcome = AdoptedConnections()
    for handler in Array(handlers.values) {
      keep(handler)
      if handler.handOver() { outcome.kept += 1 } else { outcome.ended += 1 }
    }
    return outcome
  }
}

/// Keeps descriptors under names beyond the end of this process, for the one that comes after it.
///
/// Neither call waits. What is stored is a duplicate, so the caller's descriptor stays the caller's.
package protocol DescriptorStore: Sendable {
  func store(_ descriptor: Int32, as name: String)
  /// Lets go of what is stored under that name, if anything is.
  func remove(_ name: String)
}
