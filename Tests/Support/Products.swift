// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The programs under test. SwiftPM builds them beside the test bundle; a variable of the environment may name another
/// one. So another implementation, or a release build, can be tested by the same tests.
package enum Products {
  package static var broker: String { path("restorationd", "RESTORATIOND_BINARY") }
  package static var control: String { path("restorationctl", "RESTORATIONCTL_BINARY") }
  package static var gateway: String { path("restoration-gateway", "RESTORATION_GATEWAY_BINARY") }
  package static var simulation: String { path("simulation", "RESTORATION_SIMULATION_BINARY") }
  package static var fuzz: String { path("fuzz", "RESTORATION_FUZZ_BINARY") }
  package static var benchmarks: String { path("benchmarks", "RESTORATION_BENCHMARKS_BINARY") }
  package static var swiftClient: String { path("restoration-test-client", "RESTORATION_TEST_CLIENT_BINARY") }

  /// Figures hold for optimised builds; `Tests/run.sh` tests one.
  package static var isOptimised: Bool { isOptimised(broker) }

  package static func isOptimised(_ program: String) -> Bool {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    guard realpath(program, &buffer) != nil else { return false }
    let path = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return path.split(separator: "/").contains("release")
  }

  /// The repository's top directory.
  package static let repository: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    guard realpath(#filePath, &buffer) != nil else { return "." }
    let path = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return path.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
  }()

  package static var pythonClient: String { "\(repository)/Tests/Clients/client.py" }

  /// The directory with the test bundle and the programs that were built with it.
  package static let directory: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    let path = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
  }()

  /// `PATH`, with the directories of the programs first.
  package static var searchPath: String {
    let own = [control, broker, gateway].map { $0.prefix(upTo: $0.lastIndex(of: "/") ?? $0.startIndex) }
    return (own + [Substring(Environment.variable("PATH") ?? "/usr/bin:/bin")]).joined(separator: ":")
  }

  private static func path(_ name: String, _ variable: String) -> String {
    Environment.variable(variable) ?? "\(directory)/\(name)"
  }
}

/// Variables of the environment that steer tests.
package enum Environment {
  /// The name of who runs the tests.
  package static let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? ""

  package static func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The batteries run in their long form.
  package static var isLong: Bool { variable("RESTORATIOND_LONG") == "1" }

  /// A test that cannot run here fails instead of being skipped.
  package static var isCI: Bool { variable("CI") != nil }
}
