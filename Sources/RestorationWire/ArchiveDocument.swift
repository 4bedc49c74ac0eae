// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A document of `exportArchive`, or a part of one: what it says of itself, and its objects as they came
/// (`Protocol/export-format.md`).
package struct ArchiveDocument: WireObject {
  package static let sharedName: String? = "ArchiveDocument"
  package static let isGiven = true

  /// The format's name.
  private enum Format: String, WireWord {
    case archive = "restorationd.archive"

    static let schema = Schema.constant(.string(archive.rawValue))
    static let expected = "\"\(archive.rawValue)\""
  }

  /// The format's version.
  private struct Version: WireValue {
    static let only: Int64 = 1
    static let schema = Schema.constant(.integer(only))
    static let expected = "\(only)"

    init() {}

    init(wire slice: JSONSlice) throws(Misfit) {
      let version = try Int64(wire: slice)
      guard version == Self.only else {
        let message = "the document is of version \(version), this broker reads \(Self.only)"
        let hint = "Export it with a broker of this version, or import it with a later one."
        throw Misfit(.unsuited(message, hint: hint), at: "")
      }
    }

    func writeJSON(to writer: inout JSONWriter) {
      writer.integer(Self.only)
    }
  }

  /// Whether confidential states were left out.
  package var redacted = false
  /// Each as `DocumentObject` reads and writes it.
  package var objects: [JSONText] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    var (format, version) = (Format.archive, Version())
    try members.required("format", &format, "`\"restorationd.archive\"`.")
    try members.required("version", &version, "1.")
    var isRedacted: Bool? = redacted
    try members.optional("redacted", &isRedacted, "Confidential states were left out.")
    redacted = isRedacted ?? false
    try members.required(
      "objects",
      &objects,
      .text(of: DocumentObject.self),
      "The objects, parents before their children."
    )
  }

  /// Reads a document or a part.
  ///
  /// - Parameter place: where it lies in the parameters, such as `/document`.
  package init(_ slice: JSONSlice, at place: String) throws(ErrorObject) {
    guard slice.kind == .object else {
      throw .invalidParameter(place, "the document is not an object", hint: "Give what exportArchive gave.")
    }
    do throws(Misfit) {
      try self.init(wire: slice)
    } catch {
      throw error.invalidParameter(at: "\(place)/\(error.place)")
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
