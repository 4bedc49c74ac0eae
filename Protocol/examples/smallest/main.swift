import RestorationClient

let session = try await RestorationSession.start("org.example.Note")
let note = try await session.register("Note")
print("saved:", try await session.decode(String.self, for: note) ?? "nothing")
while let line = readLine() { try await session.encode(line, for: note) }
