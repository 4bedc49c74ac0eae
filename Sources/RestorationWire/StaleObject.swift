// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An object whose state in a generation is an older one than the round that made it (R12).
package struct StaleObject: Hashable, Sendable, JSONWritable {
  package static let schema = Schema.shared(
    "StaleObject",
    .object([
      .required("object", .nullable(.handle), "Its handle; null where its owner has it no more."),
      .required(
        "path",
        .nullable(.list(.string)),
        "Its path; empty for the application's own state; null where its own identifier is null."
      ),
      .required("process", .nullable(.string), "Who was asked."),
      .required("pid", .nullable(.integer(1...)), "Who was asked."),
      .required(
        "why",
        .openWords(Cause.self),
        "One of the words below, or the kind of the error that an encode of this state would have got, such as "
          + "`reservedKey`, `invalidReference`, `limitExceeded`, `replaced`."
      ),
      .optional("message", .string, "Why, in the words of who was asked; for people. At most 256 bytes."),
    ])
  )

  /// Why there is no newer state; besides these the kind of the error that refused it, and more may come.
  package enum Cause: String, CaseIterable, Sendable {
    /// No answer within the deadline, or one alone that was put off three times.
    case late
    /// The session ended, or its process did.
    case ended
    /// The connection was lost.
    case disconnected
    /// The answer was not of the form it has to have.
    case malformed
    /// The answer left the object out.
    case missing
    /// The client answered an error.
    case failed
  }

  /// Nil where the broker has given no handle that still holds.
  package var object: ObjectHandle?
  /// Empty for the application's own state; nil where the object's own identifier is null (R4).
  package var path: [String]?
  /// The process role that the owner's session gave.
  package var process: String?
  package var pid: Int64?
  /// A word of `Cause`, or the kind of an error.
  package var why: String
  /// What who was asked has said of it, or what is wrong with the answer.
  package var message: String?

  package init(
    object: ObjectHandle?,
    path: [String]?,
    process: String?,
    pid: Int64?,
    why: String,
    message: String? = nil
  ) {
    self.object = object
    self.path = path
    self.process = process
    self.pid = pid
    self.why = why
    self.message = message
  }

  /// Reads an item of a result; nil where it has another form.
  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.object = try reader.optionalInteger("object")
      self.path = try reader.optional("path") { path -> [String]? in
        guard let components = path.elements?.map({ $0.string() }) else { return nil }
        return components.contains(nil) ? nil : components.compactMap { $0 }
      }
      self.process = try reader.optionalString("process")
      self.pid = try reader.optionalInteger("pid")
      self.why = try reader.string("why")
      self.message = try reader.optionalString("message")
    } catch {
      return nil
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("object", object)
      writer.member("path", path)
      writer.member("process", process)
      writer.member("pid", pid)
      writer.member("why", why)
      writer.member("message", ifPresent: message)
    }
  }
}
