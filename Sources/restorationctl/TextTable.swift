// SPDX-License-Identifier: Apache-2.0

/// Rows of text in columns that are as wide as they need to be.
struct TextTable {
  enum Alignment {
    case left, right
  }

  struct Column {
    let title: String
    let alignment: Alignment

    init(_ title: String, _ alignment: Alignment = .left) {
      self.title = title
      self.alignment = alignment
    }
  }

  let columns: [Column]
  private(set) var rows: [[String]] = []

  init(_ columns: [Column]) {
    self.columns = columns
  }

  /// Adds a row with one text for each column.
  mutating func add(_ row: [String]) {
    rows.append(row)
  }

  /// The table, one line a row, without spaces at the ends of lines.
  func text(header: Bool) -> String {
    let lines = header ? [columns.map(\.title)] + rows : rows
    let widths = columns.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    return lines.map { line in
      let cells = columns.indices.map { column in
        let padding = String(repeating: " ", count: widths[column] - line[column].count)
        return columns[column].alignment == .left ? line[column] + padding : padding + line[column]
      }
      return cells.joined(separator: "  ").trimmingSpacesAtEnd + "\n"
    }.joined()
  }
}

extension String {
  fileprivate var trimmingSpacesAtEnd: String {
    String(self[..<(lastIndex { $0 != " " }.map { index(after: $0) } ?? startIndex)])
  }
}
