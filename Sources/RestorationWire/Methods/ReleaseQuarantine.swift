// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Ends the quarantine of one object or of all of them: their states are handed out again (R31, R35).
package struct ReleaseQuarantine: RestorationMethod {
  package static let method = "releaseQuarantine"
  package static let summary = "Hands withheld states out again."
  package static let parameters: [Schema.Member] = [
    .optional("path", .path, "The object to release."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownObject, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  /// Nil releases everything, the archive as a whole included.
  package var path: IdentifierPath?

  package init(path: IdentifierPath? = nil) {
    self.path = path
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    guard reader.present("path") != nil else {
      self.path = nil
      return
    }
    guard case .path(let path) = try reader.reference("path") else {
      throw reader.wrong("path", "a path (array of strings)")
    }
    self.path = path
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("path", ifPresent: path)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("released", .count, "Objects whose states were withheld until now."),
    ])

    /// Objects whose state was withheld until now.
    package var released: Int

    package init(released: Int) {
      self.released = released
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.released = try ResultReader(slice).count("released")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("released", released) }
    }
  }
}
