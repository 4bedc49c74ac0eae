// SPDX-License-Identifier: Apache-2.0

/// Reports every limit the broker holds its clients to.
package struct ReportLimits: RestorationMethod {
  package static let method = "limits"
  package static let summary = "Reports limits."
  package static let isScoped = false

  package typealias Reply = Limits

  package init() {}
}
