// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Tells the delegate that a save round begins, and asks for the application's own state (R11).
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
      .object([.optional("state", .nullable(.state), "The application's own state; without it that stays as it was.")])
    )
    package static let expected = "null, or an object with a state"

    /// Nil if the delegate has nothing to say; what was saved before stays.
    package var state: EncodedState?

    package init(state: EncodedState?) {
      self.state = state
    }

    /// Null, `{}` and `{"state": null}` are no state.
    package init(wire slice: JSONSlice) throws(Misfit) {
      guard !slice.isNull else { return }
      guard slice.kind == .object else { throw Misfit(Self.expected) }
      guard let member = slice["state"], !member.isNull else { return }
      guard member.duplicateName == nil else { throw Misfit("an object with distinct keys", at: "state") }
      state = try EncodedState(wire: member)
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { $0.member("state", ifPresent: state) }
    }
  }
}
