// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Says that this session has restored what it wanted to (R19, R31).
package struct CompleteStateRestoration: RestorationMethod {
  package static let method = "completeStateRestoration"
  package static let summary = "Says that the session is restored."
  package static let errors: [ErrorDescription] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  package init() {}

  package init(_ reader: ParameterReader) throws(ErrorObject) {}

  package func writeMembers(to writer: inout JSONWriter) {}

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("pending", .count, "Sessions of the application that are still restoring."),
    ])

    /// Sessions of the application that are still restoring.
    package var pending: Int64

    package init(pending: Int64) {
      self.pending = pending
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.pending = try ResultReader(slice).integer("pending")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("pending", pending) }
    }
  }
}
