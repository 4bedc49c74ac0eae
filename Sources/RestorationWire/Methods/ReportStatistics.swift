// SPDX-License-Identifier: Apache-2.0

/// Reports what the broker has done since it started and what it holds now.
package struct ReportStatistics: RestorationMethod {
  package static let method = "statistics"
  package static let summary = "Reports what the broker did."
  package static let isScoped = false

  package typealias Reply = BrokerStatistics

  package init() {}
}
