// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// The proof kit of the Python library, `restorationd.testing`, with pytest (`Tests/Clients/testing`).
@Suite(
  .timeLimit(.minutes(10)),
  .enabled(if: PythonPackages.areUsable("pytest", "xdist"), Comment(rawValue: PythonPackages.requirement))
) struct PythonTestingTests {
  /// A process that runs tests takes a second to start: all files share a few of them.
  @Test(
    "R15 R16 R19 Brokers obey, losses are named, what cannot be proven does not pass, and a stored generation comes back",
    .scratch
  )
  func theKitProvesApplications() throws {
    let files = ["broker", "losses", "proof", "replay", "unproven"]
    // They wait for ends of processes more than they compute.
    try run(files, ["--numprocesses", "6", "--dist", "worksteal"])
  }

  @Test("The test on the page of the Python library passes as pip installs it, and fails if a field is lost", .scratch)
  func thePageIsTrue() throws { try run(["page"]) }

  @Test("The kit has types that hold")
  func typesHold() throws {
    let checked = try ChildProcess.run(
      [
        PythonPackages.program("mypy"), "--strict", "--cache-dir=/dev/null",
        "\(LibraryClient.module)/restorationd/testing.py",
      ],
      environment: ["MYPYPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    #expect(checked.end == .exit(0), "\(checked.output)")
  }

  private func run(_ files: [String], _ options: [String] = []) throws {
    let environment: [String: String?] = [
      "PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1", "RESTORATIOND_BINARY": Products.broker,
      // Plugins of packages that are here for something else: pytest would read and rewrite all of their sources.
      "PYTEST_ADDOPTS": "-p no:anyio -p no:platformdirs", "TMPDIR": directory.path,
    ]
    let pytest = [PythonPackages.python, "-m", "pytest", "--quiet", "--tb=short", "-p", "no:cacheprovider"]
    let paths = files.map { "\(Products.repository)/Tests/Clients/testing/test_\($0).py" }
    let result = try ChildProcess.run(
      pytest + ["--basetemp", directory.file("pytest")] + options + paths,
      environment: environment,
      Deadline(.seconds(240))
    )
    // Only the first lines of a failure are shown where many tests run.
    let summary = result.output.split(separator: "\n").filter {
      ["FAILED ", "ERROR ", "E  "].contains(where: $0.hasPrefix)
    }
    #expect(result.end == .exit(0), "\(summary.joined(separator: "\n"))\n\(result.output)\(result.errors)")
  }
}
