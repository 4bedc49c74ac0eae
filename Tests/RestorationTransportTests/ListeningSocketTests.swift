// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationTransport
internal import Synchronization
internal import Testing

/// The socket's name: its lock, its mode and an earlier file.
@Suite struct ListeningSocketTests {
  private let scratch: SocketDirectory

  init() throws { scratch = try SocketDirectory() }

  private func failure(_ path: String) -> TransportError? {
    do throws(TransportError) {
      _ = try ListeningSocket(binding: SocketPath(path), backlog: 8)
      return nil
    } catch {
      return error
    }
  }

  /// Leaves a stale socket at `path`, as a killed broker does.
  private func leaveStaleSocket(_ path: String) throws {
    _ = try ListeningSocket(binding: SocketPath(path), backlog: 8)
  }

  @Test func onlyTheOwnerCanReachTheSocketWhateverTheUmask() async {
    await #expect(processExitsWith: .success) {
      let scratch = try SocketDirectory()
      for mask: mode_t in [0, 0o777] {
        umask(mask)
        let path = scratch.file("\(mask)/b.sock")
        let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
        #expect(status(of: path)?.mode == 0o600)
        #expect(status(of: scratch.file("\(mask)/b.lock"))?.mode == 0o600)
        #expect(throws: Never.self) { try RawPeer(connectingTo: path) }
        _ = consume socket
      }
    }
  }

  @Test func theSocketTakesConnectionsBeforeAnybodyAccepts() throws {
    let path = scratch.file("b.sock")
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    let peer = try RawPeer(connectingTo: path)
    try peer.send("{}")
    let name = socket.name
    #expect(name?.path.path == path)
  }

  @Test func aSecondBrokerIsToldWhoHasTheSocket() throws {
    let path = scratch.file("b.sock")
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    let inode = status(of: path)?.inode
    let error = try #require(failure(path))
    #expect(error.code == .alreadyRunning(pid: getpid()))
    #expect(error.message.contains(path) && error.message.contains("\(getpid())"))
    #expect(status(of: path)?.inode == inode)
    _ = consume socket
  }

  @Test func brokersWithDifferentSocketsShareADirectory() throws {
    let first = try ListeningSocket(binding: SocketPath(scratch.file("a.sock")), backlog: 8)
    let second = try ListeningSocket(binding: SocketPath(scratch.file("b.sock")), backlog: 8)
    _ = consume first
    _ = consume second
  }

  @Test func theLockIsFreeAgainWhenItsHolderIsGone() throws {
    let path = scratch.file("x.lock")
    var lock: LockFile? = try LockFile(path: path, subject: "the test")
    #expect(lock?.path == path)
    #expect(throws: TransportError.self) { try LockFile(path: path, subject: "the test") }
    lock = nil
    _ = try LockFile(path: path, subject: "the test")
  }

  @Test func aLockThatIsALinkIsNotFollowed() throws {
    symlink(scratch.file("elsewhere"), scratch.file("b.lock"))
    #expect(failure(scratch.file("b.sock"))?.code == .systemCall(number: ELOOP))
    #expect(status(of: scratch.file("elsewhere")) == nil)
  }

  @Test func aLockThatIsNoFileIsRefusedByName() throws {
    let path = scratch.file("archives.lock")
    for make in [{ mkfifo(path, 0o600) }, { mkdir(path, 0o700) }] {
      #expect(make() == 0)
      let error = #expect(throws: TransportError.self) { try LockFile(path: path, subject: "the test") }
      #expect(error?.message.contains(path) == true)
      remove(path)
    }
  }

  @Test func aStaleSocketIsReplaced() throws {
    let path = scratch.file("b.sock")
    try leaveStaleSocket(path)
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    #expect(throws: Never.self) { try RawPeer(connectingTo: path) }
    _ = consume socket
  }

  @Test func somethingElseAtThePathIsLeftAlone() throws {
    let path = scratch.file("b.sock")
    close(creat(path, 0o600))
    #expect(failure(path)?.code == .notASocket)
    #expect(status(of: path)?.isSocket == false)
  }

  @Test func aLinkToASocketIsLeftAlone() throws {
    try leaveStaleSocket(scratch.file("real.sock"))
    symlink(scratch.file("real.sock"), scratch.file("b.sock"))
    #expect(failure(scratch.file("b.sock"))?.code == .notASocket)
    #expect(status(of: scratch.file("real.sock"))?.isSocket == true)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a socket away"))
  func anotherUsersSocketIsLeftAlone() throws {
    let path = scratch.file("b.sock")
    try leaveStaleSocket(path)
    chown(path, 65_533, 65_533)
    #expect(failure(path)?.code == .notASocket)
    #expect(status(of: path) != nil)
  }

  @Test func aDirectoryOthersMayWriteToIsRefused() throws {
    chmod(scratch.path, 0o777)
    #expect(failure(scratch.file("b.sock"))?.code == .writableByOthers)
  }

  @Test func aPathOf107BytesWorks() throws {
    let path = scratch.file(String(repeating: "s", count: 107 - scratch.path.utf8.count - 1))
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    #expect(throws: Never.self) { try RawPeer(connectingTo: path) }
    _ = consume socket
  }

  @Test func onlyOurOwnSocketIsUnlinked() throws {
    let path = scratch.file("b.sock")
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    let bound = socket.name
    let name = try #require(bound)
    rename(path, scratch.file("moved.sock"))
    close(creat(path, 0o600))
    name.unlink()
    #expect(status(of: path) != nil)
    rename(scratch.file("moved.sock"), path)
    name.unlink()
    #expect(status(of: path) == nil)
    name.unlink()
  }

  private final class Removals: DescriptorStore {
    let names = Mutex<[String]>([])

    func store(_: Int32, as _: String) {}
    func remove(_ name: String) { names.withLock { $0.append(name) } }
  }

  @Test func inheritedSocketsOfApplicationsAreEndedWhereTheyHaveNoPlace() throws {
    let path = scratch.file("b.sock")
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    let inherited = fcntl(socket.number, F_DUPFD_CLOEXEC, 0)
    let copy = fcntl(inherited, F_DUPFD_CLOEXEC, 0)
    defer { close(copy) }
    _ = consume socket
    #expect(throws: Never.self) { try RawPeer(connectingTo: path) }
    let (name, store) = (InheritedConnections.storedName(ofApplication: "App"), Removals())
    InheritedConnections([(name, inherited)]).endApplicationSockets(store)
    #expect(store.names.withLock { $0 } == [name])
    #expect(throws: (any Error).self) { try RawPeer(connectingTo: path) }
  }

  @Test func aDescriptorThatDoesNotListenIsNotTakenOver() throws {
    let path = scratch.file("b.sock")
    let socket = try ListeningSocket(binding: SocketPath(path), backlog: 8)
    let peer = try RawPeer(connectingTo: path)
    func code(_ number: Int32) -> TransportError.Code? {
      do throws(TransportError) {
        _ = try ListeningSocket(inheriting: number)
        return nil
      } catch {
        return error.code
      }
    }
    #expect(code(peer.descriptor) == .notASocket)
    #expect(code(-1) == .systemCall(number: EBADF))
    // It is still the caller's.
    try peer.send("{}")
    _ = consume socket
  }
}
