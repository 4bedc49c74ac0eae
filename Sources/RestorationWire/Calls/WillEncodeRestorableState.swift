// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Tells the delegate that a save round begins, and asks for the application's own state (R11).
package struct WillEncodeRestorableState: RestorationCall {
  package static let method = ServedMethod.willEncodeRestorableState
  package static let summary = "The round has begun."
  package static let parameters: [Schema.Member] = [
    .required("round", .integer(1...), "Number of the round."),
  ]

  /// Number of the round.
  package var round: Int64

  package init(round: Int64) {
    self.round = round
  }

  package init?(_ parameters: JSONSlice) {
    guard let round = parameters["round"]?.integer() else { return nil }
    self.round = round
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { $0.member("round", round) }
  }

  package struct Answer: RestorationResult {
    package static let schema = Schema.nullable(
      .object([.optional("state", .nullable(.state), "The application's own state; without it that stays as it was.")])
    )

    /// Nil where the delegate has nothing to say; what was saved before stays.
    package var state: EncodedState?

    package init(state: EncodedState?) {
      self.state = state
    }

    /// Null, `{}` and `{"state": null}` are no state.
    package init?(_ slice: JSONSlice) {
      guard !slice.isNull else { return }
      guard slice.kind == .object else { return nil }
      guard let member = slice["state"], !member.isNull else { return }
      guard let state = EncodedState(member), member.duplicateName == nil else { return nil }
      self.state = state
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("state", ifPresent: state?.text) }
    }
  }
}
