// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// libsystemd is loaded only if a manager is there to talk to.
@Suite struct SystemdLibraryTests {
  private static func libraries(of pid: Int32) throws -> Set<String> {
    let maps = try Files.text("/proc/\(pid)/maps").split(separator: "\n")
    let names = maps.compactMap { $0.split(separator: "/").last }.filter { $0.contains(".so") }
    return Set(names.map { String($0.prefix { $0 != "." }) })
  }

  @Test(.scratch) func aBrokerWithoutAManagerLoadsNothingOfSystemd() throws {
    let socket = directory.file("broker.sock")
    let names = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "NOTIFY_SOCKET", "LISTEN_FDS", "WATCHDOG_USEC"]
    let process = try ChildProcess(
      [Products.broker, "--socket", socket, "--archives", directory.file("archives")],
      environment: Dictionary(uniqueKeysWithValues: names.map { ($0, nil) }),
      errors: directory.file("log")
    )
    try Wait.until("the broker accepts") { process.isRunning && (try? WireClient(socket).call("ping")) != nil }
    let client = try WireClient(socket)
    try client.call("initialize", ["application": "a"])
    let libraries = try Self.libraries(of: process.pid)
    #expect(libraries.isSuperset(of: ["libc", "libsqlite3"]))
    #expect(libraries.isDisjoint(with: ["libsystemd", "libgcrypt", "liblzma", "libzstd"]), "\(libraries)")
    try process.kill()
  }

  @Test(.broker) func aWatchdogHasTheLibraryLoaded() throws {
    try broker.kill()
    broker.variables = ["WATCHDOG_USEC": "600000000"]
    try broker.start()
    #expect(try Self.libraries(of: broker.pid).contains("libsystemd"))
    #expect(!broker.log.contains("libsystemd"))
  }

  @Test(.scratch) func aServiceWithoutTheLibraryDoesNotStartAndSaysWhatToInstall() throws {
    let libraries = try directory.makeDirectory("libraries")
    try directory.write("", to: "libraries/libsystemd.so.0")
    let result = try ChildProcess.run(
      [Products.broker, "--socket", directory.file("broker.sock"), "--archives", directory.file("archives")],
      environment: ["LD_LIBRARY_PATH": libraries, "WATCHDOG_USEC": "600000000"],
      Deadline(.seconds(60))
    )
    #expect(result.end == .exit(64))
    for words in ["libsystemd.so.0", "install libsystemd"] {
      #expect(result.errors.contains(words), "\(result.errors)")
    }
  }
}
