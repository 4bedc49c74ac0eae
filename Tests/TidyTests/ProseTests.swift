// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// How the pages are written that users read first.
@Suite struct ProseTests {
  private static let wordsMax = 35
  /// With these a sentence has a clause for its subject, or says who does not do something.
  private static let beginnings = ["Whoever ", "Nobody ", "What is ", "What was "]

  private static func pages() throws -> [SourceFile] {
    let pages = try SourceFile.all("Protocol", ".md").filter { page in
      let folders = page.path.split(separator: "/").dropLast()
      return folders.count == 1 || page.name == "README.md" && (folders[1] == "clients" || folders.count == 2)
    }
    return try pages + [SourceFile("README.md")]
  }

  @Test func sentencesAreShortAndBeginWithTheirSubject() throws {
    let pages = try Self.pages()
    #expect(pages.count > 25)
    for page in pages {
      let sentences = Self.sentences(of: page)
      let long = sentences.filter { $0.split(separator: " ").count > Self.wordsMax }
      let begun = sentences.filter { sentence in Self.beginnings.contains(where: sentence.hasPrefix) }
      #expect(long.isEmpty, "\(page) has sentences of over \(Self.wordsMax) words: \(long)")
      #expect(begun.isEmpty, "\(page): begin with the subject: \(begun)")
    }
  }

  /// Sentences of paragraphs, items and cells. Code between backquotes is a word, and a link is its text.
  static func sentences(of page: SourceFile) -> [String] {
    var paragraphs = [""]
    var isCode = false
    for line in page.lines {
      let text = line.drop { $0 == " " }
      if text.hasPrefix("```") { isCode.toggle() }
      if isCode || text.isEmpty || text.hasPrefix("#") || text.hasPrefix("```") {
        paragraphs.append("")
      } else if text.hasPrefix("|") {
        paragraphs += text.split(separator: "|").map(String.init) + [""]
      } else if text.prefixMatch(of: #/(?:[-*]|\d+\.) /#) != nil {
        paragraphs.append(String(text.drop { $0 != " " }))
      } else {
        paragraphs[paragraphs.count - 1] += " " + text
      }
    }
    return paragraphs.flatMap { paragraph -> [String] in
      let words = paragraph.replacing(/`[^`]*`/, with: "C").replacing(/!?\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }
        .replacing("*", with: "")
      return words.replacing(#/[.!?:·]+ +/#, with: ".\n").split(separator: "\n").map { String($0.drop { $0 == " " }) }
    }
  }
}
