// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A document of `exportArchive`, or a part of one: what it says of itself, and its objects as they came
/// (`Protocol/export-format.md`).
package struct ArchiveDocument: Sendable {
  package static let schema = Schema.shared(
    "ArchiveDocument",
    .object([
      .required("format", .constant(.string(format)), "`\"restorationd.archive\"`."),
      .required("version", .constant(.integer(version)), "1."),
      .optional("redacted", .nullable(.boolean), "Confidential states were left out."),
      .required("objects", .list(DocumentObject.schema), "The objects, parents before their children."),
    ])
  )

  package static let format = "restorationd.archive"
  package static let version: Int64 = 1

  /// Whether confidential states were left out.
  package var redacted: Bool
  /// Each to be read by `DocumentObject`.
  package var objects: [JSONSlice]

  /// Reads a document or a part.
  ///
  /// - Parameter place: where it lies in the parameters, such as `/document`.
  package init(_ slice: JSONSlice, at place: String) throws(ErrorObject) {
    guard slice.kind == .object else {
      throw .invalidParameter(place, "the document is not an object", hint: "Give what exportArchive gave.")
    }
    do throws(ErrorObject) {
      let reader = ObjectReader(slice)
      let format: String = try reader.required("format")
      guard format == Self.format else {
        throw Misfit("\"\(Self.format)\"", at: "format").invalidParameter(at: "/format")
      }
      let version: Int64? = try reader.optional("version", .from(1))
      guard version == Self.version else {
        throw .invalidParameter(
          "/version",
          version.map { "the document is of version \($0), this broker reads \(Self.version)" } ?? "version is missing",
          hint: "Export it with a broker of this version, or import it with a later one."
        )
      }
      self.redacted = try reader.optional("redacted") ?? false
      self.objects = try reader.required("objects")
    } catch {
      throw error.below(place)
    }
  }

  /// Writes a document or a part; `objects` are texts that `DocumentObject` wrote.
  package static func write(redacted: Bool, _ objects: [JSONText], to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("format", format)
      writer.member("version", version)
      writer.member("redacted", redacted)
      writer.member("objects", objects)
    }
  }
}

extension ErrorObject {
  /// The same error with `place` put before the pointer it has.
  package func below(_ place: String) -> ErrorObject {
    guard case .object(var data) = data else { return self }
    data["pointer"] = .string(place + (data["pointer"]?.string ?? ""))
    return ErrorObject(code: code, message: message, data: .object(data))
  }
}
