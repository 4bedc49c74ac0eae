// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import TestSupport

/// Archives of format 1, in `Tests/Archives/format1`, as the last broker that wrote them left them.
///
/// All hold `transactions`, so that the same written in the present format has to read the same.
enum FormatOne: String, CaseIterable, Sendable {
  /// Closed in order.
  case closed
  /// By a broker that was killed: some of it is in the log only.
  case killed
  /// By the first brokers, which did not know some of the tables.
  case first
  /// Its log was lost before, which is not told yet.
  case damaged

  static let application = "x"

  private static var folder: String {
    "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/Archives/format1"
  }

  var files: [String: [UInt8]] {
    get throws {
      let folder = "\(Self.folder)/\(rawValue)"
      return Dictionary(uniqueKeysWithValues: try Files.list(folder).map { ($0, try Files.read("\(folder)/\($0)")) })
    }
  }

  /// A store over these files.
  func fixture(in system: (_ directory: String) -> any FileSystem = { _ in SystemFiles() }) throws -> ArchiveFixture {
    let fixture = try ArchiveFixture(.sqlite, in: system)
    for (name, bytes) in try files { try fixture.directory.write(bytes, to: name) }
    return fixture
  }

  /// Rows of every table: generations, a subtree that moved, early, withheld and removed states, two heads.
  static let transactions: [[ArchiveChange]] = [
    [.node(9, "Former"), .state(9, "{}"), .seal(1), .removeAll],
    [
      .session(SessionRecord(session: 1, token: "0123456789abcdef", facts: #"{"process":"main"}"#)),
      .node(
        NodeRecord(
          node: 1,
          parent: nil,
          component: "Main",
          kind: .viewController,
          classes: #"["Window","Controller"]"#,
          restorationClass: "Windows"
        )
      ),
      .node(NodeRecord(node: 2, parent: 1, component: "Éditeur#3", kind: .object, keepsForever: true)),
      .node(
        NodeRecord(node: 3, parent: 1, component: "Secret", kind: .view, storyboard: "a.service", isConfidential: true)
      ),
      .node(NodeRecord(node: 4, parent: nil, component: nil, kind: .application)),
      .node(5, "Closed", parent: 2), .node(6, "Gone", parent: 2),
      .context(1, text: #"{"class":"Windows"}"#), .context(2, text: #"{"class":"Secrets","keys":["ä"]}"#),
    ],
    (1...6).map { .claim(ClaimRecord(node: $0, session: 1, handle: 1 << 32 + $0)) },
    (1...6).map { state($0, "first") },
    [.seal(generation(2, omitting: [6])), .pin(generation: 2)],
    [state(1, String(repeating: "long ", count: 2_000)), state(2, "second"), state(2, "third", isEarly: true)],
    [.withhold([StateRow(node: 5, sequence: 24)], since: 1_795_000_000_000)],
    [
      .node(NodeRecord(node: 2, parent: nil, component: "Éditeur", kind: .object)), .removed(5),
      .removed(6, successor: 2),
    ],
    [
      .seal(generation(3, omitting: [])), .removeState(3),
      .claim(ClaimRecord(node: 3, session: 1, handle: 7, released: 9)),
    ],
    [.run(RunRecord(run: 3, restorations: 2, facts: #"{"began":5}"#))],
  ]

  private static func state(_ node: NodeID, _ text: String, isEarly: Bool = false) -> ArchiveChange {
    .state(
      StateRecord(
        node: node,
        context: node % 2 + 1,
        session: 1,
        revision: 2,
        isEarly: isEarly,
        written: 1_795_000_000_000 + node,
        text: Array(#"{"of":\#(node),"text":"\#(text)"}"#.utf8)[...],
        references: node == 2 ? "[[0,1,1]]" : nil,
        elements: node == 3 ? "[[1]]" : nil
      )
    )
  }

  private static func generation(_ number: Int64, omitting omitted: [NodeID]) -> GenerationRecord {
    GenerationRecord(generation: number, kind: "round", committed: 5, objects: 6, bytes: 99, omitted: omitted)
  }
}
