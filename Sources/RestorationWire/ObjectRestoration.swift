// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What registering an object says about its saved state.
package struct ObjectRestoration: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "ObjectRestoration",
    .object([
      .required("state", RestorationState.schema, "Whether there is a state to decode."),
      .required("classMatches", .boolean, "False where a decode would answer `classMismatch` (R25)."),
    ])
  )

  package var state: RestorationState
  /// False where a decode would answer `classMismatch` (R25).
  package var classMatches: Bool

  package init(state: RestorationState, classMatches: Bool = true) {
    self.state = state
    self.classMatches = classMatches
  }

  /// Reads the member of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.state = try reader.word("state", as: RestorationState.self)
      self.classMatches = try reader.value("classMatches") { $0.bool() }
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("state", state)
      writer.member("classMatches", classMatches)
    }
  }
}
