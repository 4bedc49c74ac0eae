// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// Opening the peer's process if the kernel does not pass it (before Linux 6.5).
@Suite struct PeerCredentialsTests {
  @Test(.listener) func aPeerThatIsThereIsTakenHoldOf() async throws {
    let peer = try fixture.connect()
    let process = try #require(PeerCredentials.openRechecked(pid: getpid(), socket: peer.descriptor))
    #expect(process.identity == ProcessIdentity.current(of: getpid()))
  }

  @Test(.listener) func aPeerThatHasClosedMayBeAnybodyByNow() async throws {
    let peer = try fixture.connect()
    let connection = try #require(await fixture.delegate.events.opened())
    try await fixture.onLoop { connection.close(afterOutput: false) }
    _ = try peer.readToEnd()
    #expect(PeerCredentials.openRechecked(pid: getpid(), socket: peer.descriptor) == nil)
  }

  @Test(.listener) func aProcessThatCannotBeSeenIsNotTakenHoldOf() async throws {
    let peer = try fixture.connect()
    let child = try ChildProcess(["cat"])
    try child.kill()
    #expect(PeerCredentials.openRechecked(pid: 0, socket: peer.descriptor) == nil)
    #expect(PeerCredentials.openRechecked(pid: child.pid, socket: peer.descriptor) == nil)
  }
}
