// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// Starts a program, found by `PATH` unless it has a slash, and returns its process ID.
///
/// The program inherits neither blocked nor ignored signals of this process, such as SIGPIPE.
///
/// - Parameters:
///   - variables: its environment, each as `NAME=value`; `nil` for that of this process.
///   - leadsSession: whether it leads a session: then a terminal that it opens becomes its own.
///   - prepare: sets up its descriptors.
package func spawn(
  _ command: [String],
  variables: [String]?,
  leadsSession: Bool = false,
  _ prepare: (inout posix_spawn_file_actions_t) -> Void
) throws(SpawnError) -> Int32 {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  prepare(&actions)
  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  defer { posix_spawnattr_destroy(&attributes) }
  var (none, all) = (sigset_t(), sigset_t())
  sigemptyset(&none)
  sigfillset(&all)
  posix_spawnattr_setsigmask(&attributes, &none)
  posix_spawnattr_setsigdefault(&attributes, &all)
  // POSIX_SPAWN_SETSID of spawn.h needs a feature macro.
  let setSession: Int32 = leadsSession ? 0x80 : 0
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | setSession))
  let program = command.first ?? ""
  var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
  var entries: [UnsafeMutablePointer<CChar>?] = (variables ?? []).map { strdup($0) } + [nil]
  defer { for text in words + entries { free(text) } }
  var child: pid_t = 0
  let number = entries.withUnsafeMutableBufferPointer { entries in
    posix_spawnp(&child, program, &actions, &attributes, &words, variables == nil ? environ : entries.baseAddress)
  }
  guard number == 0 else { throw SpawnError(program: program, number: number) }
  return child
}

package struct SpawnError: Error, CustomStringConvertible {
  package let program: String
  /// The system's error number.
  package let number: Int32

  package var description: String { "\(program) cannot be started: \(String(cString: strerror(number)))" }
}
