// SPDX-License-Identifier: Apache-2.0

/// The paths of the metrics for GET over HTTP.
package enum MetricsPage: String, CaseIterable, Sendable {
  case ofBroker = "/metrics"
  /// Includes metrics of single applications.
  case ofApplications = "/metrics/applications"

  package static let paths = Set(allCases.map(\.rawValue))

  package static let mediaType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
}
