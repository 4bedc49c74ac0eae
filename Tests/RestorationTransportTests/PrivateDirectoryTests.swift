// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationTransport
internal import Testing

@Suite struct PrivateDirectoryTests {
  private let scratch: SocketDirectory

  init() throws { scratch = try SocketDirectory() }

  private func failure(_ path: String, _ use: PrivateDirectory.Use = .named) -> TransportError.Code? {
    do throws(TransportError) {
      _ = try PrivateDirectory(preparing: path, use: use)
      return nil
    } catch {
      return error.code
    }
  }

  @Test func missingDirectoriesAreCreatedForTheOwnerAlone() throws {
    let path = scratch.file("a/b/c")
    #expect(try PrivateDirectory(preparing: path + "//", use: .named).path == path)
    for name in ["a", "a/b", "a/b/c"] { #expect(status(of: scratch.file(name))?.mode == 0o700) }
  }

  @Test func theUmaskChangesNothing() async {
    await #expect(processExitsWith: .success) {
      let scratch = try SocketDirectory()
      for mask: mode_t in [0, 0o777] {
        umask(mask)
        let path = scratch.file("mask\(mask)/inner")
        _ = try PrivateDirectory(preparing: path, use: .dedicated)
        #expect(status(of: path)?.mode == 0o700)
        #expect(status(of: scratch.file("mask\(mask)"))?.mode == 0o700)
      }
    }
  }

  @Test func aDirectoryOfOursIsTightenedAndANamedOneIsTakenAsItIs() throws {
    let path = scratch.file("d")
    mkdir(path, 0o755)
    chmod(path, 0o755)
    _ = try PrivateDirectory(preparing: path, use: .named)
    #expect(status(of: path)?.mode == 0o755)
    _ = try PrivateDirectory(preparing: path, use: .dedicated)
    #expect(status(of: path)?.mode == 0o700)
  }

  @Test(arguments: [PrivateDirectory.Use.dedicated, .named], [mode_t(0o770), 0o702, 0o1777])
  func aDirectoryOthersMayWriteToIsRefused(_ use: PrivateDirectory.Use, _ mode: mode_t) throws {
    let path = scratch.file("d")
    mkdir(path, 0o700)
    chmod(path, mode)
    #expect(failure(path, use) == .writableByOthers)
    #expect(status(of: path)?.mode == mode)
  }

  @Test func aSymbolicLinkIsRefusedWhateverItLeadsTo() throws {
    mkdir(scratch.file("real"), 0o700)
    symlink(scratch.file("real"), scratch.file("link"))
    symlink(scratch.file("nowhere"), scratch.file("dangling"))
    #expect(failure(scratch.file("link")) == .notADirectory)
    #expect(failure(scratch.file("link/")) == .notADirectory)
    #expect(failure(scratch.file("dangling")) == .notADirectory)
    #expect(status(of: scratch.file("nowhere")) == nil)
  }

  @Test func whereNothingCanBeMadeIsSaid() throws {
    symlink(scratch.file("nowhere"), scratch.file("dangling"))
    for path in [scratch.file("dangling/x"), scratch.file("dangling/x/y"), "/proc/nothing/x"] {
      let error = #expect(throws: TransportError.self) { try PrivateDirectory(preparing: path, use: .named) }
      #expect(error?.code == .systemCall(number: ENOENT))
      #expect(error?.message.contains(path) == true)
    }
    #expect(status(of: scratch.file("nowhere")) == nil)
  }

  @Test func aFileIsRefused() throws {
    close(creat(scratch.file("f"), 0o600))
    #expect(failure(scratch.file("f")) == .notADirectory)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
  func anotherUsersDirectoryIsRefused() throws {
    let path = scratch.file("d")
    mkdir(path, 0o700)
    chown(path, 65_533, 65_533)
    #expect(failure(path) == .foreignOwner)
  }

  @Test(arguments: ["", "a\0b"])
  func aPathThatIsNoneIsRefused(_ path: String) { #expect(failure(path) == .invalidPath) }

  @Test func whatStandsInTheWayIsSaid() throws {
    close(creat(scratch.file("f"), 0o600))
    let error = #expect(throws: TransportError.self) {
      try PrivateDirectory(preparing: scratch.file("f/d"), use: .named)
    }
    #expect(error?.code == .systemCall(number: ENOTDIR))
    #expect(error?.message.contains("Not a directory") == true)
  }
}
