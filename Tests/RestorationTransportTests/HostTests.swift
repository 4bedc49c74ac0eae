// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationTransport
internal import Testing

/// The small questions to the host.
@Suite struct HostTests {
  private let scratch: SocketDirectory

  init() throws { scratch = try SocketDirectory() }

  private func write(_ text: String, to path: String) throws {
    let file = try #require(fopen(path, "w"))
    fputs(text, file)
    fclose(file)
  }

  @Test func aFileThatIsMissingHasNoText() throws {
    #expect(try Host.readFile(scratch.file("nothing")) == nil)
    #expect(throws: TransportError.self) { try Host.readFile(scratch.path) }
    try write("0123456789", to: scratch.file("long"))
    #expect(try Host.readFile(scratch.file("long"), bytesMax: 4) == "0123")
  }

  @Test func onlyRegularFilesAreRead() throws {
    // Opening this one would wait for a writer.
    #expect(mkfifo(scratch.file("pipe"), 0o600) == 0)
    #expect(throws: TransportError.self) { try Host.readFile(scratch.file("pipe")) }
    #expect(throws: TransportError.self) { try Host.readFile("/dev/zero", bytesMax: 4) }
    #expect(try Host.readFile("/proc/self/status")?.isEmpty == false)
    for (line, version) in [
      ("VERSION_ID=\"12\"", "12"), ("VERSION_ID='26.1'", "26.1"), ("VERSION_ID=41", "41"), ("VERSION_ID=", nil),
      ("", nil),
    ] {
      #expect(Host.systemVersion(inRelease: "PRETTY_NAME=\"A 3\"\n\(line)\nID=a\n") == version)
    }
  }

  @Test func theDescriptorLimitIsRaisedAndNeverLowered() async {
    await #expect(processExitsWith: .success) {
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      var limit = rlimit(rlim_cur: 256, rlim_max: 600)
      setrlimit(resource, &limit)
      #expect(Host.raiseDescriptorLimit(to: 100) == 256)
      #expect(Host.raiseDescriptorLimit(to: 512) == 512)
      #expect(Host.raiseDescriptorLimit(to: 4_096) == 600)
      getrlimit(resource, &limit)
      #expect(limit.rlim_cur == 600)
    }
  }

  @Test func theClocksRun() {
    #expect(Host.wallMilliseconds > 1_600_000_000_000)
    #expect(Host.monotonicMilliseconds > 0)
    #expect(Host.processID == Int64(getpid()))
    #expect(Host.environment("PATH") != nil && Host.environment("SURELY_NOT_SET") == nil)
  }
}
