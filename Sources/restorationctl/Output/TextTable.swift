// SPDX-License-Identifier: Apache-2.0

/// Rows of text in columns that fit their content and, if needed, the line: text is shortened, columns are left out.
struct TextTable {
  enum Alignment {
    case left, right
  }

  struct Column {
    let title: String
    let alignment: Alignment
    /// The least columns when the table is too wide; `nil` if the column is never shortened.
    let minimum: Int?
    /// The order in which columns are left out if shortening is not enough; `nil`: never.
    let yields: Int?

    /// Numbers are aligned right and never shortened; text may be, unless `minimum` is `nil`.
    init(_ title: String, _ alignment: Alignment = .left, minimum: Int? = 8, yields: Int? = nil) {
      (self.title, self.alignment, self.yields) = (title, alignment, yields)
      self.minimum = alignment == .right ? nil : minimum.map { max($0, title.columns) }
    }
  }

  struct Cell {
    let text: String
    let colour: Colour?
    /// Leading characters that are kept when the text is shortened, as long as some of the rest fits.
    let leading: Int

    init(_ text: String, _ colour: Colour? = nil, leading: String = "") {
      self.text = leading + text.printable
      self.colour = colour
      self.leading = leading.count
    }

    /// The least columns of the text after the leading characters.
    private static let restMin = 6

    fileprivate func shortened(to width: Int) -> String {
      let room = width - leading
      guard room >= Self.restMin else { return text.shortened(to: width, .begin) }
      return String(text.prefix(leading)) + String(text.dropFirst(leading)).shortened(to: room)
    }
  }

  let columns: [Column]
  private var rows: [[Cell]] = []

  init(_ columns: [Column]) { self.columns = columns }

  mutating func add(_ row: [String]) { rows.append(row.map { Cell($0) }) }

  mutating func add(_ row: [Cell]) { rows.append(row) }

  /// One line a row, without spaces at the ends of lines.
  ///
  /// - Parameter width: the columns of a line; `nil` for any number.
  func text(header: Bool, width: Int? = Output.width) -> String {
    let lines = header ? [columns.map { Cell($0.title, .bold) }] + rows : rows
    let measures = lines.map { line in line.map(\.text.columns) }
    let widths = fit(columns.indices.map { column in measures.map { $0[column] }.max() ?? 0 }, into: width)
    var text = ""
    for (line, measured) in zip(lines, measures) {
      // Spaces are written once text follows them.
      var spaces = 0
      for (column, cell) in line.enumerated() {
        guard let width = widths[column] else { continue }
        let isCut = measured[column] > width
        let content = isCut ? cell.shortened(to: width) : cell.text
        let padding = width - (isCut ? content.columns : measured[column])
        if columns[column].alignment == .right { spaces += padding }
        if !content.isEmpty {
          text += String(repeating: " ", count: spaces) + (cell.colour?.paint(content) ?? content)
          spaces = 0
        }
        if columns[column].alignment == .left { spaces += padding }
        spaces += 2
      }
      text += "\n"
    }
    return text
  }

  /// The table, followed by the number of its rows.
  func text(counting name: String, _ legend: LegendOptions) -> String {
    let table = rows.isEmpty ? "" : text(header: !legend.hidesLegend)
    if legend.hidesLegend { return table }
    return table + (rows.isEmpty ? "" : "\n") + Quantity.count(rows.count, name) + ".\n"
  }

  /// Leaves out columns until the others can fit, then shortens those with the most to spare until they do.
  ///
  /// - Returns: the columns of each; `nil` if it is left out.
  private func fit(_ measured: [Int], into width: Int?) -> [Int?] {
    var widths = measured
    guard let width else { return widths }
    var shown = Array(columns.indices)
    func spare(_ column: Int) -> Int { columns[column].minimum.map { max(0, widths[column] - $0) } ?? 0 }
    func excess(spared: Bool) -> Int {
      shown.reduce(2 * (shown.count - 1) - width) { $0 + widths[$1] - (spared ? spare($1) : 0) }
    }
    while excess(spared: true) > 0, let next = shown.compactMap({ columns[$0].yields }).min() {
      shown.removeAll { columns[$0].yields == next }
    }
    while excess(spared: false) > 0 {
      guard let widest = shown.max(by: { spare($0) < spare($1) }), spare(widest) > 0 else { break }
      widths[widest] -= 1
    }
    return columns.indices.map { shown.contains($0) ? widths[$0] : nil }
  }
}

extension [String] {
  /// Joined by commas, in lines of at most `width` columns; `nil` for any number.
  func listed(within width: Int? = Output.width) -> String {
    var (text, column) = ("", 0)
    for (index, item) in enumerated() {
      let item = index < count - 1 ? item + "," : item
      if index > 0 {
        let fits = width.map { column + 1 + item.columns <= $0 } ?? true
        text += fits ? " " : "\n"
        column = fits ? column + 1 : 0
      }
      text += item
      column += item.columns
    }
    return text
  }
}
