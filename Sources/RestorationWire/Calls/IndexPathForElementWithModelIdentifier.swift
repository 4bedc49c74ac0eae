// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a view's data source where the element with this identifier is today (R28).
package struct IndexPathForElementWithModelIdentifier: RestorationCall {
  package static let method = ServedMethod.indexPathForElementWithModelIdentifier
  package static let summary = "Where a view shows this element of the model today."
  package static let parameters: [Schema.Member] = [
    .required("view", .path, "Path of the view."),
    .required("identifier", .string, "The element's identifier."),
    .required("role", .words(Element.Role.self), "`selected` or `topVisible`."),
  ]

  /// Path of the view.
  package var view: IdentifierPath
  package var identifier: String
  package var role: Element.Role

  package init(view: IdentifierPath, identifier: String, role: Element.Role) {
    self.view = view
    self.identifier = identifier
    self.role = role
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.view = try reader.path("view")
      self.identifier = try reader.string("identifier")
      self.role = try reader.word("role", as: Element.Role.self)
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("view", view)
      writer.member("identifier", identifier)
      writer.member("role", role.rawValue)
    }
  }

  /// Today's index path; nil where the element is gone.
  package struct Answer: RestorationResult, Hashable {
    package static let schema = Schema.nullable(.list(.count))

    package var indexPath: [Int]?

    package init(indexPath: [Int]?) {
      self.indexPath = indexPath
    }

    package init?(_ slice: JSONSlice) {
      guard !slice.isNull else { return }
      guard let slices = slice.elements else { return nil }
      var indexPath: [Int] = []
      for slice in slices {
        guard let index = slice.integer().flatMap({ Int(exactly: $0) }), index >= 0 else { return nil }
        indexPath.append(index)
      }
      self.indexPath = indexPath
    }

    package func write(to writer: inout JSONWriter) {
      indexPath.writeJSON(to: &writer)
    }
  }
}
