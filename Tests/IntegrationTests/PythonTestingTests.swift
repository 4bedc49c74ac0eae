// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The proof kit of the Python library, `restorationd_testing`, with pytest. Each file of `Tests/Clients/testing` is a
/// run of its own.
@Suite(
  .timeLimit(.minutes(10)),
  .enabled(if: PythonPackages.areUsable("pytest", "xdist"), Comment(rawValue: PythonPackages.requirement))
) struct PythonTestingTests {
  @Test("A broker is killed, restarted and frozen on command, and leaves nothing behind", .scratch)
  func brokersObey() throws { try run("test_broker.py") }

  @Test("R15 R19 An application that forgets nothing passes, whether it pushes or serves", .scratch)
  func correctApplicationsPass() throws { try run("test_proof.py") }

  @Test("R15 What an application forgets when it is killed is named by path and field", .scratch)
  func lossesAreNamed() throws { try run("test_losses.py") }

  @Test("An application of which nothing can be proven does not pass", .scratch)
  func whatIsUnprovenFails() throws { try run("test_unproven.py") }

  @Test("R16 A stored generation comes back in a running application", .scratch)
  func generationsAreReplayed() throws { try run("test_replay.py") }

  @Test("The test on the page of the Python library passes as pip installs it, and fails if a field is lost", .scratch)
  func thePageIsTrue() throws { try run("test_page.py") }

  @Test("The kit has types that hold")
  func typesHold() throws {
    let checked = try ChildProcess.run(
      [
        PythonPackages.program("mypy"), "--strict", "--cache-dir=/dev/null",
        "\(LibraryClient.module)/restorationd_testing.py",
      ],
      environment: ["MYPYPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    #expect(checked.end == .exit(0), "\(checked.output)")
  }

  /// Several of its tests run at a time: they wait for ends of processes more than they compute.
  private func run(_ file: String) throws {
    let environment: [String: String?] = [
      "PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1", "RESTORATIOND_BINARY": Products.broker,
      "TMPDIR": directory.path,
    ]
    let result = try ChildProcess.run(
      [
        PythonPackages.python, "-m", "pytest", "-p", "no:cacheprovider", "--basetemp", directory.file("pytest"),
        "--numprocesses", "4", "\(Products.repository)/Tests/Clients/testing/\(file)",
      ],
      environment: environment,
      Deadline(.seconds(240))
    )
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
  }
}
