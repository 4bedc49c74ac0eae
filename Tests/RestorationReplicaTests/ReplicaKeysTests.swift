// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// Where keys come from, and what is refused.
@Suite(.enabled(if: Sealing.isTested, Comment(rawValue: Sealing.requirement)))
struct ReplicaKeysTests {
  /// The key of the bytes 0x80 to 0x9f, and its name.
  static let digits = (0x80...0x9f).map { String($0, radix: 16) }.joined()
  static let id = "26fa78611c608497"

  private static func failure(_ body: () throws(ReplicaKeyError) -> [ReplicaKey]) -> String {
    do throws(ReplicaKeyError) {
      return "no failure: \(try body().map(\.id))"
    } catch {
      return error.description
    }
  }

  // MARK: A directory

  static func file(_ text: String, _ name: String, in keys: KeyDirectory) throws {
    try Files.write(Array(text.utf8), to: "\(keys.path)/\(name)")
  }

  /// A directory with one key, which is current.
  private static func keyDirectory() throws -> KeyDirectory {
    let keys = KeyDirectory(try directory.makeDirectory("keys"))
    try file("\(digits)\n", id, in: keys)
    try file("\(id)\n", "current", in: keys)
    return keys
  }

  @Test(.scratch) func aNewKeyIsCurrentAndFormerOnesStay() throws {
    let keys = KeyDirectory(directory.file("config/keys"))
    #expect(Self.failure(keys.read).contains("make a first key"))
    var made: Set<ReplicaKeyID> = []
    for count in 1...5 {
      let new = try keys.makeKey()
      made.insert(new)
      let all = try keys.read().map(\.id)
      #expect(all.first == new && Set(all) == made && all.count == count)
    }
    #expect(Files.mode(keys.path) == 0o700)
    #expect(Files.list(keys.path) == (made.map(\.description) + ["current"]).sorted())
    for name in Files.list(keys.path) { #expect(Files.mode("\(keys.path)/\(name)") == 0o600) }
  }

  @Test(.scratch) func aKeyIsAFileOfDigitsThatIsNamedByTheirHash() throws {
    let keys = try Self.keyDirectory()
    try Self.file("not a key", "README", in: keys)
    try Self.file("not a key", "\(Self.id)~", in: keys)
    #expect(try keys.read().map(\.id.description) == [Self.id])
    try Self.file(Self.digits.uppercased(), Self.id, in: keys)
    try Self.file(Self.id, "current", in: keys)
    #expect(try keys.read().map(\.id.description) == [Self.id], "the end of a line may be missing")
  }

  /// What is wrong in a directory, and the words of the error beside the file's name.
  enum Fault: CaseIterable, Sendable {
    case openDirectory, linkedDirectory, noDirectory, openKey, shortKey, longKey, noKey, otherKey, linkedKey, keyFolder
    case noCurrent, openCurrent, linkedCurrent, unknownCurrent, wrongCurrent

    func plant(in keys: KeyDirectory) throws -> (KeyDirectory, name: String, words: [String]) {
      let (digits, id, path) = (ReplicaKeysTests.digits, ReplicaKeysTests.id, keys.path)
      let key = "\(path)/\(id)"
      let current = "\(path)/current"
      func write(_ text: String, _ name: String) throws { try ReplicaKeysTests.file(text, name, in: keys) }
      func link(_ name: String) throws {
        try Files.rename("\(path)/\(name)", to: "\(path)-\(name)")
        try #require(symlink("\(path)-\(name)", "\(path)/\(name)") == 0)
      }
      switch self {
      case .openDirectory:
        chmod(path, 0o750)
        return (keys, path, ["chmod 700 '\(path)'"])
      case .linkedDirectory:
        try #require(symlink(path, "\(path)-link") == 0)
        return (KeyDirectory("\(path)-link"), "\(path)-link", ["not a link"])
      case .noDirectory:
        try Files.write([], to: "\(path)-file")
        return (KeyDirectory("\(path)-file"), "\(path)-file", ["put a directory there"])
      case .openKey:
        chmod(key, 0o640)
        return (keys, key, ["chmod 600 '\(key)'"])
      case .shortKey:
        try write(String(digits.dropLast(2)), id)
        return (keys, key, ["64 hexadecimal digits", "copy it again"])
      case .longKey:
        try write(digits + "00\n", id)
        return (keys, key, ["64 hexadecimal digits", "copy it again"])
      case .noKey:
        try write(String(digits.dropLast()) + "x", id)
        return (keys, key, ["64 hexadecimal digits", "copy it again"])
      case .otherKey:
        try write("00" + digits.dropFirst(2), id)
        return (keys, key, ["has the key", "copy it again"])
      case .linkedKey:
        try link(id)
        return (keys, key, ["not a link"])
      case .keyFolder:
        Files.remove(key)
        try Files.makeDirectory(key)
        return (keys, key, ["not a regular file"])
      case .noCurrent:
        Files.remove(current)
        return (keys, current, ["write the name of a key into it"])
      case .openCurrent:
        chmod(current, 0o604)
        return (keys, current, ["chmod 600 '\(current)'"])
      case .linkedCurrent:
        try link("current")
        return (keys, current, ["not a link"])
      case .unknownCurrent:
        try write("00000000000000ff\n", "current")
        return (keys, current, ["00000000000000ff", "which is not there", "name another key"])
      case .wrongCurrent:
        try write("../\(id)", "current")
        return (keys, current, ["16 hexadecimal digits"])
      }
    }
  }

  @Test(.scratch, arguments: Fault.allCases)
  func anErrorNamesTheFileAndTheRemedyAndNotTheKey(fault: Fault) throws {
    let (keys, name, words) = try fault.plant(in: try Self.keyDirectory())
    let message = Self.failure(keys.read)
    #expect(message.contains(name), "\(message)")
    for word in words { #expect(message.contains(word), "\(message)") }
    #expect(!message.contains(Self.digits.prefix(8)) && !message.contains(Self.digits.suffix(8)))
  }

  @Test(.scratch) func keysThatCannotBeReadAgainStayAsTheyAre() async throws {
    let folder = try Self.keyDirectory()
    let keys = try ReplicaKeys(from: folder.read)
    let new = try folder.makeKey()
    #expect(keys.current.id.description == Self.id && keys[new] == nil)
    try await keys.reread()
    #expect(keys.current.id == new && keys[new] != nil)
    Files.remove("\(folder.path)/current")
    await #expect(throws: ReplicaKeyError.self) { try await keys.reread() }
    #expect(keys.current.id == new)
  }

  // MARK: A command

  private static func command(_ script: String, limit: Duration = .seconds(10)) -> KeyCommand {
    KeyCommand(["sh", "-c", script], limit: limit)
  }

  @Test(.passesTurnstile) func aCommandPrintsTheCurrentKeyFirst() throws {
    let other = String(repeating: "0", count: 64)
    let keys = try Self.command("cat; echo \(Self.digits); printf \(other)").read()
    #expect(keys.count == 2 && keys[0].id.description == Self.id)
  }

  @Test(
    .passesTurnstile,
    arguments: [
      ("echo \(ReplicaKeysTests.digits); echo; echo \(ReplicaKeysTests.digits)", "line 2"),
      ("echo \(ReplicaKeysTests.digits.dropLast())", "line 1"),
      ("true", "line 1"),
      ("echo \(ReplicaKeysTests.digits); exit 3", "status 3"),
      ("kill -TERM $$", "signal 15"),
      ("yes", "more than 4096 bytes"),
      ("exec >&-; kill -STOP $$", "has not ended"),
      ("kill -STOP $$", "has not ended"),
    ]
  )
  func aCommandThatDoesNotPrintKeysIsRefused(script: String, words: String) throws {
    let limit: Duration = script.contains("STOP") ? .milliseconds(50) : .seconds(10)
    let message = Self.failure(Self.command(script, limit: limit).read)
    #expect(message.contains(words) && message.contains("the command for keys, sh,"), "\(message)")
    #expect(!message.contains(Self.digits.prefix(8)))
  }

  @Test(.passesTurnstile) func aCommandThatDoesNotExistIsRefused() {
    let message = Self.failure(KeyCommand(["/nonexistent/keys"]).read)
    #expect(message.contains("/nonexistent/keys, cannot be started"), "\(message)")
    #expect(Self.failure(KeyCommand([]).read).contains("cannot be started"))
  }
}
