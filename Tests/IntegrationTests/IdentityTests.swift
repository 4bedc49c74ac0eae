// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Whom the broker takes a peer for, however the peer came to its connection. The tries are in
/// `Tests/Clients/keeping/identity.py`; `RESTORATIOND_LONG=1` makes 10,000.
@Suite(.enabled(if: geteuid() == 0, "only root can make these processes"), .scratch)
struct IdentityTests {
  /// The tries turn back the numbers of processes, and so have some of their own.
  private static let alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

  private static func play(_ count: Int, seed: Int, library: [String] = []) throws -> JSONValue {
    let script = "\(Products.repository)/Tests/Clients/keeping/identity.py"
    let (end, output, errors) = try ChildProcess.run(
      alone + ["python3", "-B", script, Products.broker, "\(count)", "\(seed)"] + library,
      environment: ["TMPDIR": directory.path],
      Deadline(.seconds(Environment.isLong ? 1_200 : 60))
    )
    #expect(end == .exit(0), "\(errors)")
    print(output)
    return try JSONCodec.parse(Array(output.utf8))
  }

  @Test func nobodyInASandboxIsTakenForTheHostAndNobodyOfTheHostIsRefused() throws {
    let found = try Self.play(Environment.isLong ? 10_000 : 100, seed: 1)
    #expect(found["wrong"] == [] && (found["tries"]?.integer ?? 0) > 50, "\(found)")
  }

  /// Kernels before 6.5 do not pass the peer's process on. There the number of one that has ended may be used again.
  @Test func thatHoldsOnOldKernelsUnlessANumberIsUsedAgain() throws {
    let library = directory.file("oldkernel.so")
    let source = "\(Products.repository)/Tests/Clients/keeping/oldkernel.c"
    let compiled = try ChildProcess.run(["gcc", "-shared", "-fPIC", "-o", library, source])
    try #require(compiled.end == .exit(0), "\(compiled.errors)")
    let found = try Self.play(Environment.isLong ? 10_000 : 60, seed: 2, library: [library])
    #expect(found["wrong"] == [] && (found["tries"]?.integer ?? 0) > 30, "\(found)")
  }
}
