// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The application's own state, as its delegate gave it in a save round, with its reserved keys (R11, R26).
package struct ApplicationState: Sendable, Equatable {
  package static let members: [Schema.Member] = [
    .required("state", .nullable(.state), "The application's own state, as it was saved last."),
    .required("coder", .nullable(ReservedKeys.schema), "Its reserved keys."),
    .optional("deferred", .true, "The state does not fit: fetch it with `decodeRestorableState` by the empty path."),
  ]

  /// Nil where the delegate never gave one.
  package var state: JSONText?
  /// Nil where nothing is saved at all.
  package var coder: JSONText?
  /// There is a state that is too large to be sent unasked: the client may fetch it with `decodeRestorableState`.
  package var isDeferred: Bool

  package init(state: JSONText?, coder: JSONText?, isDeferred: Bool = false) {
    self.state = state
    self.coder = coder
    self.isDeferred = isDeferred
  }

  init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.state = try reader.optionalText("state")
      self.coder = try reader.optionalText("coder")
      self.isDeferred = try reader.bool("deferred")
    } catch {
      return nil
    }
  }

  func writeMembers(to writer: inout JSONWriter) {
    writer.member("state", state)
    writer.member("coder", coder)
    writer.member("deferred", ifTrue: isDeferred)
  }
}

/// A call that shows the delegate the application's own state as it was saved last.
package protocol ApplicationStateCall: RestorationCall {
  var application: ApplicationState { get }

  init(application: ApplicationState)
}

extension ApplicationStateCall {
  package init?(_ parameters: JSONSlice) {
    guard let application = ApplicationState(parameters) else { return nil }
    self.init(application: application)
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { application.writeMembers(to: &$0) }
  }
}
