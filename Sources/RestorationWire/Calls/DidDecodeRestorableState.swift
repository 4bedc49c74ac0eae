// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Tells the delegate that everything was decoded, and gives the application's own state back (R21).
package struct DidDecodeRestorableState: RestorationCall {
  package typealias Answer = Acknowledgement

  package static let method = ServedMethod.didDecodeRestorableState

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
