// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Asks the delegate whether a save round may go on (R11).
package struct ShouldSaveApplicationState: RestorationCall {
  package typealias Answer = Decision

  package static let method = ServedMethod.shouldSaveApplicationState

  /// The application's own state as it was saved last, and who wrote it; nil where there is none.
  package var application: ApplicationState

  package init(application: ApplicationState) {
    self.application = application
  }

  package init?(_ parameters: JSONSlice) {
    guard let application = ApplicationState(parameters) else { return nil }
    self.application = application
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { application.writeMembers(to: &$0) }
  }
}
