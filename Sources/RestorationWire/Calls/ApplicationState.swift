// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The application's own state, as its delegate gave it in a save round, with its reserved keys (R11, R26).
package struct ApplicationState: WireObject, Hashable {
  /// Nil if the delegate never gave one.
  package var state: JSONText?
  /// Nil if nothing is saved at all.
  package var coder: JSONText?
  package var isDeferred = false

  package init() {}

  package init(state: JSONText?, coder: JSONText?, isDeferred: Bool = false) {
    self.state = state
    self.coder = coder
    self.isDeferred = isDeferred
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("state", &state, .state, "The application's own state, as it was saved last.")
    try members.nullable("coder", &coder, .coder, "Its reserved keys.")
    try members.mark(
      "deferred",
      &isDeferred,
      "The state does not fit: fetch it with `decodeRestorableState` by the empty path."
    )
  }
}

/// A call that shows the delegate the application's own state as it was saved last.
package protocol ApplicationStateCall: RestorationCall {
  var application: ApplicationState { get set }
}

extension ApplicationStateCall {
  package init(application: ApplicationState) {
    self.init()
    self.application = application
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try application.walk(&members)
  }
}
