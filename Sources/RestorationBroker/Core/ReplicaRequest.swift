// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

/// A request of an administrator of the fleet (R36).
package enum ReplicaRequest: Hashable, Sendable {
  /// `nil` for all applications.
  case report(ApplicationName?)
  case flush(ApplicationName?, milliseconds: Int64)
  case migrate(ApplicationName, milliseconds: Int64)
}

extension CoreContext {
  func ask(_ message: IncomingMessage, _ client: Client, _ request: ReplicaRequest) throws(ErrorObject) {
    try client.requireHost(to: "look after the fleet's store")
    emit(.replica(request, message.caller))
  }
}
