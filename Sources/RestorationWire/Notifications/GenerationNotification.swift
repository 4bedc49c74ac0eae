// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A notification that only names a generation.
package protocol GenerationNotification: RestorationNotification {
  var generation: Int64 { get }

  init(generation: Int64)
}

extension GenerationNotification {
  package init?(_ parameters: JSONSlice) {
    guard let generation = parameters["generation"]?.integer() else { return nil }
    self.init(generation: generation)
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { $0.member("generation", generation) }
  }
}
