// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import InMemory
internal import JSONRPC
internal import Mutation
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationReplica
internal import RestorationWire

extension FuzzTarget {
  /// What a gateway answers to a broker whose archives follow their user. The first byte says what the host has. Each
  /// line of the rest is what the next call gets: `R` and a result, `E` and an error, and any other line no answer. A
  /// text of `$` and a number stands for one of the seeds' own that is too long to be changed.
  ///
  /// Whatever it answers, what the host had is there afterwards.
  static let answers = FuzzTarget(
    name: "answers",
    seeds: {
      RoamingHost.allCases.indices.flatMap { number -> [[UInt8]] in
        let lines = RoamingHost.allCases[number].recording.script.split(separator: UInt8(ascii: "\n"))
        func script(_ place: Int, _ line: [UInt8]) -> [UInt8] {
          let all = lines[..<place] + [line[...]] + lines[(place + 1)...]
          return [UInt8(number)] + Array(all.joined(separator: [UInt8(ascii: "\n")]))
        }
        let variants = lines.indices.flatMap { place in borders(of: Array(lines[place])).map { script(place, $0) } }
        return [script(0, Array(lines[0]))] + variants
      }
    },
    run: { input in
      guard let first = input.first else { return }
      RoamingHost.allCases[Int(first) % RoamingHost.allCases.count].play(input.dropFirst())
    }
  )
}

/// What a host has of an application when its broker starts, while another host has written behind it.
private enum RoamingHost: Int, CaseIterable {
  case nothing
  /// What the replica had when the host gave its lease back.
  case former
  /// The same, and what it has not sent.
  case unsent

  /// A text that only this host writes.
  private static let kept = "kept by this host"

  /// An honest story: the files with which it begins, and what the calls of the broker got.
  struct Recording {
    var files: [String: Data] = [:]
    var script: [UInt8] = []
  }

  var recording: Recording { Self.recordings[rawValue] }

  private static let recordings = allCases.map { $0.record() }

  private func record() -> Recording {
    let (memory, folders) = (MemoryReplica(pageMax: 2), (FuzzFolder(), FuzzFolder()))
    defer {
      folders.0.remove()
      folders.1.remove()
    }
    func stay(
      _ host: String,
      _ folder: FuzzFolder,
      _ calls: [String],
      on replica: (any ArchiveReplica)? = nil,
      then body: () -> Void = {}
    ) {
      let broker = RoamingBroker(host, in: folder, replica ?? memory.link(from: host))
      broker.use(calls, then: body)
      memory.mend(host)
    }
    if self != .nothing { stay("A", folders.0, [Self.encode("Kept", Self.kept), Self.goodbye]) }
    if self == .unsent {
      stay("A", folders.0, [Self.encode("Main", "not sent"), Self.goodbye]) { memory.cut("A") }
    }
    let migrate = #""migrateReplica","params":{"application":"App"}"#
    stay("B", folders.1, [Self.encode("Main", "by another host"), Self.goodbye, migrate])
    stay("B", folders.1, [Self.encode("Main", "once more"), Self.goodbye])
    let files = folders.0.files
    let recorder = ReplicaScript(recording: memory.link(from: "A"))
    stay("A", folders.0, Self.story, on: recorder)
    return Recording(files: files, script: recorder.script)
  }

  private static func encode(_ path: String, _ text: String) -> String {
    #""encodeRestorableState","params":{"object":["\#(path)"],"state":{"text":"\#(text)"}}"#
  }

  private static let goodbye = #""goodbye","params":{"reason":"logout"}"#

  private static let story = [
    #""decodeRestorableState","params":{"object":["Main"]}"#, encode("Main", "written last"), #""listApplications""#,
    #""reportReplica""#, #""flushReplica""#, goodbye, #""migrateReplica","params":{"application":"App"}"#,
  ]

  func play(_ script: ArraySlice<UInt8>) {
    let folder = FuzzFolder(recording.files)
    defer { folder.remove() }
    RoamingBroker("A", in: folder, ReplicaScript(playing: script)).use(Self.story)
    guard self != .nothing else { return }
    let isThere = folder.files.contains {
      $0.key.contains(".sqlite") && $0.value.range(of: Data(Self.kept.utf8)) != nil
    }
    demand(isThere, "the host has lost what it had; it has \(folder.files.keys.sorted())")
  }
}

/// A broker whose archives follow their user, and a client of it.
private final class RoamingBroker {
  private let broker: FuzzedBroker
  private let store: ReplicatedStore

  init(_ host: String, in folder: FuzzFolder, _ replica: any ArchiveReplica) {
    var made: ReplicatedStore?
    broker = FuzzedBroker { loop in
      let files = try SQLiteArchiveStore(directory: folder.path, on: loop, upkeep: ArchiveUpkeep(ballastBytes: 0))
      var settings = ReplicaSettings(host: host, term: LeaseTerm(milliseconds: 15_000), promise: .disk)
      settings.partBytes = 64 << 10
      let store = try ReplicatedStore(around: files, settings, clock: loop.replicaClock, on: loop, sharing: \.shared) {
        _ in replica
      }
      made = store
      return store
    }
    guard let made else { preconditionFailure("no store") }
    store = made
  }

  /// Makes the calls of one client after the other, and ends.
  ///
  /// - Parameter body: is called when the archive is open.
  func use(_ calls: [String], then body: () -> Void = {}) {
    store.sendLeft()
    let client = broker.connect()
    func call(_ text: String) {
      client.send(#"{"jsonrpc":"2.0","id":1,"method":\#(text)}"#.utf8 + [10])
      broker.run()
      // What waits for another host, or for the replica, has an end.
      broker.advance(milliseconds: 2_000)
    }
    call(#""initialize","params":{"application":"App","takeOver":true}"#)
    for name in ["Main", "Kept"] {
      call(#""registerObjectForStateRestoration","params":{"restorationIdentifier":"\#(name)"}"#)
    }
    body()
    for text in calls { call(text) }
    broker.advance(milliseconds: 20_000)
    demand(client.isOpen, "the broker closes the connection of its client")
    store.drain()
    broker.stop()
  }
}
