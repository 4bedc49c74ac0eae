// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Versions of the protocol this code speaks; within one, only additions are made.
package enum ProtocolVersion {
  /// Of the programs and libraries of this repository.
  package static let program = "0.1.0"

  package static let first: Int64 = 1
  package static let current: Int64 = 1

  /// In ascending order; `data.supported` of `unsupportedProtocolVersion`.
  package static let supported: [Int64] = [1]
}

/// Name and version of the broker's program.
package struct BrokerVersion: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "BrokerVersion",
    .object([
      .required("name", .string, "Of the broker's program."),
      .required("version", .string, "Of the broker's program."),
    ])
  )

  package var name: String
  package var version: String

  package init(name: String, version: String) {
    self.name = name
    self.version = version
  }

  /// Reads the member of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.name = try reader.string("name")
      self.version = try reader.string("version")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("name", name)
      writer.member("version", version)
    }
  }
}
