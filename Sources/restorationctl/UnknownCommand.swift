// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

enum UnknownCommand {
  /// Suggests a similar command, as the parser does for options; `nil` if the error has another cause.
  static func error(_ error: any Error, _ arguments: [String]) -> ValidationError? {
    var words = words(in: arguments.dropFirst())
    // The parser answers `help` of an unknown command with the help of the whole tool.
    let isAskedForHelp = words.first == "help"
    if isAskedForHelp { words.removeFirst() }
    guard isAskedForHelp || Control.exitCode(for: error) == ExitStatus.usage, let name = words.first else { return nil }
    let known = Control.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    guard !known.contains(name) else { return nil }
    let suggestion = Suggestion.nearest(to: name, in: known).map { " Did you mean '\($0)'?" } ?? ""
    return ValidationError("Unknown command '\(name)'.\(suggestion)")
  }

  /// The arguments that are neither options nor values of options that all commands have.
  private static func words(in arguments: ArraySlice<String>) -> [String] {
    let takesValue: Set<String> = ["--socket", "--json", "--timeout"]
    var words: [String] = []
    var isValue = false
    for argument in arguments {
      if isValue {
        isValue = false
      } else if argument.hasPrefix("-") {
        isValue = takesValue.contains(argument)
      } else {
        words.append(argument)
      }
    }
    return words
  }
}

enum Suggestion {
  /// Names for a hint; of many, only the first.
  static func list(_ names: [String]) -> String {
    if names.isEmpty { return "nothing" }
    let rest = names.count > 8 ? " and \(names.count - 8) more" : ""
    return names.prefix(8).map { $0.shortened(to: 40) }.joined(separator: ", ") + rest
  }

  /// The most similar name, if few letters differ in the part that is not common: all applications of a domain begin
  /// alike.
  static func nearest(to name: String, in names: [String]) -> String? {
    // The same name is known elsewhere, as one of another host is.
    let near = names.filter { $0 != name }.compactMap { other -> (name: String, distance: Int)? in
      let common = commonBegin(name, other)
      let (left, right) = (String(name.dropFirst(common)), String(other.dropFirst(common)))
      let (distance, shorter) = (distance(left, right), min(left.count, right.count))
      return distance <= max(1, shorter / 3) && distance < shorter ? (other, distance) : nil
    }
    return near.min { $0.distance < $1.distance }?.name
  }

  /// The instances of a name, if it has any: a program that runs several times has no archive without an instance.
  static func application(meantBy name: String, in known: [String]) -> String? {
    let instances = known.filter { $0.hasPrefix(name + "@") }
    return instances.isEmpty ? nearest(to: name, in: known) : list(instances)
  }

  /// Warns a person about a new name that resembles an existing one. Does not warn scripts, or about names that differ
  /// only in a number.
  static func noteNew(_ name: String, _ place: String = "", known: [String]) {
    let others = known.filter { !$0.filter { !$0.isNumber }.elementsEqual(name.filter { !$0.isNumber }) }
    guard Terminal.hasReader, let near = nearest(to: name, in: others) else { return }
    Output.complain("\(name) is new\(place); did you mean \(near)?".printable)
  }

  /// The length of the common leading components.
  private static func commonBegin(_ left: String, _ right: String) -> Int {
    let common = zip(left, right).prefix { $0 == $1 }.map(\.0)
    return common.lastIndex { "./".contains($0) }.map { $0 + 1 } ?? 0
  }

  /// Letters to insert, remove, replace or swap (optimal string alignment).
  private static func distance(_ left: String, _ right: String) -> Int {
    let left = Array(left.lowercased())
    let right = Array(right.lowercased())
    var former: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (left[i] == right[j] ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { best = min(best, former[j - 1] + 1) }
        row.append(best)
      }
      former = last
      last = row
    }
    return last[right.count]
  }
}
