// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// All sessions have decoded: these objects of the session are restored (R21).
package struct ApplicationFinishedRestoringState: RestorationNotification, Hashable {
  package static let method = ServedMethod.applicationFinishedRestoringState
  package static let summary =
    "The restoration is over, for all sessions (R21): these objects of this session are restored."
  package static let parameters: [Schema.Member] = [
    .required("objects", .list(.handle), "Handles of the objects."),
  ]

  package var objects: [ObjectHandle]

  package init(objects: [ObjectHandle]) {
    self.objects = objects
  }

  package init?(_ parameters: JSONSlice) {
    do throws(WrongShape) {
      self.objects = try ResultReader(parameters).list("objects") { $0.integer() }
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { $0.member("objects", objects) }
  }
}
