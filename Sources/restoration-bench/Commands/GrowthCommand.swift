// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// Measures what a request costs, the more there is of something.
struct GrowthCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "growth",
    abstract: "Measure what a request costs, the more there is of something.",
    discussion: """
      objects       of the application; requests are about one after the other
      connections   of others, which have a session in the application
      bytes         of a state
      depth         of the objects in the tree
      children      of one parent; requests are about one after the other
      generations   that the application has been saved as
      applications  with an archive; requests are about one after the other. The
                    files of more than 64 are not open at a time.

      One client encodes and decodes. Each figure is that of a fresh broker.
      """
  )

  /// What there is more of.
  enum Axis: String, CaseIterable, ExpressibleByArgument {
    case objects, connections, bytes, depth, children, generations, applications

    fileprivate var values: [Int] {
      switch self {
      case .objects, .children: [10, 100, 1_000, 10_000]
      case .connections: [1, 10, 100, 1_000]
      case .bytes: [64, 1_024, 16_384, 262_144]
      case .depth: [1, 4, 16, 64]
      case .generations: [1, 4, 16, 64]
      case .applications: [1, 8, 64, 512]
      }
    }
  }

  @OptionGroup var options: CommonOptions

  @Argument(help: "Axes, as listed above; all of them if none is named.")
  var axes: [Axis] = []

  @Option(help: ArgumentHelp("How much there is, instead of what each axis has by itself.", valueName: "numbers"))
  var values: Numbers?

  func validate() throws {
    guard let values, axes.isEmpty || axes.contains(.bytes) else { return }
    guard values.values.allSatisfy({ $0 >= SampleState.leastBytes }) else {
      throw ValidationError("--values must be \(SampleState.leastBytes) or more for bytes, not \(values)")
    }
  }

  func run() throws {
    try options.report("growth") { stage in
      var rows: [Row] = []
      for axis in axes.isEmpty ? Axis.allCases : axes {
        for value in values?.values ?? axis.values {
          for size in axis == .bytes ? [value] : options.size.values {
            Output.tell("\(axis) \(value)")
            rows += try measure(axis, value, size: size, stage)
          }
        }
      }
      Output.tell("")
      return (rows, [], nil)
    }
  }

  private func measure(_ axis: Axis, _ value: Int, size: Int, _ stage: Stage) throws -> [Row] {
    var subject = Subject("", "broker")
    (subject.size, subject.objects) = (size, options.objects)
    subject.growth = Growth(axis.rawValue, value)
    var broker = try options.ownBroker(stage)
    var others: [LineConnection] = []
    switch axis {
    case .objects: subject.objects = value
    // So few that they fit into memory.
    case .bytes: subject.objects = min(options.objects, max(1, (64 << 20) / value))
    case .depth: broker.target.path = Array(repeating: "d", count: value - 1) + broker.target.path
    case .children:
      subject.objects = value
      broker.target.path = ["parent"] + broker.target.path
    case .applications:
      subject.objects = value
      broker.target.application = "\(Requests.application).a\(MessageTemplate.key)"
      broker.target.path = ["window"]
    case .connections:
      others = try (0..<value).map { _ in try LineConnection(broker.socket) }
      for other in others { try other.call("initialize", #"{"application":"\#(Requests.application)"}"#) }
    case .generations: break
    }
    try broker.fill(subject)
    if axis == .generations { try broker.save(subject, times: value) }
    defer { withExtendedLifetime(others) {} }
    return try [Work.encode, .decode].map { work in
      subject.work = "growth of \(work)"
      return Row(subject, [try broker.measure(work, subject, .lines, seconds: options.seconds, requests: nil)])
    }
  }
}
