// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Empties the application's head, on request also its generations (R30).
package struct DiscardApplicationState: RestorationMethod {
  package static let method = "discardApplicationState"
  package static let summary = "Empties the head."
  package static let parameters: [Schema.Member] = [
    .optional("reason", .string, "For people; written to the log."),
    .optional("generations", .boolean, "Remove the generations as well."),
    .optional("force", .boolean, "Needed where `generations` is asked for while sessions are live."),
  ]
  package static let errors: [ErrorDescription] = [.needsForce, .unknownApplication, .archiveUnreadable, .storeFailed]

  package typealias Reply = EmptyResult

  /// For people and logs.
  package var reason: String?
  /// Whether generations go as well.
  package var generations: Bool
  /// Needed where live sessions would lose state they did not ask to lose.
  package var force: Bool

  package init(reason: String? = nil, generations: Bool = false, force: Bool = false) {
    self.reason = reason
    self.generations = generations
    self.force = force
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.reason = try reader.optionalString("reason")
    self.generations = try reader.bool("generations")
    self.force = try reader.bool("force")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("reason", ifPresent: reason)
    writer.member("generations", ifTrue: generations)
    writer.member("force", ifTrue: force)
  }
}
