// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The libraries in the event loops of toolkits.
@Suite(.timeLimit(.minutes(10))) struct ToolkitTests {
  /// Debian's own, for which Debian has packages of the toolkits.
  private static let python = "/usr/bin/python3"

  private static func has(_ module: String) -> Bool {
    if Environment.isCI { return true }
    return (try? ChildProcess.run([python, "-c", "import \(module)"]))?.end == .exit(0)
  }

  @Test(
    "A session in the loop of GLib or Qt saves and is not held up by its broker",
    .scratch,
    .enabled(if: has("gi, PySide2"), "needs python3-gi and python3-pyside2.qtcore; Tests/run.sh installs them"),
    arguments: ["glib", "pyside"]
  )
  func loopsGoOn(_ toolkit: String) throws {
    let program = "\(Products.repository)/Tests/Clients/loops/loops.py"
    let result = try ChildProcess.run(
      [Self.python, "-B", program, toolkit, Products.broker, directory.path],
      environment: ["PYTHONPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    print(result.output)
  }

  @Test(
    "The loops have types that hold",
    .enabled(if: PythonPackages.areUsable("mypy"), Comment(rawValue: PythonPackages.requirement))
  )
  func typesHold() throws {
    let checked = try ChildProcess.run(
      [
        PythonPackages.program("mypy"), "--strict", "--cache-dir=/dev/null",
        "\(LibraryClient.module)/restorationd_loops.py",
      ],
      environment: ["MYPYPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    #expect(checked.end == .exit(0), "\(checked.output)")
  }
}
