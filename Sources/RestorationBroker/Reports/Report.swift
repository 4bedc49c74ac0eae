// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// A job that reads an archive in pieces and changes nothing. The value holds the request and the core's facts when the
/// call began; it runs as a task beside the core.
package protocol Report: Sendable {
  /// Contents that stay readable until it ends, and a minute longer: for its next page.
  var sequences: [SequenceNumber] { get }
  /// Whether the caller may cancel it between two pieces.
  var isCancellable: Bool { get }

  /// - Returns: the answer; `nil` if the core gives it.
  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)?
}

extension Report {
  package var sequences: [SequenceNumber] { [] }
  package var isCancellable: Bool { true }
}

/// Names a report for as long as the broker runs.
package struct ReportID: Hashable, Sendable {
  package let application: ApplicationID
  package let number: Int

  package init(application: ApplicationID, number: Int) { (self.application, self.number) = (application, number) }
}
