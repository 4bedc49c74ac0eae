// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// Windows that `terminal.sh` opens, under a real user manager.
@Suite(
  .userManager,
  .enabled(if: UserManager.isUsable && TerminalExample.isInstalled, Comment(rawValue: UserManager.requirement)),
  .timeLimit(.minutes(10))
)
struct TerminalWindowTests {
  /// Stands in for a terminal: its keyboard is a pipe with the window's name.
  private static let terminal = """
    import os, pty, sys
    name = [word for word in sys.argv if word.startswith("RESTORATION_SHELL=")][0].partition("=")[2]
    keys = os.path.expanduser(f"~/{name}")
    if not os.path.exists(keys):
        os.mkfifo(keys)
    os.dup2(os.open(keys, os.O_RDWR), 0)
    sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:])))
    """

  @Test func windowsComeBackEachWithItsShellAfterEverythingWasKilled() throws {
    let folder = try manager.added("Protocol/examples/terminal")
    try manager.write(Self.terminal, to: "\(manager.home)/terminal.py")
    let settings = "PS1='> '\nPATH=~/.local/bin:$PATH\nRESTORATION_WAIT=600\n. \(folder)/shell.bash\n"
    try manager.write(settings, to: "\(manager.home)/.bashrc")
    let terminal = ["TERMINAL": "python3 \(manager.home)/terminal.py", "SHELL": "/bin/bash"]
    for directory in ["/usr", "/var"] {
      let opened = try manager.run(["env", "-C", directory, "sh", "\(folder)/terminal.sh"], environment: terminal)
      #expect(opened.end == .exit(0), "\(opened.output)\(opened.errors)")
    }
    func windows() -> [String] {
      Files.list(manager.outside(manager.home)).filter { $0.hasPrefix("terminal-") }.sorted()
    }
    try Wait.until("two windows are open") { windows().count == 2 }
    let names = windows()
    /// Types a command in a window, and waits until it is done; what it has written.
    @discardableResult func run(_ command: String, in name: String) throws -> String {
      let written = manager.outside("\(manager.home)/written")
      Files.remove(written)
      try manager.write("{ \(command); } >~/part; mv ~/part ~/written\n", to: "\(manager.home)/command")
      _ = try manager.run(["sh", "-c", "cat ~/command >~/\(name)"])
      try Wait.until("\(name) has done \(command)") { Files.exists(written) }
      return try Files.text(written)
    }
    #expect(Set(try names.map { try run("pwd", in: $0) }) == ["/usr\n", "/var\n"])
    for (name, directory) in zip(names, ["/usr/lib", "/usr/share"]) {
      try run("cd \(directory); echo of \(directory)", in: name)
      // The place in the history is stored with it: the other shell must not have added anything before.
      try Wait.until("the directory of \(name) is saved") {
        try manager.run(["restorationctl", "get", "-r", "org.gnu.bash", name, "/directory"]).output == "\(directory)\n"
      }
    }
    try manager.output("systemctl", "--user", "kill", "--signal=KILL", "restoration-run@*", UserManager.service)
    for name in names {
      let unit = "restoration-run@\(name).service"
      try Wait.until("\(name) is started again") {
        let restarts = try manager.property("NRestarts", of: unit)
        let state = try manager.property("ActiveState", of: unit)
        return restarts == "1" && state == "active"
      }
    }
    for (name, directory) in zip(names, ["/usr/lib", "/usr/share"]) {
      let place = try run("pwd; history 2 | head -n 1", in: name)
      #expect(place.hasPrefix("\(directory)\n") && place.contains("echo of \(directory);"), "\(place)")
    }
    // Whoever ends the shell is done with the window.
    _ = try manager.run(["sh", "-c", "echo exit >~/\(names[0])"])
    try Wait.until("one is left") {
      try manager.output("restorationctl", "run", "--list", "--no-legend").split(separator: "\n").count == 1
    }
  }
}
