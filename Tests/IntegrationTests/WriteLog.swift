// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import SeededRandom
internal import TestSupport

/// What a broker did to its files and said to its clients, in order, as `Tests/Faults/faults.c` records it.
struct WriteLog {
  /// In the order of `faults.c`.
  private enum Kind: Int32 {
    case open, close, write, truncate, sync, unlink, rename, link, send
  }

  enum Entry {
    case open(Int32, name: String, creates: Bool, empties: Bool)
    case close(Int32)
    case change(Int32, FileChange)
    case sync(Int32)
    case name(NameChange)
    case answers([JSONValue])
  }

  private(set) var entries: [Entry] = []

  init(_ path: String, of directory: String) throws {
    let bytes = try Files.read(path)
    var position = 0
    var unfinished: [Int32: [UInt8]] = [:]
    func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number {
      defer { position += Number.bitWidth / 8 }
      return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position, as: type) }
    }
    func take(_ count: UInt32) -> ArraySlice<UInt8> {
      defer { position += Int(count) }
      return bytes[position..<position + Int(count)]
    }
    func name(_ path: ArraySlice<UInt8>) -> String {
      String(String(decoding: path, as: UTF8.self).dropFirst(directory.utf8.count + 1))
    }
    while position < bytes.count {
      let (kind, file, offset) = (Kind(rawValue: number(Int32.self)), number(Int32.self), number(Int64.self))
      let (length, length2) = (number(UInt32.self), number(UInt32.self))
      let (first, second) = (take(length), take(length2))
      switch kind {
      case .open:
        entries.append(.open(file, name: name(first), creates: offset & 0o100 != 0, empties: offset & 0o1000 != 0))
      case .close: entries.append(.close(file))
      case .write: entries.append(.change(file, .write(Array(first), at: Int(offset))))
      case .truncate: entries.append(.change(file, .truncate(to: Int(offset))))
      case .sync: entries.append(.sync(file))
      case .unlink: entries.append(.name(.remove(name(first))))
      case .rename: entries.append(.name(.rename(name(first), to: name(second))))
      case .link: entries.append(.name(.link(name(first), to: name(second))))
      case .send:
        let text = unfinished[file, default: []] + first
        var lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        unfinished[file] = Array(lines.removeLast())
        entries.append(.answers(lines.compactMap { try? JSONCodec.parse(Array($0)) }))
      case nil: throw TestFailure("\(path) has an unknown entry at \(position)")
      }
    }
  }
}

/// A change of a file's bytes.
enum FileChange {
  case write([UInt8], at: Int)
  case truncate(to: Int)

  func apply(to bytes: inout [UInt8]) {
    switch self {
    case .write(let new, let offset):
      if bytes.count < offset + new.count { bytes += [UInt8](repeating: 0, count: offset + new.count - bytes.count) }
      bytes.withUnsafeMutableBytes { bytes in
        new.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[offset...]).copyMemory(from: $0) }
      }
    case .truncate(let length):
      if length < bytes.count {
        bytes.removeSubrange(length...)
      } else {
        bytes += [UInt8](repeating: 0, count: length - bytes.count)
      }
    }
  }

  /// What a disk that writes sectors has of it if the power fails meanwhile.
  func torn(_ generator: inout SeededGenerator) -> FileChange {
    guard case .write(let bytes, let offset) = self else { return self }
    let sector = Bool.random(using: &generator) ? 512 : 4096
    // Sectors begin at multiples in the file, not in the write.
    let ends = stride(from: (offset / sector + 1) * sector, to: offset + bytes.count, by: sector).map { $0 - offset }
    let end = ends.randomElement(using: &generator) ?? 0
    return Bool.random(using: &generator)
      ? .write(Array(bytes[..<end]), at: offset) : .write(Array(bytes[end...]), at: offset + end)
  }
}

/// A change of the directory.
enum NameChange {
  case create(String, file: Int)
  case remove(String)
  case rename(String, to: String)
  case link(String, to: String)

  func apply(to names: inout [String: Int]) {
    switch self {
    case .create(let name, let file): names[name] = file
    case .remove(let name): names[name] = nil
    case .rename(let name, let target): if let file = names.removeValue(forKey: name) { names[target] = file }
    case .link(let name, let target): names[target] = names[name]
    }
  }
}

/// The disk under a broker while its log is replayed: what is safe, and what a cut of the power may drop.
///
/// Between two syncs of a file its writes may reach the disk in any order, and the last ones not, or in part. Names
/// reach it in the order in which they changed, with the next sync of the directory at the latest.
struct CrashDisk {
  private struct File {
    var safe: [UInt8] = []
    var unsafe: [FileChange] = []
  }

  /// What a cut leaves of the writes that were not synced.
  enum Cut: CaseIterable {
    /// As if only the process was killed.
    case nothing
    case everything
    /// Everything but the names.
    case writes
    /// Up to two writes of each file.
    case some
    /// The end of the writes of each file, the first of them in part.
    case torn
    /// Any writes.
    case any
  }

  /// Syncs do nothing: for the control that the check then fails.
  private let isLying: Bool
  private var files: [File] = []
  private var names: [String: Int] = [:]
  private var unsafeNames: [NameChange] = []
  /// The file of a descriptor; nil for the directory.
  private var open: [Int32: Int?] = [:]

  init(isLying: Bool = false) { self.isLying = isLying }

  private var currentNames: [String: Int] {
    unsafeNames.reduce(into: names) { $1.apply(to: &$0) }
  }

  mutating func take(_ entry: WriteLog.Entry) {
    switch entry {
    case .open(let descriptor, let name, let creates, let empties):
      guard !name.isEmpty else { return open[descriptor] = .some(nil) }
      if let file = currentNames[name] {
        open[descriptor] = file
        if empties { files[file].unsafe.append(.truncate(to: 0)) }
      } else if creates {
        files.append(File())
        unsafeNames.append(.create(name, file: files.count - 1))
        open[descriptor] = files.count - 1
      }
    case .close(let descriptor): open[descriptor] = nil
    case .change(let descriptor, let change):
      if case .some(.some(let file)) = open[descriptor] { files[file].unsafe.append(change) }
    case .sync(let descriptor):
      guard !isLying, let file = open[descriptor] else { return }
      if let file {
        for change in files[file].unsafe { change.apply(to: &files[file].safe) }
        files[file].unsafe = []
      } else {
        names = currentNames
        unsafeNames = []
      }
    case .name(let change): unsafeNames.append(change)
    case .answers: break
    }
  }

  /// Whether a cut loses anything now.
  var isAtRisk: Bool { !unsafeNames.isEmpty || currentNames.values.contains { !files[$0].unsafe.isEmpty } }

  /// The files that are left by a cut now.
  func cut(_ cut: Cut, _ generator: inout SeededGenerator) -> [String: [UInt8]] {
    let kept =
      switch cut {
      case .nothing, .writes: cut == .nothing ? unsafeNames.count : 0
      case .everything: 0
      case .some, .torn, .any: Int.random(in: 0...unsafeNames.count, using: &generator)
      }
    let left = unsafeNames.prefix(kept).reduce(into: names) { $1.apply(to: &$0) }
    return left.mapValues { file in
      var bytes = files[file].safe
      for change in Self.survivors(of: cut, files[file].unsafe, &generator) { change.apply(to: &bytes) }
      return bytes
    }
  }

  private static func survivors(
    of cut: Cut,
    _ changes: [FileChange],
    _ generator: inout SeededGenerator
  ) -> [FileChange] {
    switch cut {
    case .nothing, .writes: return changes
    case .everything: return []
    case .some:
      let dropped = Set((0..<2).compactMap { _ in changes.indices.randomElement(using: &generator) })
      return changes.indices.filter { !dropped.contains($0) }.map { changes[$0] }
    case .torn:
      guard let end = changes.indices.randomElement(using: &generator) else { return [] }
      return changes[..<end] + [changes[end].torn(&generator)]
    case .any: return changes.filter { _ in Bool.random(using: &generator) }
    }
  }
}
