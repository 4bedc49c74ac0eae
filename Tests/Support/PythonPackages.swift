// SPDX-License-Identifier: Apache-2.0

/// Python with the packages of `Tests/requirements.txt`, which `Tests/run.sh` installs.
package enum PythonPackages {
  package static var python: String { program("python") }

  /// A program that comes with a package.
  package static func program(_ name: String) -> String { "\(Products.repository)/.build/venv/bin/\(name)" }

  /// Whether they are installed; in CI they must be.
  package static func areUsable(_ modules: String...) -> Bool {
    guard !Environment.isCI else { return true }
    let result = try? ChildProcess.run([python, "-c", "import \(modules.joined(separator: ", "))"])
    return result?.end == .exit(0)
  }

  /// The name of the skip if they are not.
  package static let requirement = "needs the Python packages of Tests/requirements.txt; Tests/run.sh installs them"
}
