// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Lists the generations that are kept (R16).
package struct ListGenerations: RestorationMethod {
  package static let method = "listGenerations"
  package static let summary = "Lists generations."
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable]

  package init() {}

  package init(_ reader: ParameterReader) throws(ErrorObject) {}

  package func writeMembers(to writer: inout JSONWriter) {}

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required(
        "generations",
        .list(GenerationDescription.schema),
        "In ascending order of number."
      ),
    ])

    /// In ascending order of number.
    package var generations: [GenerationDescription]

    package init(generations: [GenerationDescription]) {
      self.generations = generations
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.generations = try ResultReader(slice).list("generations") { GenerationDescription($0) }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("generations", generations) }
    }
  }
}
