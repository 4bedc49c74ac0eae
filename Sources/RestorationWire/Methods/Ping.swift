// SPDX-License-Identifier: Apache-2.0

/// Does nothing; shows that the broker answers.
package struct Ping: RestorationMethod {
  package static let method = "ping"
  package static let summary = "Does nothing."
  package static let isScoped = false

  package typealias Reply = EmptyResult

  package init() {}
}
