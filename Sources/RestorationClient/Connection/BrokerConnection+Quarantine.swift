// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

// `application` names the application on a connection without a session; with one it is left out.
extension BrokerConnection {
  /// What is withheld from its owners because it ended in crashes, and what is suspected of it. Reads all pages.
  ///
  /// - Parameter reveal: show the states of confidential objects.
  public func listQuarantine(of application: String? = nil, reveal: Bool = false) async throws -> QuarantineReport {
    var call = ListQuarantine().with { $0.reveal = reveal }
    var report = try await perform(call, application: application)
    while let cursor = report.cursor {
      call.cursor = cursor
      let page = try await perform(call, application: application)
      report.objects += page.objects
      report.cursor = page.cursor
    }
    return report
  }

  /// Hands out again what was withheld, and forgets what it was suspected of.
  ///
  /// - Parameter path: the object; nil releases everything, the archive as a whole included.
  /// - Returns: how many objects' states were withheld until now.
  @discardableResult
  public func releaseQuarantine(of path: IdentifierPath? = nil, application: String? = nil) async throws -> Int {
    try await perform(ReleaseQuarantine().with { $0.path = path }, application: application).released
  }
}
