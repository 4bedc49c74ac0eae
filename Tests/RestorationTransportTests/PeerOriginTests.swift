// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationTransport
internal import TestSupport
internal import Testing

/// The verdict on a peer's process, and what it is made of.
@Suite struct PeerOriginTests {
  /// A process as a test wants it.
  private final class Process: ProcessFacts {
    private let facts: (groups: String?, isInOurs: Bool?, info: String?, hasEnded: Bool)
    private(set) var asked: [String] = []

    init(_ groups: String?, isInOurs: Bool? = true, info: String? = nil, hasEnded: Bool = false) {
      facts = (groups, isInOurs, info, hasEnded)
    }

    var controlGroups: String? { note("groups", facts.groups) }
    var isInOurUserNamespace: Bool? { note("namespace", facts.isInOurs) }
    var flatpakInfo: String? { note("info", facts.info) }
    var hasEnded: Bool { note("end", facts.hasEnded) }

    private func note<Fact>(_ name: String, _ fact: Fact) -> Fact {
      asked.append(name)
      return fact
    }
  }

  private static let slice = "0::/user.slice/user-1000.slice/user@1000.service/app.slice"
  private static let scope = "\(slice)/app-flatpak-org.example.Notes-4711.scope\n"
  private static let info = "[Application]\nname=org.example.Notes\nruntime=runtime/org.example.Platform/x86_64/1\n"

  @Test func whoIsInOurUserNamespaceAndNoFlatpakIsOfTheHost() {
    let groups = ["", "0::/\n", "\(Self.slice)/editor.service\n", "\(Self.slice)/app-org.flatpak.Editor-1.scope\n"]
    for text in groups {
      let process = Process(text, info: Self.info)
      #expect(PeerOrigin(of: process) == .host)
      #expect(process.asked == ["groups", "namespace", "end"], "a root may be anything, and may not answer")
    }
  }

  @Test func scopeAndFileOfTheSameNameAreAFlatpak() {
    for isInOurs in [true, false, nil] {
      let process = Process(Self.scope, isInOurs: isInOurs, info: Self.info)
      #expect(PeerOrigin(of: process) == .flatpak("org.example.Notes"))
      #expect(process.asked == ["groups", "info", "end"])
    }
  }

  @Test func whereOneOfTheTwoIsMissingNothingIsSure() {
    let others = [
      nil, "", "[Application]\n", "[Runtime]\nname=org.example.Notes\n", "[Application]\nname=org.example.Note\n",
    ]
    for isInOurs in [true, false, nil] {
      for info in others {
        let process = Process(Self.scope, isInOurs: isInOurs, info: info)
        #expect(PeerOrigin(of: process) == .unclear(.halfFlatpak), "\(info ?? "none")")
      }
    }
    for info in [nil, Self.info] {
      let outside = "\(Self.slice)/editor.service\n"
      #expect(PeerOrigin(of: Process(outside, isInOurs: false, info: info)) == .unclear(.otherUserNamespace))
      #expect(PeerOrigin(of: Process(outside, isInOurs: nil, info: info)) == .unclear(.unseen))
    }
  }

  @Test func whatCannotBeReadDecidesNothing() {
    for isInOurs in [true, false, nil] {
      #expect(PeerOrigin(of: Process(nil, isInOurs: isInOurs, info: Self.info)) == .unclear(.unseen))
    }
  }

  @Test func ofAProcessThatHasEndedNothingIsSure() {
    for groups in [nil, "0::/\n", Self.scope] {
      for isInOurs in [true, false, nil] {
        for info in [nil, Self.info] {
          // Its number may be that of another process, which was looked at instead.
          let process = Process(groups, isInOurs: isInOurs, info: info, hasEnded: true)
          #expect(PeerOrigin(of: process) == .unclear(.ended))
          #expect(process.asked.last == "end")
        }
      }
    }
    #expect(PeerOrigin(of: PeerCredentials(pid: 1, uid: 0, gid: 0, process: nil)) == .unclear(.ended))
  }

  @Test(
    arguments: [
      ("org.example.Notes", "org.example.Notes", true), ("org.example.My_Notes", "org.example.My_Notes", true),
      ("org.example.My-Notes", #"org.example.My\x2dNotes"#, true), ("org.example.Notes-1", "org.example.Notes", false),
      ("org.example.My-Notes", "org.example.My-Notes", false), ("org.example.Notes", #"org.example\x2eNotes"#, false),
      ("org.example", "org.example.Notes", false), ("org.example.Notes.Help", "org.example.Notes", false),
    ]
  )
  func theNameInTheScopeIsEscaped(_ name: String, _ escaped: String, _ isSame: Bool) {
    let groups = "\(Self.slice)/app-flatpak-\(escaped)-1.scope\n"
    let origin = PeerOrigin(of: Process(groups, info: "[Application]\nname=\(name)\n"))
    #expect(origin == (isSame ? .flatpak(name) : .unclear(.halfFlatpak)))
  }

  @Test(
    arguments: [
      // Of an older system, with a hierarchy for each controller.
      ("4:memory:/user.slice\n1:name=systemd:/user.slice/app-flatpak-org.example.Notes-1.scope\n0::/\n", true),
      ("\(slice)/app-flatpak-org.example.Notes-1.scope/inner\n", true),
      ("\(slice)/app-flatpak-org.example.Notes-1.scope (deleted)\n", false),
      ("\(slice)/app-flatpak-org.example.Notes-1.service\n", false),
      ("\(slice)/app-flatpak-org.example.Notes-.scope\n", false),
      ("\(slice)/app-flatpak-org.example.Notes.scope\n", false),
      ("\(slice)/app-flatpak-org.example.Notes-1-2.scope\n", false),
      ("\(slice)/app-flatpak-org.example.Other-1.scope/app-flatpak-org.example.Notes-1.scope\n", false),
    ]
  )
  func onlyAScopeOfFlatpakNamesTheApplication(_ groups: String, _ does: Bool) {
    let origin = PeerOrigin(of: Process(groups, info: Self.info))
    #expect(origin == (does ? .flatpak("org.example.Notes") : .unclear(.halfFlatpak)))
  }

  @Test(
    arguments: [
      ("[Application]\nname = org.example.Notes \n", true), ("\n# name=a\n[Application]\nname=org.example.Notes", true),
      ("[Instance]\nname=a\n[Application]\nname[de]=b\nname=org.example.Notes\n[Context]\nname=c\n", true),
      ("name=org.example.Notes\n", false), ("[Application]\n[Context]\nname=org.example.Notes\n", false),
      ("[Application]\nname=org.example.Notes\nname=a\n", false), ("[Application]\nname=\n", false),
      ("[Application]\nname\n", false), ("[Application]\n#name=org.example.Notes\n", false),
    ]
  )
  func theNameIsThatOfTheApplicationInTheFile(_ info: String, _ isNamed: Bool) {
    let origin = PeerOrigin(of: Process(Self.scope, info: info))
    #expect(origin == (isNamed ? .flatpak("org.example.Notes") : .unclear(.halfFlatpak)))
  }
}

/// What the kernel says of real processes.
@Suite struct ProcessFilesTests {
  private static let unshare = ["unshare", "--user"]
  private static let hasNamespaces = (try? ChildProcess.run(unshare + ["true"]))?.end == .exit(0)

  /// A process that has said that it is where it is to be.
  private static func start(_ command: [String]) throws -> ChildProcess {
    let child = try ChildProcess(command)
    #expect(try child.output?.next() == "ready")
    return child
  }

  private static let wait = ["sh", "-c", "echo ready; exec cat"]

  private static func origin(of child: ChildProcess) throws -> PeerOrigin {
    let process = try #require(ProcessHandle.open(pid: child.pid))
    return PeerOrigin(of: PeerCredentials(pid: child.pid, uid: geteuid(), gid: getegid(), process: process))
  }

  @Test func anOrdinaryProcessIsOfTheHost() throws {
    #expect(try Self.origin(of: Self.start(Self.wait)) == .host)
  }

  private static let isFirstNamespace =
    (try? Files.text("/proc/self/uid_map"))?.split(separator: " ").last == "4294967295\n"

  /// As one that keeps passwords: it hides its namespaces.
  @Test(.enabled(if: geteuid() == 0 || isFirstNamespace, "needs root or the first user namespace"))
  func aProcessThatMayNotBeTracedIsOfTheHost() throws {
    let program = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print('ready', flush=True); input()"
    #expect(try Self.origin(of: Self.start(["python3", "-c", program])) == .host)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can make a mount namespace alone"))
  func aMountNamespaceAloneIsOfTheHost() throws {
    #expect(try Self.origin(of: Self.start(["unshare", "--mount"] + Self.wait)) == .host)
  }

  @Test(.enabled(if: hasNamespaces, "needs user namespaces"))
  func anotherUserNamespaceIsNotOfTheHost() throws {
    for options in [[], ["--map-root-user"]] {
      let child = try Self.start(Self.unshare + options + Self.wait)
      #expect(try Self.origin(of: child) == .unclear(.otherUserNamespace))
    }
  }

  @Test func aProcessThatHasEndedIsUnclearBeforeAndAfterItWasWaitedFor() throws {
    let child = try Self.start(Self.wait)
    let process = try #require(ProcessHandle.open(pid: child.pid))
    let peer = PeerCredentials(pid: child.pid, uid: geteuid(), gid: getegid(), process: process)
    child.send(signal: SIGKILL)
    while !process.hasExited { sched_yield() }
    #expect(PeerOrigin(of: peer) == .unclear(.ended))
    try child.waitForEnd()
    #expect(PeerOrigin(of: peer) == .unclear(.ended))
  }

  @Test func onlyARegularFileOfModerateLengthIsRead() throws {
    let root = try SocketDirectory()
    let file = root.file(".flatpak-info")
    func read() -> Int? { ProcessFiles.flatpakInfo(inRoot: root.path)?.utf8.count }
    #expect(read() == nil)
    for (length, expected) in [(0, 0), (1 << 16, 1 << 16), (1 << 16 + 1, nil)] as [(Int, Int?)] {
      try Files.write([UInt8](repeating: 0x20, count: length), to: file)
      #expect(read() == expected)
    }
    #expect(rename(file, root.file("else")) == 0 && symlink("else", file) == 0)
    #expect(read() == nil, "a link may lead anywhere")
    #expect(unlink(file) == 0 && mkdir(file, 0o700) == 0)
    #expect(read() == nil)
    // Opening this one would wait for a writer.
    #expect(rmdir(file) == 0 && mkfifo(file, 0o600) == 0)
    #expect(read() == nil)
  }
}
