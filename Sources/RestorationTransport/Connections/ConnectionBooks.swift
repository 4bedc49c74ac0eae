// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import NIOCore

/// State shared by the connections of one event loop: counts by process, waiting bytes, and the loop's time and load.
/// Used on that loop only.
package final class ConnectionBooks {
  private let limits: TransportLimits
  let flushQueue: FlushQueue
  private var quota: ProcessQuota
  private var accounts: [ProcessIdentity: ProcessAccount] = [:]

  /// - Parameter isShared: whether a connection with much input lets others go first.
  package init(on eventLoop: any EventLoop, limits: TransportLimits, isShared: Bool = true, meter: LoopMeter? = nil) {
    self.limits = limits
    flushQueue = FlushQueue(eventLoop: eventLoop, isShared: isShared, meter: meter)
    quota = ProcessQuota(limits: limits)
  }

  var connections: Int { quota.total }

  /// Why the peer must not connect; `nil` if it may.
  func refusal(to peer: PeerCredentials) -> ErrorObject? { quota.refusal(to: peer.countedProcess) }

  /// Why a peer in this application's sandbox must not connect; `nil` if it may.
  func refusal(toConfined application: String) -> ErrorObject? { quota.refusal(toConfined: application) }

  /// The account of the peer's process, which counts the connection until the channel has closed.
  func open(_ channel: any Channel, of peer: PeerCredentials, confinement: String?) -> ProcessAccount {
    let process = peer.countedProcess
    let account = accounts[process] ?? ProcessAccount(limits: limits)
    accounts[process] = account
    quota.add(process, confinement: confinement)
    channel.closeFuture.assumeIsolated().whenComplete { [self] _ in close(process, confinement: confinement) }
    return account
  }

  private func close(_ process: ProcessIdentity, confinement: String?) {
    guard quota.remove(process, confinement: confinement), let account = accounts.removeValue(forKey: process) else {
      return
    }
    // It was the last one, so that nothing can wait.
    assert(account.held == 0, "\(account.held) bytes are counted of a process without a connection")
  }

  /// Each account with its count: empty when all connections have closed.
  package var holdings: [String: Int] {
    flushQueue.holdings.merging(
      [
        "connections of processes": quota.total, "processes with connections": accounts.count,
        "what waits of processes": accounts.values.reduce(0) { $0 + $1.held },
      ],
      uniquingKeysWith: +
    )
  }
}
