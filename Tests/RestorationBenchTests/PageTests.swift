// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing
internal import restoration_bench

/// How figures are shown.
@Suite struct PageTests {
  private static func figures(_ nanoseconds: UInt64, count: Int = 50) -> Figures {
    var figures = Figures()
    for _ in 0..<count { figures.latency.note(nanoseconds) }
    figures.seconds = 1
    figures.serverCPU = 1_000 * UInt64(count)
    return figures
  }

  private static let report: Report = {
    var rows: [Row] = []
    for (index, server) in ["broker", "redis <always>", "C floor"].enumerated() {
      var subject = Subject("encode", server)
      (subject.clients, subject.size, subject.framing) = (8, 1_024, "lines")
      let turns = (1...7).map { figures(4_321_000, count: 100 * (index + 1) + $0) }
      rows.append(Row(subject, turns, ratio: Spread([0.75, 1.25, 2])))
    }
    for objects in [100, 1_000, 10_000] {
      var subject = Subject("growth of encode", "broker")
      subject.growth = Growth("objects", objects)
      rows.append(Row(subject, [figures(UInt64(objects) * 1_000)]))
    }
    var report = Report("compare", rows, processors: 2, isPinned: true, load: 0.5)
    (report.reference, report.missing) = ("Redis", ["dconf, because dconf is not installed"])
    return report
  }()

  @Test func theTableHasEveryFigure() {
    let lines = Self.report.table().split(separator: "\n")
    #expect(lines.count == 1 + 6 + 2)
    #expect(lines[1].split(separator: " ").prefix(7) == ["encode", "broker", "8×1", "–", "1024", "–", "lines"])
    #expect(lines[6].contains("objects 10000"))
    for figure in ["104.0", "101.0…107.0", "4321", "1.00", "1.25 [0.75…2.00]"] {
      #expect(lines[1].contains(figure), "\(figure): \(lines[1])")
    }
    #expect(lines.last == "left out: dconf, because dconf is not installed")
  }

  @Test func theTableFitsATerminalAndNamesWhatItLeavesOut() {
    var report = Report("compare", Array(Self.report.rows.prefix(3)), processors: 2, isPinned: true, load: 0.5)
    report.reference = "Redis"
    let wide = report.table().split(separator: "\n")
    #expect(wide[0].count > 120 && report.table(room: wide[0].count) == report.table())
    let lines = report.table(room: 80).split(separator: "\n")
    for line in lines.prefix(4) { #expect(line.count <= 80, "\(line)") }
    #expect(lines[0].hasPrefix("work") && lines[0].hasSuffix("× Redis"))
    for figure in ["redis <always>", "8×1", "204.0", "4321", "1.25 [0.75…2.00]"] { #expect(lines[2].contains(figure)) }
    #expect(lines[4].hasPrefix("no room for own CPU us, framing, objects, bytes, grown"))
    // Rows of growth differ in nothing else.
    #expect(Self.report.table(room: 40).contains("grown"))
  }

  @Test func theJSONHasEveryRow() throws {
    let json = try JSONCodec.parse(Array(Self.report.json.utf8))
    let rows = try #require(json["rows"]?.array)
    #expect(rows.count == 6)
    #expect(rows[0]["requestsPerSecond"]?["median"] == .real(104))
    #expect(rows[0]["ratio"]?["most"] == .real(2))
    #expect(rows[5]["ratio"] == .null)
    #expect(rows[5]["growth"] == .object(["axis": .string("objects"), "value": .integer(10_000)]))
    #expect(rows[0]["growth"] == .null)
    #expect(json["missing"]?.array?.count == 1)
  }

  @Test func thePageHasEveryFigureAndNeedsNothingElse() {
    let page = Page(Self.report).html
    for row in Self.report.cells {
      for cell in row { #expect(page.contains(">\(cell.replacing("<", with: "&lt;").replacing(">", with: "&gt;"))<")) }
    }
    for rate in ["104.0/s", "204.0/s", "304.0/s"] { #expect(page.contains(rate)) }
    #expect(page.matches(of: /<rect/).count == 3)
    #expect(page.matches(of: /<circle/).count == 3)
    #expect(!page.contains("redis <always>"))
    #expect(page.contains("<b class=\"own\"></b> the broker") && page.contains("the thin line"))
    for word in ["http", "src=", "href=", "<script", "url("] { #expect(!page.contains(word), "\(word)") }
  }

  /// The browser lays it out, light and dark, and finds nothing to complain about.
  @Test(.scratch, .enabled(if: Browser.isUsable, "chromium is not installed"))
  func aBrowserShowsThePage() throws {
    try directory.write(Page(Self.report).html, to: "page.html")
    let dump = try Browser.dump("file://\(directory.file("page.html"))", in: directory)
    #expect(dump.contains("<svg viewBox="))
    #expect(dump.contains("left out: dconf"))
    #expect(dump.matches(of: /<tr>/).count == 7)
    #expect(!dump.contains("parsererror"))
  }
}
