// SPDX-License-Identifier: Apache-2.0

/// Describes every method, call, notification and event to a program.
package struct Discover: RestorationMethod {
  package static let method = "rpc.discover"
  package static let summary = "Describes the protocol to programs."
  package static let isScoped = false

  package typealias Reply = OpenRPCDocument

  package init() {}
}
