// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Lists the applications that have live sessions or an archive.
package struct ListApplications: RestorationMethod {
  package static let method = "listApplications"
  package static let summary = "Lists applications."
  package static let isScoped = false

  package init() {}

  package init(_ reader: ParameterReader) throws(ErrorObject) {}

  package func writeMembers(to writer: inout JSONWriter) {}

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required(
        "applications",
        .list(ApplicationOverview.schema),
        "In ascending order of name."
      ),
    ])

    /// In ascending order of name.
    package var applications: [ApplicationOverview]

    package init(applications: [ApplicationOverview]) {
      self.applications = applications
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.applications = try ResultReader(slice).list("applications") { ApplicationOverview($0) }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("applications", applications) }
    }
  }
}
