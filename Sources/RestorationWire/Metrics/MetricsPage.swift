// SPDX-License-Identifier: Apache-2.0

/// The metrics as a GET over HTTP gets them: its path.
package enum MetricsPage: String, CaseIterable, Sendable {
  case ofBroker = "/metrics"
  /// Also what is known of each application.
  case ofApplications = "/metrics/applications"

  package static let paths = Set(allCases.map(\.rawValue))

  /// The media type of the text.
  package static let mediaType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
}
