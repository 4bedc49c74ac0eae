// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// Who imports what, held against the table of `Sources/ARCHITECTURE.md`: SwiftPM itself lets transitive imports pass.
@Suite struct ImportTests {
  struct Permission {
    let module: String
    /// At most one file of the target may import it.
    let isForOneFile: Bool
    /// `nil` for the whole target.
    let folder: String?
  }

  private static func permissions(_ cell: Substring) -> [Permission] {
    cell.split(separator: ",").compactMap { entry in
      let words = entry.split(separator: "`", omittingEmptySubsequences: false)
      guard words.count >= 3 else { return nil }
      let folder = words.count >= 5 ? String(words[3]) : nil
      return Permission(module: String(words[1]), isForOneFile: entry.contains("one file"), folder: folder)
    }
  }

  /// The rows of the table: target and what it may import.
  private static func table() throws -> [String: [Permission]] {
    var table: [String: [Permission]] = [:]
    for line in try SourceFile("Sources/ARCHITECTURE.md").lines where line.hasPrefix("| `") {
      let cells = line.split(separator: "|")
      // The other tables of the page have fewer columns.
      guard cells.count == 4 else { continue }
      let target = cells[0].filter { $0 != "`" && $0 != " " }
      table[target] = permissions(cells[1]) + permissions(cells[2])
    }
    return table
  }

  private static func importedModule(_ line: String) -> String? {
    guard line.has("import") else { return nil }
    let words = line.split(separator: " ")
    // Words before it are attributes and access levels; anything else is prose about importing.
    guard let index = words.firstIndex(of: "import"), index + 1 < words.count,
      words[..<index].allSatisfy({ ["public", "package", "internal", "private"].contains($0) || $0.hasPrefix("@") })
    else { return nil }
    return words[index + 1].split(separator: ".").first.map(String.init)
  }

  @Test func everyTargetIsInTheCodeMap() throws {
    let targets = Set(Files.list("\(Products.repository)/Sources").filter { $0 != "ARCHITECTURE.md" })
    #expect(targets == Set(try Self.table().keys))
  }

  @Test func everyImportIsAllowedByTheCodeMap() throws {
    for (target, permissions) in try Self.table() {
      var importers: [String: [SourceFile]] = [:]
      for file in try SourceFile.sources.get() where file.path.hasPrefix("Sources/\(target)/") {
        for module in file.code.compactMap(Self.importedModule) { importers[module, default: []].append(file) }
      }
      for (module, files) in importers {
        guard let permission = permissions.first(where: { $0.module == module }) else {
          Issue.record("\(target) may not import \(module): \(files)")
          continue
        }
        #expect(
          !permission.isForOneFile || files.count == 1,
          "\(target) imports \(module) in more than one file: \(files)"
        )
        if let folder = permission.folder {
          let outside = files.filter { !$0.path.hasPrefix("Sources/\(target)/\(folder)") }
          #expect(outside.isEmpty, "\(module) belongs into \(folder): \(outside)")
        }
      }
    }
  }

  /// The core decides; it neither reads nor writes anything.
  @Test func theCoreImportsValuesOnly() throws {
    let values: Set<String> = ["HeapModule", "JSONRPC", "RestorationArchive", "RestorationWire"]
    for file in try SourceFile.all("Sources/RestorationBroker/Core", ".swift") {
      #expect(Set(file.code.compactMap(Self.importedModule)).isSubset(of: values), "\(file)")
    }
  }

  @Test func everyImportSaysItsAccessLevel() throws {
    let levels: Set<Substring> = ["internal", "package", "public", "private", "fileprivate"]
    for file in try SourceFile.sources.get() + SourceFile.tests.get() {
      let bare = file.code.filter { line in
        Self.importedModule(line) != nil && line.first != " "
          && !levels.contains(line.split(separator: " ").first { $0.first != "@" } ?? "")
      }
      #expect(bare.isEmpty, "\(file)")
    }
  }

  @Test func nothingThatShipsImportsFoundationAndNoTestLooksInside() throws {
    for file in try SourceFile.sources.get() {
      #expect(!file.code.compactMap(Self.importedModule).contains("Foundation"), "\(file)")
    }
    for file in try SourceFile.tests.get() { #expect(!file.code.contains { $0.hasPrefix("@testable") }, "\(file)") }
  }
}
