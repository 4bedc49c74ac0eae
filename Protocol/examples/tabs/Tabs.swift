// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationClient

/// A tab bar, its user interface in four processes: tabs bar|first|navigation|table [ROW ...]
///
/// The first tab embeds a table, the second is a navigation. A line of standard input is what the user does: selects a
/// tab, types into the first tab, pushes a page on the navigation, selects a row.
@main
struct Tabs {
  static func main() async throws {
    let role = CommandLine.arguments[1]
    let options = SessionOptions(application: "org.example.Tabs", process: role, answersCalls: true)
    let session = try await RestorationSession.start(options)
    let act: (String) async throws -> Void
    switch role {
    case "bar":
      let bar = Screen("selected")
      try await session.register(.controller("TabBar", below: nil), restoring: bar)
      try await session.restoreApplicationState()
      act = { await bar.show($0) }
    case "first":
      let first = Screen("text")
      try await session.register(.controller("First", below: ["TabBar"]), restoring: first)
      act = { await first.show($0) }
    case "navigation":
      let navigation = Screen("title")
      try await session.registerRestorationClass("Page") { try await $0.register(navigation.push()) }
      try await session.register(.controller("Navigation", below: ["TabBar"]), restoring: navigation)
      act = { title in
        var page = ObjectRegistration.controller("Page", below: ["TabBar", "Navigation"])
        (page.position, page.restorationClass) = (await Int64(navigation.pages.count), "Page")
        try await session.register(page, restoring: navigation.push(title))
      }
    default:
      let table = Table(Array(CommandLine.arguments.dropFirst(2)))
      let view = ObjectRegistration.controller("Table", below: ["TabBar", "First"], kind: .view)
      try await session.registerDataSource(table, for: session.register(view, restoring: table).reference)
      act = { await table.select($0) }
    }
    say("ready")
    while let line = readLine() {
      try await act(line)
      say("done")
    }
  }
}

func say(_ text: String) {
  let line = Array("\(text)\n".utf8)
  _ = write(STDOUT_FILENO, line, line.count)
}

extension ObjectRegistration {
  /// The process of its parent may start later.
  static func controller(_ name: String, below parent: ObjectReference?, kind: ObjectKind = .viewController) -> Self {
    ObjectRegistration(name, restorationParent: parent, kind: kind, awaitParent: .seconds(10))
  }
}

/// A controller that shows a text, and may have pages on it.
actor Screen: StateRestoring {
  private let key: String
  private var text: String
  private(set) var pages: [Screen] = []

  init(_ key: String, _ text: String = "") { (self.key, self.text) = (key, text) }

  func show(_ text: String) { self.text = text }

  func push(_ text: String = "") -> Screen {
    pages.append(Screen(key, text))
    return pages[pages.count - 1]
  }

  func encodeRestorableState() -> ObjectState { [key: .string(text)] }
  func decodeRestorableState(_ saved: ObjectState) { text = saved.state[key]?.string ?? "" }
  func applicationFinishedRestoringState() { say("\(key) \(text)") }
}

/// A table and its data source: the selected row is found again although the rows have another order.
actor Table: StateRestoring, ModelAssociating {
  typealias Role = RestorableElement.Role
  private let rows: [String]
  private var selected = 0

  init(_ rows: [String]) { self.rows = rows }

  func select(_ row: String) { selected = rows.firstIndex(of: row) ?? 0 }

  func encodeRestorableState() -> ObjectState { ObjectState([:], elements: [.init(.selected, at: [0, selected])]) }
  func decodeRestorableState(_ saved: ObjectState) { selected = saved.elements.first?.indexPath.last ?? 0 }
  func applicationFinishedRestoringState() { say("row \(selected) \(rows[selected])") }

  func modelIdentifierForElement(at path: [Int], role: Role, in _: IdentifierPath) -> String? { rows[path[1]] }
  func indexPathForElement(withModelIdentifier row: String, role: Role, in _: IdentifierPath) -> [Int]? {
    rows.firstIndex(of: row).map { [0, $0] }
  }
}
