// SPDX-License-Identifier: Apache-2.0

/// A report as one page of HTML that needs nothing else: bars of rates, curves of growth, and all figures.
package struct Page {
  private let report: Report

  package init(_ report: Report) { self.report = report }

  package var html: String {
    let works = Self.ordered(report.rows.map(\.subject.work))
    let sections = works.map { work in
      let rows = report.rows.filter { $0.subject.work == work }
      let curves = Self.ordered(rows.compactMap(\.subject.growth?.axis)).map { axis in
        Curve(axis, rows.filter { $0.subject.growth?.axis == axis }).svg
      }
      let charts = curves.isEmpty ? bars(rows) : curves.joined(separator: "\n")
      return "<section><h2>\(Self.escaped(work))</h2>\n\(charts)</section>\n"
    }
    return """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <title>restoration-bench \(report.command)</title><style>\(Self.style)</style></head><body>
      <h1>restoration-bench \(report.command)</h1>
      \(report.notes.map { "<p>\(Self.escaped($0))</p>" }.joined(separator: "\n"))
      \(report.rows.contains { $0.subject.growth == nil } ? Self.legend : "")
      \(sections.joined())<section><h2>All figures</h2>
      <p>Medians of \(report.rows.map(\.turns.count).max() ?? 0) turns; times in microseconds, CPU for each request.</p>
      <div class="wide"><table>\(table)</table></div></section>
      </body></html>

      """
  }

  private static let legend = """
    <p><b class="own"></b> the broker <b class="bar"></b> others. A bar is the median of all turns, in requests a
    second, and the thin line goes from the slowest turn to the fastest. 8 clients × 16: each of 8 clients has 16
    requests under way.</p>
    """

  /// A chart for each shape. Servers are compared within a shape, the broker alone from shape to shape.
  private func bars(_ all: [Row]) -> String {
    Self.ordered(all.map { Self.heading($0.subject) }).map { heading in
      let rows = all.filter { Self.heading($0.subject) == heading }
      let most = (report.reference == nil ? all : rows).map(\.rate.most).max() ?? 0
      return "<h3>\(heading)</h3>\n" + Bars(rows, most: most).svg
    }.joined(separator: "\n")
  }

  private var table: String {
    report.cells.enumerated().map { index, line in
      let name = index == 0 ? "th" : "td"
      return "<tr>" + line.map { "<\(name)>\(Self.escaped($0))</\(name)>" }.joined() + "</tr>"
    }.joined(separator: "\n")
  }

  private static func heading(_ subject: Subject) -> String {
    let framing = subject.framing.isEmpty || subject.framing == "lines" ? "" : ", \(subject.framing)"
    let size = subject.size > 0 ? ", \(subject.size) bytes" : ""
    return "\(subject.clients) client\(subject.clients == 1 ? "" : "s") × \(subject.depth)\(size)\(framing)"
  }

  private static func ordered(_ texts: [String]) -> [String] {
    var seen: Set<String> = []
    return texts.filter { seen.insert($0).inserted }
  }

  static func escaped(_ text: String) -> String {
    text.reduce(into: "") { text, character in
      switch character {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      case "\"": text += "&quot;"
      default: text.append(character)
      }
    }
  }

  private static let style = """
    :root{--text:#1b1b1f;--ground:#fff;--faint:#8a8a94;--bar:#4a78c8;--own:#c8641e;--line:#d8d8de;
    color-scheme:light dark}
    @media(prefers-color-scheme:dark){:root{--text:#e6e6ea;--ground:#17171a;--bar:#6f9be8;--own:#f09050;--line:#3a3a40}}
    body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--ground);max-width:64rem;margin:2rem auto;
    padding:0 1rem}h2{border-bottom:1px solid var(--line)}h3{font-size:1em;margin:1em 0 0}.wide{overflow-x:auto}
    svg{width:100%;max-width:48rem;height:auto}svg text{fill:var(--text);font-size:13px}svg .end{text-anchor:end}
    svg .bar{fill:var(--bar)}svg .own{fill:var(--own)}svg .line{stroke:var(--line)}svg .spread{stroke:var(--text)}
    b{display:inline-block;width:1em;height:.7em}b.bar{background:var(--bar)}b.own{background:var(--own)}
    svg .curve{fill:none;stroke:var(--own);stroke-width:2}svg .dot{fill:var(--own)}svg .axis{fill:var(--faint)}
    table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
    th,td{padding:.15em .6em;text-align:right;border-bottom:1px solid var(--line)}
    """
}

/// Rates of several servers, with the spread of their turns.
private struct Bars {
  private let rows: [Row]
  private let most: Double

  init(_ rows: [Row], most: Double) { (self.rows, self.most) = (rows, most) }

  var svg: String {
    let (left, width) = (170.0, 420.0)
    let bars = rows.enumerated().map { index, row in
      let middle = Double(index) * 26 + 14
      let place = { (rate: Double) in left + (most > 0 ? rate / most : 0) * width }
      let end = place(row.rate.median)
      let (least, greatest) = (place(row.rate.least), place(row.rate.most))
      let name = Page.escaped(row.subject.server)
      let kind = name == "broker" ? "bar own" : "bar"
      return """
        <text class="end" x="\(left - 8)" y="\(middle + 5)">\(name)</text>\
        <rect class="\(kind)" x="\(left)" y="\(middle - 9)" width="\(coordinate(max(1, end - left)))" height="18"/>\
        <line class="spread" x1="\(coordinate(least))" x2="\(coordinate(greatest))" y1="\(middle)" y2="\(middle)"/>\
        <text x="\(coordinate(max(end, greatest) + 6))" y="\(middle + 5)">\(Number.text(row.rate.median))/s</text>
        """
    }
    return """
      <svg viewBox="0 0 700 \(rows.count * 26 + 4)" role="img" aria-label="requests per second">
      \(bars.joined(separator: "\n"))
      </svg>
      """
  }
}

/// The median time of a request against how much there is of something.
private struct Curve {
  private let axis: String
  private let rows: [Row]

  init(_ axis: String, _ rows: [Row]) {
    self.axis = axis
    self.rows = rows.sorted { Self.value($0) < Self.value($1) }
  }

  private static func value(_ row: Row) -> Int { row.subject.growth?.value ?? 0 }

  var svg: String {
    let (left, top, width, height) = (60.0, 12.0, 560.0, 180.0)
    let most = rows.map { $0.latency(0.5).median }.max() ?? 0
    // From one value to the next is the same way, as on a logarithmic scale.
    let points = rows.enumerated().map { index, row in
      let x = left + width * Double(index) / Double(max(1, rows.count - 1))
      let y = top + height * (1 - (most > 0 ? row.latency(0.5).median / most : 0))
      return (x: coordinate(x), y: coordinate(y), row: row)
    }
    let marks = points.map { point in
      """
      <circle class="dot" cx="\(point.x)" cy="\(point.y)" r="4"/>\
      <text x="\(point.x)" y="\(point.y + 20)">\(Number.text(point.row.latency(0.5).median))</text>\
      <text class="axis" x="\(point.x)" y="\(top + height + 22)">\(Self.value(point.row))</text>
      """
    }
    return """
      <h3>median time of a request in microseconds, against \(axis)</h3>
      <svg viewBox="0 0 700 230" role="img" aria-label="time of a request against \(axis)">
      <line class="line" x1="\(left)" x2="\(left + width)" y1="\(top + height)" y2="\(top + height)"/>
      <polyline class="curve" points="\(points.map { "\($0.x),\($0.y)" }.joined(separator: " "))"/>
      \(marks.joined(separator: "\n"))
      </svg>
      """
  }
}

private func coordinate(_ value: Double) -> Double { (value * 10).rounded() / 10 }
