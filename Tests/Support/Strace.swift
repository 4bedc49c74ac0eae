// SPDX-License-Identifier: Apache-2.0

/// The system calls of a broker, watched or interrupted by strace.
package enum Strace {
  /// Whether a process may be traced here; in CI it must be.
  package static let isUsable: Bool = {
    guard !Environment.isCI else { return true }
    let result = try? ChildProcess.run(["strace", "-f", "-qq", "-e", "trace=none", "true"])
    return result?.end == .exit(0)
  }()

  /// The name of the skip if it may not.
  package static let requirement = "needs strace and the right to trace; run Tests/run.sh on a machine that has both"

  /// A wrapper that writes the named calls of all threads to a file.
  package static func watching(_ calls: [String], into file: String) -> [String] {
    [
      "strace", "-f", "--seccomp-bpf", "-qq", "-o", file, "-e", "trace=" + calls.joined(separator: ","), "-e",
      "signal=none",
    ]
  }

  /// A wrapper that kills the broker when one of its threads makes a call for the `number`-th time, before the kernel
  /// carries it out.
  package static func killing(at call: String, number: Int) -> [String] {
    [
      "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "signal=none", "-e",
      "inject=\(call):signal=KILL:when=\(number)",
    ]
  }

  /// A wrapper that lets a call fail with an error, from the `number`-th time of a thread on, or only then.
  ///
  /// - Parameter files: calls on other files are not counted; empty if all calls are.
  package static func failing(
    _ call: String,
    on files: [String] = [],
    with error: String,
    from number: Int,
    onlyOnce: Bool
  ) -> [String] {
    [
      "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "signal=none", "-e",
      "inject=\(call):error=\(error):when=\(number)\(onlyOnce ? "" : "+")",
    ] + files.flatMap { ["-P", $0] }
  }

  /// The same for every call from the `number`-th on, each of which is also delayed.
  package static func failing(
    _ call: String,
    with error: String,
    from number: Int,
    afterMilliseconds delay: Int
  ) -> [String] {
    [
      "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "signal=none", "-e",
      "inject=\(call):error=\(error):delay_enter=\(delay)ms:when=\(number)+",
    ]
  }

  /// How often each call is in a file made by `watching`, by the thread that made it most often.
  package static func counts(in file: String) throws -> [String: Int] {
    var counts: [String: [Substring: Int]] = [:]
    for line in try Files.text(file).split(separator: "\n") where !line.contains("resumed>") {
      let words = line.split(separator: " ")
      guard words.count >= 2, let name = words[1].split(separator: "(").first else { continue }
      counts[String(name), default: [:]][words[0], default: 0] += 1
    }
    return counts.mapValues { $0.values.max() ?? 0 }
  }
}
