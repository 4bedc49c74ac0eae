// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What is saved was replaced as a whole by this generation; objects may be restored anew.
package struct HeadReplaced: RestorationNotification, Hashable {
  package static let method = ServedMethod.headReplaced

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
