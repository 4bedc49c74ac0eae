// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The user manager that the tests have for themselves.
@Suite(.enabled(if: UserManager.isUsable, Comment(rawValue: UserManager.requirement)))
struct UserManagerTests {
  @Test(.userManager(installing: false)) func aUserOfTheTestsIsLoggedInAndOutAndHasAHome() throws {
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
  /// If a test dies while a user is logged in, neither processes nor control groups are left once the next test has
  /// begun.
  @Test(.scratch) func nothingIsLeftOfATestThatDies() throws {
    var manager: UserManager? = try UserManager(in: directory)
    try manager?.login()
    let command = ["sh", "-c", "echo $$ >pid; exec sleep 1000"]
    _ = try manager?.run(["systemd-run", "--user", "--quiet", "--service-type=exec"] + command)
    let group = try #require(manager?.group)
    #expect(Files.exists(group))
    let processes = try ChildProcess.run(["sh", "-c", "cat $(find \(group) -name cgroup.procs)"]).output
    let pids = processes.split(separator: "\n").compactMap { Int32($0) }
    #expect(pids.count >= 3)
    // Ends it as the death of the test's own process does: by a signal that it cannot act upon.
    manager = nil
    try Wait.until("its processes are gone") { pids.allSatisfy { !Files.exists("/proc/\($0)/exe") } }
    let next = try UserManager(in: directory)
    try next.login()
    #expect(!Files.exists(group))
    #expect(try next.output("id", "-un") == "restorationd-test\n")
  }
}
