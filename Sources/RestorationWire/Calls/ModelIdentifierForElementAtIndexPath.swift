// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks a view's data source what element is at an index path now, to find it again when the data has changed (R28).
package struct ModelIdentifierForElementAtIndexPath: RestorationCall {
  package static let method = ServedMethod.modelIdentifierForElementAtIndexPath
  package static let summary = "Which element of the model a view shows at this index path."
  package static let parameters: [Schema.Member] = [
    .required("view", .path, "Path of the view."),
    .required("indexPath", .list(.count), "Where the element is in the view."),
    .required("role", .words(Element.Role.self), "`selected` or `topVisible`."),
  ]

  /// Path of the view.
  package var view: IdentifierPath
  package var indexPath: [Int]
  package var role: Element.Role

  package init(view: IdentifierPath, indexPath: [Int], role: Element.Role) {
    self.view = view
    self.indexPath = indexPath
    self.role = role
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(parameters)
      self.view = try reader.path("view")
      self.indexPath = try reader.list("indexPath") { $0.integer().flatMap { Int(exactly: $0) } }
      self.role = try reader.word("role", as: Element.Role.self)
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("view", view)
      writer.member("indexPath", indexPath)
      writer.member("role", role.rawValue)
    }
  }

  /// The element's identifier; nil where there is none to be kept.
  package struct Answer: RestorationResult, Hashable {
    package static let schema = Schema.nullable(.string)

    package var identifier: String?

    package init(identifier: String?) {
      self.identifier = identifier
    }

    package init?(_ slice: JSONSlice) {
      guard !slice.isNull else { return }
      guard let identifier = slice.string() else { return nil }
      self.identifier = identifier
    }

    package func write(to writer: inout JSONWriter) {
      identifier.writeJSON(to: &writer)
    }
  }
}
