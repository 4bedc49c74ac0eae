// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Gives an object its state back (R19, R25, R26).
package struct DecodeRestorableState: RestorationMethod {
  package static let method = "decodeRestorableState"
  package static let summary = "Gives a state back."
  package static let parameters: [Schema.Member] = [
    .required(
      "object",
      .either([.handle, .list(.string)]),
      "The object; live, vacant or archived. The empty path is the application itself."
    ),
  ]
  package static let errors: [ErrorDescription] = [
    .unknownObject, .replaced, .unknownApplication, .archiveUnreadable, .storeFailed, .requestCancelled,
  ]

  /// The empty path is the application itself: what its delegate saved.
  package var object: ObjectReference

  package init(object: ObjectReference) {
    self.object = object
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    do throws(ErrorObject) {
      self.object = try reader.reference("object")
    } catch {
      guard reader.slice("object")?.elements?.isEmpty == true else { throw error }
      self.object = .path([])
    }
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.key("object")
    object.write(to: &writer)
  }

  /// Whether there is a state, and if not why not.
  package enum Status: String, CaseIterable, Sendable {
    case available, none, classMismatch, quarantined, unreadable
  }

  package struct Reply: RestorationResult {
    package static let schema = Schema.object([
      .required("status", .words(Status.self), "Whether there is a state, and if not why not."),
      .required("state", .nullable(.state), "The state as it was encoded; null unless `available`."),
      .required(
        "coder",
        .nullable(ReservedKeys.schema),
        "The reserved keys of the session that wrote the state; null where there is none."
      ),
      .required(
        "elements",
        .elements,
        "As encoded, each with `resolved`: whether `indexPath` was found from `identifier` today."
      ),
    ])

    package var status: Status
    /// Nil unless the status is `available`.
    package var state: JSONText?
    /// Reserved keys of the session that wrote the state; nil where there is none.
    package var coder: JSONText?
    package var elements: JSONText?

    package init(status: Status, state: JSONText? = nil, coder: JSONText? = nil, elements: JSONText? = nil) {
      self.status = status
      self.state = state
      self.coder = coder
      self.elements = elements
    }

    package init?(_ slice: JSONSlice) {
      guard let word = slice["status"]?.string(), let status = Status(rawValue: word) else { return nil }
      self.status = status
      self.state = slice["state"].flatMap { $0.isNull ? nil : $0.compactText }
      self.coder = slice["coder"].flatMap { $0.isNull ? nil : $0.compactText }
      self.elements = slice["elements"].flatMap { $0.isNull ? nil : $0.compactText }
    }

    package func write(to writer: inout JSONWriter) {
      Self.write(status, state: state, elements: elements, to: &writer) { $0.text(orNull: coder) }
    }

    /// Writes a reply of these members, and the coder by `writingCoder`.
    package static func write(
      _ status: Status,
      state: JSONText?,
      elements: JSONText?,
      to writer: inout JSONWriter,
      writingCoder: (inout JSONWriter) -> Void
    ) {
      writer.beginObject()
      writer.key("status")
      writer.string(status.rawValue)
      writer.key("state")
      writer.text(orNull: state)
      writer.key("coder")
      writingCoder(&writer)
      writer.key("elements")
      if let elements {
        writer.text(elements)
      } else {
        writer.beginArray()
        writer.endArray()
      }
      writer.endObject()
    }
  }
}

extension JSONWriter {
  /// Writes the text, or null where there is none.
  package mutating func text(orNull text: JSONText?) {
    if let text {
      self.text(text)
    } else {
      null()
    }
  }
}
