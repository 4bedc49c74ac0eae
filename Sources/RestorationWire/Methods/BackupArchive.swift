// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Copies the archive: as its own last good copy, or to a file (R32).
package struct BackupArchive: RestorationMethod {
  package static let method = "backupArchive"
  package static let summary = "Copies the archive."
  package static let parameters: [Schema.Member] = [
    .optional(
      "to",
      .text(pattern: "^/", length: 2...pathBytesMax),
      "Absolute path of a file that must not be there yet."
    ),
    .optional("progressToken", ProgressToken.schema, "Asks for `progress`, which counts bytes."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]

  /// Absolute path of a file that must not exist; nil for the archive's own backup copy.
  package var to: String?
  package var progressToken: ProgressToken?

  package init(to: String? = nil, progressToken: ProgressToken? = nil) {
    self.to = to
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.to = try reader.optionalString("to")
    if let to, !Self.isFile(to) { throw reader.wrong("to", "the absolute path of a file") }
    self.progressToken = try ProgressToken.read(from: reader)
  }

  /// Bytes of a path at most, as Linux has it.
  private static let pathBytesMax = 4_095

  private static func isFile(_ path: String) -> Bool {
    let bytes = path.utf8
    let last = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? ""[...].utf8
    return bytes.first == UInt8(ascii: "/") && bytes.count <= pathBytesMax && !bytes.contains(0)
      && !last.isEmpty && !last.elementsEqual(".".utf8) && !last.elementsEqual("..".utf8)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("to", ifPresent: to)
    writer.member("progressToken", ifPresent: progressToken)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("to", .nullable(.string), "As asked for."),
      .required("bytes", .count, "Of the copy."),
      .required("milliseconds", .count, "How long it took."),
    ])

    /// As asked for; nil for the archive's own backup copy.
    package var to: String?
    /// Of the copy.
    package var bytes: Int
    package var milliseconds: Int64

    package init(to: String?, bytes: Int, milliseconds: Int64) {
      self.to = to
      self.bytes = bytes
      self.milliseconds = milliseconds
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.to = try reader.optionalString("to")
        self.bytes = try reader.count("bytes")
        self.milliseconds = try reader.integer("milliseconds")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("to", to)
        writer.member("bytes", bytes)
        writer.member("milliseconds", milliseconds)
      }
    }
  }
}
