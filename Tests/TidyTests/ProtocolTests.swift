// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import TestSupport
internal import Testing

/// `Protocol/` and the code cannot change apart.
@Suite struct ProtocolTests {
  @Test func everyMethodHasAPageAndEveryPageAMethod() throws {
    let pages = Set(Files.list("\(Products.repository)/Protocol/methods").map { String($0.dropLast(".md".count)) })
    let methods = Set(MethodTable.methods.map { $0.method })
    #expect(pages == methods)
    let index = try SourceFile("Protocol/README.md").text
    for method in methods {
      #expect(index.contains("(methods/\(method).md)"), "\(method) is not in Protocol/README.md")
    }
  }

  /// A name a client may list in `serves` is a call or a notification, and is documented.
  @Test func everythingThatCanBeServedIsDocumented() throws {
    let calls = try SourceFile("Protocol/calls.md").lines.filter { $0.hasPrefix("### ") }
      .map { $0.filter { $0 != "#" && $0 != " " && $0 != "`" } }
    let notifications = try SourceFile("Protocol/notifications.md").text
    for served in ServedMethod.allCases.map(\.rawValue) where !calls.contains(served) {
      #expect(notifications.contains("`\(served)`"), "\(served)")
    }
    #expect(Set(calls).isSubset(of: Set(ServedMethod.allCases.map(\.rawValue))))
    #expect(calls.count == 10)
  }

  /// A notification that a library does not know, it never passes on; an end of the session that it does not know, it
  /// undoes by beginning another one.
  @Test func theLibrariesKnowEveryNotificationToASession() throws {
    let python = try SourceFile("Protocol/clients/python/restorationd/__init__.py").text
    let swift = try SourceFile("Sources/RestorationClient/Events/BrokerNotification.swift").text
    let c = try SourceFile("Protocol/clients/c/restoration.c").text + SourceFile("Protocol/clients/c/README.md").text
    for name in ServedMethod.allCases where name != .progress {
      guard case .notification = name.form else { continue }
      #expect(python.contains("\"\(name)\"") && swift.contains("case .\(name): .\(name)"), "\(name)")
      #expect(c.contains("\"\(name)\"") || c.contains("`\(name)`"), "\(name)")
    }
    for page in ["python", "c", "swift"] {
      let text = try SourceFile("Protocol/clients/\(page)/README.md").text
      for code in [ErrorCode.ownedElsewhere, .fenced] { #expect(text.contains("`\(code)`"), "\(page): \(code)") }
    }
  }

  @Test func everyCallOfTheBrokerHasItsCounterpartInUIKit() throws {
    let page = try SourceFile("Protocol/from-uikit.md").text
    for call in try SourceFile("Protocol/calls.md").lines where call.hasPrefix("### `") {
      #expect(page.contains("(calls.md#\(Self.anchor(call)))"), "\(call)")
    }
  }

  @Test func everyPageListsTheParametersInTheirOrder() throws {
    for method in MethodTable.methods {
      let page = try SourceFile("Protocol/methods/\(method.method).md")
      let names = page.lines.compactMap { line -> String? in
        let cells = line.split(separator: "|").map { $0.filter { $0 != " " && $0 != "`" } }
        guard line.hasPrefix("| "), cells.count >= 3, Int(cells[0]) != nil else { return nil }
        return cells[1]
      }
      #expect(names == method.members.map(\.name), "\(page)")
    }
  }

  /// A name of a shape stands for one shape in the document of `rpc.discover`.
  @Test func sharedShapesHaveNamesOfTheirOwn() throws {
    let files =
      try SourceFile.all("Sources/RestorationWire", ".swift")
      + SourceFile.all("Sources/RestorationBroker/Core/Discovery", ".swift")
    let names = files.flatMap { file in
      file.text.matches(of: /(?:\.shared\(\s*|sharedName(?:: String\?)? = )"(\w+)"/).map { String($0.1) }
    }
    #expect(names.count > 30)
    #expect(Set(names).count == names.count)
    #expect(!names.contains { $0.hasSuffix("Event") }, "these are the events'")
  }

  @Test func everyErrorIsDocumented() throws {
    let page = try SourceFile("Protocol/errors.md").text
    for code in ErrorCode.all { #expect(page.contains("| \u{2212}\(-code.rawValue) | `\(code.kind)` |"), "\(code)") }
    for code in [32700, 32600, 32601, 32602, 32603] { #expect(page.contains("| \u{2212}\(code) | `"), "\(code)") }
  }

  @Test func everyIncidentIsDocumentedAndExplainedToReadersOfTheJournal() throws {
    let page = try SourceFile("Protocol/service.md").text
    let catalog = try SourceFile("systemd/restorationd.catalog").lines.filter { $0.hasPrefix("-- ") }
    #expect(Set(catalog) == Set(Incident.allCases.map { "-- \($0.rawValue)" }))
    #expect(catalog.count == Incident.allCases.count)
    for incident in Incident.allCases { #expect(page.contains("| `\(incident)` | `\(incident.rawValue)` |")) }
  }

  @Test func everyLimitIsDocumentedAndEveryDocumentedLimitThere() throws {
    let rows = try SourceFile("Protocol/limits.md").lines.filter { line in
      line.hasPrefix("| `") && line.split(separator: "|").count >= 5
    }
    let names = rows.compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) }
    #expect(Set(names) == Set(Limit.all.map { "\($0.name)" }))
  }

  @Test func everyVectorIsReadable() throws {
    #expect(GoldenVector.all.count >= 60)
    for vector in GoldenVector.all {
      let (name, rules, steps) = try vector.contents()
      #expect(name == vector.name)
      #expect(steps > 0, "\(vector)")
      for rule in rules {
        #expect((1...36).contains(Int(rule.dropFirst()) ?? 0) && rule.hasPrefix("R"), "\(vector): \(rule)")
      }
    }
  }

  /// The documents show the program that `SmallestProgramTests` runs.
  @Test func theSmallestProgramIsShownAsItIs() throws {
    let program = try SourceFile("Protocol/examples/smallest/main.swift")
    let articles = "Sources/RestorationClient/RestorationClient.docc"
    #expect(program.lines.count <= 6 && program.lines.allSatisfy { $0.count <= 100 })
    for page in ["README.md", "\(articles)/StartInFiveMinutes.md"] {
      #expect(try SourceFile(page).text.contains("```swift\n\(program.text)\n```"), "\(page)")
    }
  }

  @Test func linksLeadSomewhere() throws {
    let pages =
      try ["Protocol", "Sources", "Tests", ".github"].flatMap { try SourceFile.all($0, ".md") }
      + [SourceFile("README.md")]
    for page in pages {
      let folder = page.path.split(separator: "/").dropLast().joined(separator: "/")
      for match in page.text.matches(of: /\]\(([^)\s]+)\)/) {
        let link = String(match.1)
        if link.hasPrefix("http://") || link.hasPrefix("https://") { continue }
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let target = parts[0].isEmpty ? page.path : (folder.isEmpty ? "" : folder + "/") + parts[0]
        #expect(Files.exists("\(Products.repository)/\(target)"), "\(page): \(link)")
        if parts.count == 2, target.hasSuffix(".md"), let file = try? SourceFile(target) {
          let headings = file.lines.filter { $0.hasPrefix("#") }.map(Self.anchor)
          #expect(headings.contains(String(parts[1])), "\(page): \(link)")
        }
      }
    }
  }

  /// The anchor of a heading in a link.
  private static func anchor(_ heading: String) -> String {
    let text = heading.drop { $0 == "#" || $0 == " " }.lowercased()
    return String(text.compactMap { $0 == " " ? "-" : $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" ? $0 : nil })
  }
}
