// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The application's own state with its reserved keys, as its delegate encoded it in a save round (R10, R11).
package struct ApplicationState: WireObject, Hashable {
  /// `nil` if the delegate never encoded one.
  package var state: JSONText?
  /// `nil` if nothing is saved.
  package var coder: JSONText?
  package var isDeferred = false
  package init() {}

  package init(state: JSONText?, coder: JSONText?, isDeferred: Bool = false) {
    (self.state, self.coder, self.isDeferred) = (state, coder, isDeferred)
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

package protocol ApplicationStateCall: RestorationCall {
  var application: ApplicationState { get set }
}

extension ApplicationStateCall {
  package init(application: ApplicationState) {
    self.init()
    self.application = application
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) { try application.walk(&members) }
}

package struct ShouldSaveApplicationState: ApplicationStateCall {
  package typealias Answer = Bool

  package static let method = ServedMethod.shouldSaveApplicationState
  package static let summary = "Asks whether the application wants to be saved now."

  package var application = ApplicationState()
  package init() {}
}

package struct ShouldRestoreApplicationState: ApplicationStateCall {
  package typealias Answer = Bool

  package static let method = ServedMethod.shouldRestoreApplicationState
  package static let summary = "Asks whether the application wants to be restored."

  package var application = ApplicationState()
  package init() {}
}

package struct WillEncodeRestorableState: RestorationCall {
  package static let method = ServedMethod.willEncodeRestorableState
  package static let summary = "The round has begun."

  package var round: Int64 = 0
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("round", &round, .from(1), "Number of the round.")
  }

  package struct Answer: WireValue {
    package static let schema = Schema.nullable(
      .object([.optional("state", .nullable(.state), "The application's own state; if absent, it stays as it was.")])
    )
    package static let expected = "null, or an object with a state"

    /// `nil` leaves the saved state unchanged.
    package var state: EncodedState?

    package init(state: EncodedState?) { self.state = state }

    /// Null, `{}` and `{"state": null}` mean no state.
    package init(wire slice: JSONSlice) throws(Misfit) {
      guard !slice.isNull else { return }
      guard slice.kind == .object else { throw Misfit(Self.expected) }
      guard let member = slice["state"], !member.isNull else { return }
      guard member.duplicateName == nil else { throw Misfit("an object with distinct keys", at: "state") }
      state = try EncodedState(wire: member)
    }

    package func writeJSON(to writer: inout JSONWriter) { writer.object { $0.member("state", ifPresent: state) } }
  }
}

package struct DidDecodeRestorableState: ApplicationStateCall {
  package typealias Answer = Acknowledgement

  package static let method = ServedMethod.didDecodeRestorableState
  package static let summary = "All owners have decoded."

  package var application = ApplicationState()
  package init() {}
}

package struct ViewControllerWithRestorationIdentifierPath: RestorationCall {
  package typealias Answer = LocatedObject

  package static let method = ServedMethod.viewControllerWithRestorationIdentifierPath
  package static let summary = "Asks the delegate for a view controller that has no restoration class."

  package var saved = SavedObject()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) { try saved.walk(&members) }
}
