// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire

extension FuzzTarget {
  /// Files and names that others write. The first byte chooses the reader.
  static let texts = FuzzTarget(
    name: "texts",
    seeds: {
      let texts = [
        "[Unit]\nDescription=x\n[X-Restoration]\n# no\nApplication=org.example.%p \\\n b\nApplication=\n",
        #"{"socket":"/run/b.sock","limits":{"frameBytesMax":70000},"restoreAtLogin":{"a":"always"}}"#,
        #"{"objects":[{"path":["A"],"kind":"view","state":{"json":{"$restorable":["B"]},"writer":{"process":"p"}}}]}"#,
        #"{"confinement":"org.example.App","session":{"application":"App","token":"t"},"subscriptions":[]}"#,
        "4711 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35",
        "0::/user.slice/app-flatpak-org.example.Notes-4711.scope\n\u{0}[Application]\nname=org.example.Notes\n",
        "NAME=x\nVERSION_ID=\"12\"\n", "2026-02-28T09:05:00.042Z", "getty@tty1.service",
      ]
      return readers.indices.map { [UInt8($0)] + Array(texts[min($0, texts.count - 1)].utf8) }
    },
    run: { input in
      guard let first = input.first else { return }
      readers[Int(first) % readers.count](Array(input.dropFirst()))
    }
  )

  private static let readers: [@Sendable ([UInt8]) -> Void] = [
    { bytes in
      guard let unit = UnitName("a@b.service") else { return }
      _ = UnitFile.applications([string(bytes), string(bytes)], of: unit)
    },
    { bytes in
      _ = try? BrokerConfiguration(
        BrokerConfiguration.Flags(),
        environment: { _ in "/x" },
        readFile: { _ in string(bytes) }
      )
    },
    { bytes in
      guard let slice = try? JSONSlice.scan(bytes, vocabulary: EncodedState.vocabulary, limits: .unframed) else {
        return
      }
      _ = try? ArchiveDocument(slice, at: "/document")
      _ = try? DocumentObject(slice.compactText)
    },
    { bytes in
      let facts = RunFacts(stored: bytes)
      demand(RunFacts(stored: facts.stored).stored == facts.stored, "facts change: \(facts.stored)")
      _ = (Blame(stored: bytes), ClosedShelf(stored: bytes), SessionFacts(stored: bytes), StateOrigin(stored: bytes))
    },
    { bytes in _ = (ProcessIdentity.startTicks(inStatus: bytes), ProcessIdentity.exitStatus(inStatus: bytes)) },
    { bytes in
      let parts = bytes.split(separator: 0, maxSplits: 1).map { string(Array($0)) }
      let process = FuzzedProcess(groups: parts.first, info: parts.count > 1 ? parts[1] : nil)
      // Whatever it says of itself: it is of the host only if it is in no scope of Flatpak's.
      switch PeerOrigin(of: process) {
      case .host: demand(!(parts.first ?? "").contains("/app-flatpak-"), "of the host: \(parts)")
      case .flatpak(let name): demand(parts[1].contains(name), "another name: \(name)")
      case .unclear: break
      }
    },
    { bytes in _ = Host.systemVersion(inRelease: string(bytes)) },
    { bytes in
      let text = string(bytes)
      if let time = Timestamp(text) { demand("\(time)" == text, "\(text) became \(time)") }
      _ = (Timestamp(rfc3339: text), ApplicationName(text))
    },
    { bytes in
      if let name = UnitName(string(bytes)) {
        _ = UnitFile.permits(["[X-Restoration]\nApplication=%i%p%n"], of: name, for: "a")
      }
    },
  ]

  private static func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

private struct FuzzedProcess: ProcessFacts {
  let groups: String?
  let info: String?
  var controlGroups: String? { groups }
  var isInOurUserNamespace: Bool? { true }
  var flatpakInfo: String? { info }
  var hasEnded: Bool { false }
}
