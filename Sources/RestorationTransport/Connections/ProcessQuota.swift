// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Counts the connections of each process and of each application in a sandbox, and limits them. Pure.
///
/// The last tenth of all connections is reserved for processes without any. So a few processes cannot exclude others.
package struct ProcessQuota: Sendable {
  private let connectionsMax: Int
  private let connectionsPerProcessMax: Int
  private var counts: [ProcessIdentity: Int] = [:]
  private var confined: [String: Int] = [:]
  package private(set) var total = 0

  package init(limits: TransportLimits) {
    connectionsMax = limits.connectionsMax
    connectionsPerProcessMax = limits.connectionsPerProcessMax
  }

  /// Why the process must not connect; `nil` if it may.
  package func refusal(to process: ProcessIdentity) -> ErrorObject? {
    let own = counts[process, default: 0]
    if own >= connectionsPerProcessMax {
      let hint = "Close a connection of your process, or use one for several applications."
      return .limitExceeded("connectionsPerProcessMax", max: connectionsPerProcessMax, value: own + 1, hint: hint)
    }
    let kept = own > 0 ? connectionsMax / 10 : 0
    guard total >= connectionsMax - kept else { return nil }
    let hint =
      kept > 0
      ? "The last \(kept) of \(connectionsMax) connections are kept for processes without one. Use one that yours has, "
        + "or try again later."
      : "Close a connection that is no longer needed, or try again later."
    return .limitExceeded("connectionsMax", max: connectionsMax - kept, value: total + 1, hint: hint)
  }

  /// Why a process in this application's sandbox must not connect; `nil` if it may.
  package func refusal(toConfined application: String) -> ErrorObject? {
    let own = confined[application, default: 0]
    return Share.refusal(of: "connectionsMax", max: connectionsMax, own: own, others: total - own)
  }

  package mutating func add(_ process: ProcessIdentity, confinement: String? = nil) {
    counts[process, default: 0] += 1
    if let confinement { confined[confinement, default: 0] += 1 }
    total += 1
  }

  /// - Returns: whether that was its last.
  @discardableResult
  package mutating func remove(_ process: ProcessIdentity, confinement: String? = nil) -> Bool {
    guard let count = counts[process] else { return false }
    counts[process] = count > 1 ? count - 1 : nil
    if let confinement, let count = confined[confinement] { confined[confinement] = count > 1 ? count - 1 : nil }
    total -= 1
    return count == 1
  }
}
