// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// What an index of Python packages shows of the Python library, and what its users' type checkers see.
@Suite(
  .timeLimit(.minutes(5)),
  .enabled(
    if: PythonPackages.areUsable("pyroma", "twine", "check_wheel_contents", "basedpyright"),
    Comment(rawValue: PythonPackages.requirement)
  )
) struct PythonPackageTests {
  @Test("The wheel and the sdist of the Python library have one package, and all that an index asks for", .scratch)
  func theIndexIsContent() throws {
    let build = """
      import sys, wheel_builder
      print(wheel_builder.build_wheel(sys.argv[1]), wheel_builder.build_sdist(sys.argv[1]), sep="\\n")
      print(wheel_builder.Project().metadata())
      """
    let built = try ChildProcess.run(
      ["python3", "-B", "-c", build, directory.path],
      environment: ["PYTHONPATH": LibraryClient.module]
    )
    let lines = built.output.split(separator: "\n", maxSplits: 2)
    try #require(lines.count == 3, "\(built.errors)")
    let files = lines.prefix(2).map { directory.file(String($0)) }
    try check(["pyroma", "--min", "10", files[1]])
    try check(["twine", "check", "--strict"] + files)
    try check(["check-wheel-contents", "--toplevel", "restorationd", files[0]])
    // What an index shows of the page has no link that only the repository can follow.
    #expect(lines[2].contains("](https://") && !lines[2].contains(/\]\((?!https?:)/))
  }

  @Test("A type checker knows the type of everything in the Python library", .scratch)
  func typesAreComplete() throws {
    let path = "\(Products.repository)/.build/venv/bin:\(Environment.variable("PATH") ?? "")"
    let verified = try ChildProcess.run(
      [PythonPackages.program("basedpyright"), "--ignoreexternal", "--verifytypes", "restorationd"],
      // It asks the first Python on the path where packages are.
      environment: ["PATH": path, "PYTHONPATH": LibraryClient.module],
      directory: directory.path,
      Deadline(.seconds(120))
    )
    #expect(verified.end == .exit(0) && verified.output.contains("score: 100%"), "\(verified.output)")
  }

  private func check(_ command: [String]) throws {
    let result = try ChildProcess.run(
      [PythonPackages.program(command[0])] + command.dropFirst(),
      environment: ["NO_COLOR": "1"],
      Deadline(.seconds(60))
    )
    #expect(result.end == .exit(0), "\(command[0]): \(result.output)\(result.errors)")
  }
}
