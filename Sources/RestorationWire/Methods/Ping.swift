// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Does nothing; shows that the broker answers.
package struct Ping: RestorationMethod {
  package static let method = "ping"
  package static let summary = "Does nothing."
  package static let isScoped = false

  package typealias Reply = EmptyResult

  package init() {}

  package init(_ reader: ParameterReader) throws(ErrorObject) {}

  package func writeMembers(to writer: inout JSONWriter) {}
}
