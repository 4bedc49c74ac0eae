// SPDX-License-Identifier: Apache-2.0

/// Rows of text in columns that fit their content and, if needed, the line.
struct TextTable {
  enum Alignment {
    case left, right
  }

  struct Column {
    let title: String
    let alignment: Alignment
    /// Columns it keeps when the table is too wide for the terminal; `nil` if it is never shortened.
    let minimum: Int?

    /// Numbers stand right and are never shortened; text may be, unless `minimum` says otherwise.
    init(_ title: String, _ alignment: Alignment = .left, minimum: Int? = 8) {
      (self.title, self.alignment) = (title, alignment)
      self.minimum = alignment == .right ? nil : minimum.map { max($0, title.columns) }
    }
  }

  /// Text that may stand out.
  struct Cell {
    let text: String
    let colour: Colour?
    /// Characters at the begin of the text that are kept when it is shortened, as long as something of the rest is.
    let leading: Int

    init(_ text: String, _ colour: Colour? = nil, leading: String = "") {
      self.text = leading + text.printable
      self.colour = colour
      self.leading = leading.count
    }

    /// The least columns of what follows the leading characters.
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

  /// The table, one line a row, without spaces at the ends of lines.
  ///
  /// - Parameter width: the columns of a line, if the table can be shortened to it; `nil` for any number.
  func text(header: Bool, width: Int? = Output.width) -> String {
    let lines = header ? [columns.map { Cell($0.title, .bold) }] + rows : rows
    let measures = lines.map { line in line.map(\.text.columns) }
    let widths = fit(columns.indices.map { column in measures.map { $0[column] }.max() ?? 0 }, into: width)
    var text = ""
    for (line, measured) in zip(lines, measures) {
      // Spaces are written once something follows them.
      var spaces = 0
      for (column, cell) in line.enumerated() {
        let isCut = measured[column] > widths[column]
        let content = isCut ? cell.shortened(to: widths[column]) : cell.text
        let padding = widths[column] - (isCut ? content.columns : measured[column])
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

  /// The table, and below it how many rows it has.
  func text(counting name: String, _ legend: LegendOptions) -> String {
    let table = rows.isEmpty ? "" : text(header: !legend.hidesLegend)
    if legend.hidesLegend { return table }
    return table + (rows.isEmpty ? "" : "\n") + Quantity.count(rows.count, name) + ".\n"
  }

  /// Shortens the columns with the most to spare, until all fit or none can be shortened.
  private func fit(_ widths: [Int], into width: Int?) -> [Int] {
    var widths = widths
    guard let width else { return widths }
    var excess = widths.reduce(0, +) + 2 * (widths.count - 1) - width
    while excess > 0 {
      let spare = columns.indices.map { column in columns[column].minimum.map { widths[column] - $0 } ?? 0 }
      guard let widest = spare.indices.max(by: { spare[$0] < spare[$1] }), spare[widest] > 0 else { break }
      widths[widest] -= 1
      excess -= 1
    }
    return widths
  }
}
