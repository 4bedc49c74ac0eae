// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import Testing

@Suite struct SocketPathTests {
  @Test func aPathOf107BytesPassesAndOneOf108Fails() throws {
    let path = "/" + String(repeating: "s", count: 106)
    #expect(try SocketPath(path).path == path)
    let error = #expect(throws: TransportError.self) { try SocketPath(path + "s") }
    #expect(error?.code == .invalidPath)
    #expect(error?.message.contains("108 bytes") == true && error?.message.contains("107") == true)
  }

  @Test(arguments: ["", "/", "/run/", "/run/a\0b"])
  func aPathThatNamesNoFileFails(_ path: String) { #expect(throws: TransportError.self) { try SocketPath(path) } }

  @Test func theFlagGoesBeforeTheVariableBeforeTheRuntimeDirectory() throws {
    var environment = ["RESTORATIOND_SOCKET": "/a/variable.sock", "XDG_RUNTIME_DIR": "/run/user/1000"]
    let resolve = { (flag: String?) in try SocketPath.resolve(flag: flag) { environment[$0] } }
    #expect(try resolve("/a/flag.sock").path == "/a/flag.sock")
    #expect(try resolve(nil).path == "/a/variable.sock")
    #expect(try resolve(nil).directoryUse == .named)
    environment["RESTORATIOND_SOCKET"] = ""
    #expect(try resolve(nil).path == "/run/user/1000/restorationd/broker.sock")
    #expect(try resolve(nil).directoryUse == .dedicated)
  }

  @Test(arguments: [nil, "", "run/user/1000"])
  func withoutAnAbsoluteRuntimeDirectoryThereIsNoDefault(_ directory: String?) {
    let error = #expect(throws: TransportError.self) {
      try SocketPath.resolve(flag: nil) { $0 == "XDG_RUNTIME_DIR" ? directory : nil }
    }
    #expect(error?.code == .noRuntimeDirectory)
    #expect(error?.message.contains("--socket") == true)
  }

  @Test(arguments: [
    ("/run/x/broker.sock", "/run/x", "/run/x/broker.lock"),
    ("/s", "/", "/s.lock"),
    ("b.sock", ".", "b.lock"),
    ("/run/.sock", "/run", "/run/.sock.lock"),
  ])
  func directoryAndLockAreBesideTheSocket(_ path: String, _ directory: String, _ lock: String) throws {
    #expect(try SocketPath(path).directory == directory)
    #expect(try SocketPath(path).lockPath == lock)
  }

  @Test func theSocketOfAnApplicationIsInADirectoryOfItsName() throws {
    let below = "/run/user/1000/restorationd/sandbox"
    let path = try SocketPath.ofApplication("org.example.Notes", below: below)
    #expect(path.path == "\(below)/org.example.Notes/broker.sock" && path.directoryUse == .dedicated)
    for length in 57...61 {
      let name = String(repeating: "n", count: length)
      let path = try SocketPath.ofApplication(name, below: below).path
      #expect(path.utf8.count <= SocketPath.bytesMax)
      #expect((path == "\(below)/\(name)/broker.sock") == (length <= 59), "\(length)")
    }
  }

  @Test func longNamesOfTheSameBeginningHaveDirectoriesOfTheirOwn() throws {
    let names = (0..<100).map { String(repeating: "n", count: 120) + String($0) }
    let paths = try names.map { try SocketPath.ofApplication($0, below: "/run/user/1000/restorationd/sandbox").path }
    #expect(Set(paths).count == 100)
    for path in paths { #expect(path.utf8.count <= SocketPath.bytesMax && path.contains("+")) }
    let deep = "/" + String(repeating: "d", count: 107)
    #expect(throws: TransportError.self) { try SocketPath.ofApplication("n", below: deep) }
  }
}
