// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The first command of the README, without its building.
@Suite struct DemonstrationTests {
  @Test func everythingThatWasKilledComesBack() async throws {
    try await withScratch(alone: true) { _ in
      let program = "\(Products.repository)/systemd/demonstration.py"
      let result = try ChildProcess.run(["python3", program, Products.directory], Deadline(.seconds(120)))
      #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
      for line in result.output.split(separator: "\n") {
        #expect(line.count <= 80, "\(line)")
      }
    }
  }
}
