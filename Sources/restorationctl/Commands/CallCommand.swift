// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient

struct CallCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "call",
    abstract: "Make any call of the protocol and print its result.",
    usage: "restorationctl call [<option> ...] <method> [<json>]",
    discussion: """
      Examples:
        restorationctl call limits
        restorationctl call listGenerations '{"application":"org.example.Notes"}'
        restorationctl call encodeRestorableState - < parameters.json
        restorationctl call --json=pretty statistics | less

      The result is JSON: pretty on a terminal, on one line in a pipe. Numbers are
      printed with the digits the broker sent. An error goes to standard error and
      gives exit status 1. A parameter that the broker does not know is refused
      before the call is made.
      """
  )

  @OptionGroup var options: CommonOptions

  @Argument(help: "The method: restorationctl methods lists them.", completion: .calls)
  var method: String

  @Argument(
    help: ArgumentHelp("The parameters, an object or array; - reads them from standard input.", valueName: "json")
  )
  var parameters: String?

  func run() async throws {
    let parameters = self.parameters == "-" ? try Output.readInput() : self.parameters
    let names = try parameters.map(names) ?? []
    try await withBroker { broker in
      // The broker ignores unknown parameters, so that later versions can add some; here they are more likely typing
      // errors.
      if !names.isEmpty, let unknown = try? await MethodCatalogue(broker).unknownParameter(among: names, of: method) {
        throw unknown
      }
      do {
        let result = try await broker.call(method, parameters)
        try (output.layout ?? OutputOptions.usualLayout).print(result)
      } catch let error as RestorationError where error.code == .methodNotFound {
        throw try await MethodCatalogue(broker).unknown(method)
      }
    }
  }

  /// Invalid text is an error of the command line, whether a broker runs or not.
  ///
  /// - Returns: the names of the parameters, if they are given by name.
  private func names(_ parameters: String) throws -> [String] {
    let text: String
    do {
      text = try JSONLayout.compact.format(parameters)
    } catch let error as RestorationError {
      throw Self.wrong(error.message)
    }
    guard text.hasPrefix("{") || text.hasPrefix("[") else {
      throw Self.wrong("the parameters are neither a JSON object nor an array")
    }
    return (try? JSONSlice.read(text, subject: "the parameters", hint: ""))?.members?.map(\.name) ?? []
  }

  private static func wrong(_ message: String) -> Failure {
    Failure(
      ExitStatus.usage,
      kind: "usage",
      message,
      hint: #"Give JSON as one argument, such as '{"application":"org.example.Notes"}', or - and JSON as input."#
    )
  }
}
