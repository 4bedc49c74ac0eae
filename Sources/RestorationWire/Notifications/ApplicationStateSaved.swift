// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A save round was committed as this generation (R11).
package struct ApplicationStateSaved: RestorationNotification, Hashable {
  package static let method = ServedMethod.applicationStateSaved

  package var generation: Int64

  package init(generation: Int64) {
    self.generation = generation
  }

  package init?(_ parameters: JSONSlice) {
    guard let generation = parameters["generation"]?.integer() else { return nil }
    self.generation = generation
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { $0.member("generation", generation) }
  }
}
