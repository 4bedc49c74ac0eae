// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `systemd/install.sh` as a user who is logged in.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition))
struct ServiceInstallTests {
  @Test func whatTheInstallerInstallsIsActivatedAndUpgradedUnderItsConnections() async throws {
    try await withUserManager(installing: false) { manager in
      let programs = "/run/restorationd-test/programs"
      try manager.add(Products.broker, as: "\(programs)/restorationd")
      try manager.add(Products.control, as: "\(programs)/restorationctl")
      let installer = "\(try manager.added("systemd"))/install.sh"
      let first = try manager.output(installer, "--from", programs)
      #expect(first.contains("bin/restorationd"))
      #expect(try manager.property("ActiveState", of: UserManager.socketUnit) == "active")
      #expect(first.contains("The broker answers."))

      let client = try manager.client(.python)
      try client.initialize("org.example.Notes")
      let object = try client.call("registerObjectForStateRestoration", ["restorationIdentifier": "A"])["object"]
      let pid = try manager.mainPID
      #expect(try manager.output("readlink", "/proc/\(pid)/exe") == "\(manager.broker)\n")
      try manager.output(installer, "--from", programs)
      #expect(try manager.mainPID == pid)

      // A program that is different from the one installed, which works as well with what is after its end.
      _ = try manager.output("sh", "-c", "cp '\(manager.broker)' other; echo other >>other; mv other '\(manager.broker)'")
      try manager.output(installer, "--from", programs)
      let successor = try manager.waitForSuccessor(of: pid)
      #expect(try manager.output("readlink", "/proc/\(successor)/exe") == "\(manager.broker)\n")
      try client.call("encodeRestorableState", ["object": object ?? .null, "state": ["n": 1]])

      let uninstaller = "\(try manager.added("systemd"))/uninstall.sh"
      try manager.output(uninstaller)
      #expect(try manager.property("LoadState", of: UserManager.socketUnit) == "not-found")
      #expect(!Files.exists(manager.outside(manager.broker)))
      #expect(Files.exists(manager.archive("org.example.Notes")))
    }
  }
}
