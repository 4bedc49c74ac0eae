// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Hands a session the states of some of its objects, parents first (R21).
package struct DecodeRestorableStateWithCoder: RestorationCall {
  package typealias Answer = Acknowledgement

  package static let method = ServedMethod.decodeRestorableStateWithCoder
  package static let summary = "Fills these objects (R21)."
  package static let parameters: [Schema.Member] = [
    .required("objects", .list(Object.schema), "The objects, each with its state or deferred."),
  ]

  package var objects: [Object]

  package init(objects: [Object]) {
    self.objects = objects
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      self.objects = try ResultReader(parameters).list("objects") { Object($0) }
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { $0.member("objects", objects) }
  }

  package struct Object: Sendable, Equatable, JSONWritable {
    package static let schema = Schema.shared(
      "DecodedObject",
      .either([
        .object(
          named + [
            .required("state", .state, "The state."),
            .required("coder", .nullable(ReservedKeys.schema), "Its reserved keys."),
            .required("elements", .elements, "Its elements."),
          ]
        ),
        .object(named + [.required("deferred", .true, "To be fetched with `decodeRestorableState`.")]),
      ])
    )

    private static let named: [Schema.Member] = [
      .required("object", .handle, "The handle."),
      .required("path", .nullable(.path), "The path; null where the object's own identifier is null."),
    ]

    package var object: ObjectHandle
    package var path: IdentifierPath?
    /// Nil where the state is too large to be sent unasked: the client fetches it with `decodeRestorableState`.
    package var content: Content?

    package struct Content: Sendable, Equatable {
      package var state: JSONText
      package var coder: JSONText?
      /// JSON array of the elements.
      package var elements: JSONText

      package init(state: JSONText, coder: JSONText?, elements: JSONText) {
        self.state = state
        self.coder = coder
        self.elements = elements
      }
    }

    package init(object: ObjectHandle, path: IdentifierPath?, content: Content?) {
      self.object = object
      self.path = path
      self.content = content
    }

    init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.object = try reader.integer("object")
        self.path = try reader.optionalPath("path")
        guard try !reader.bool("deferred") else { return }
        self.content = Content(
          state: try reader.value("state") { $0.compactText },
          coder: try reader.optionalText("coder"),
          elements: try reader.optionalText("elements") ?? .emptyArray
        )
      } catch {
        return nil
      }
    }

    package func writeJSON(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("object", object)
        writer.member("path", path)
        if let content {
          writer.member("state", content.state)
          writer.member("coder", content.coder)
          writer.member("elements", content.elements)
        } else {
          writer.member("deferred", true)
        }
      }
    }
  }
}
