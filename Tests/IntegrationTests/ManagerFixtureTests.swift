// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The user manager that the tests have for themselves.
@Suite(.enabled(if: UserManager.isUsable, Comment(rawValue: UserManager.requirement)))
struct UserManagerTests {
  @Test func aUserOfTheTestsIsLoggedInAndOutAndHasAHome() async throws {
    try await withUserManager(installing: false) { manager in
      #expect(try manager.output("id", "-un") == "restorationd-test\n")
      #expect(try manager.systemctl("is-system-running", "--wait") == "running\n")
      _ = try manager.output("sh", "-c", "echo here >kept; echo there >$XDG_RUNTIME_DIR/lost")
      try manager.logout()
      #expect(try manager.run(["systemctl", "--user", "is-system-running"]).end != .exit(0))
      try manager.login()
      #expect(try manager.output("cat", "kept") == "here\n")
      #expect(try manager.run(["cat", "/run/user/59999/lost"]).end == .exit(1))
      #expect(try manager.run(["cat", "/root/.profile"]).end == .exit(1))
      #expect(try manager.run(["sh", "-c", "kill -TERM $$"]).end == .signal(15))
    }
  }
}
