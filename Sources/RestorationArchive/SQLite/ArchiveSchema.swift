// SPDX-License-Identifier: Apache-2.0

/// The tables of an archive file, as `Protocol/archive-format.md` describes them.
enum ArchiveSchema {
  /// `PRAGMA application_id` of every archive: "rstd" in ASCII.
  static let applicationID: Int64 = 0x7273_7464
  /// `PRAGMA user_version`; a file with a higher version is left alone.
  static let version: Int64 = 2

  /// Set before the first table, because they shape the file.
  static let shape = """
    PRAGMA page_size = 4096;
    PRAGMA auto_vacuum = INCREMENTAL;
    """

  /// Set on each connection, once its file is known to be an archive of this version.
  static let settings = """
    PRAGMA synchronous = FULL;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA secure_delete = ON;
    PRAGMA cache_size = -1000;
    """

  /// Tables that the first archives of format 1 lack; opening adds them.
  static let additions = """
    CREATE TABLE IF NOT EXISTS withheld (sequence INTEGER PRIMARY KEY, node INTEGER, since INTEGER);
    CREATE TABLE IF NOT EXISTS unclosed (id INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS damage (id INTEGER PRIMARY KEY, text TEXT)
    """

  /// Columns that archives of format 1 lack.
  static let checksums = """
    ALTER TABLE node ADD COLUMN checksum INTEGER;
    ALTER TABLE context ADD COLUMN checksum INTEGER
    """

  /// Small columns come first and texts last, so that reading the small ones touches no overflow page.
  static let tables = """
    CREATE TABLE archive (id INTEGER PRIMARY KEY, uuid TEXT, keyId TEXT, format INTEGER);
    CREATE TABLE tip (
      id INTEGER PRIMARY KEY, sequence INTEGER, changeHigh INTEGER, changeLow INTEGER, lastNode INTEGER,
      lastContext INTEGER, lastSession INTEGER, lastGeneration INTEGER, pinned INTEGER, written INTEGER,
      content INTEGER
    );
    CREATE TABLE state (
      sequence INTEGER PRIMARY KEY, node INTEGER, context INTEGER, session INTEGER, revision INTEGER,
      written INTEGER, bytes INTEGER, checksum INTEGER, links TEXT, text TEXT, elements TEXT
    );
    CREATE TABLE early (sequence INTEGER PRIMARY KEY);
    \(additions);
    CREATE TABLE node (
      sequence INTEGER PRIMARY KEY, node INTEGER, parent INTEGER, kind INTEGER, keepsForever INTEGER,
      isConfidential INTEGER, isRemoved INTEGER, successor INTEGER, bytes INTEGER, component TEXT, classes TEXT,
      restorationClass TEXT, storyboard TEXT, checksum INTEGER
    );
    CREATE TABLE emptied (sequence INTEGER PRIMARY KEY);
    CREATE TABLE generation (
      sequence INTEGER PRIMARY KEY, generation INTEGER, committed INTEGER, objects INTEGER, bytes INTEGER,
      kind TEXT, omitted TEXT
    );
    CREATE TABLE context (context INTEGER PRIMARY KEY, text TEXT, checksum INTEGER);
    CREATE TABLE session (
      session INTEGER PRIMARY KEY, ended INTEGER, restorationsAtEnd INTEGER, token TEXT, ending TEXT, facts TEXT
    );
    CREATE TABLE claim (
      node INTEGER PRIMARY KEY, session INTEGER, handle INTEGER, released INTEGER, restorationsAtRelease INTEGER
    );
    CREATE TABLE run (id INTEGER PRIMARY KEY, run INTEGER, restorations INTEGER, facts TEXT);
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    """
}

enum ArchiveStatement: Int, CaseIterable {
  case begin, noteUnclosed, commit, rollBack
  case insertState, insertEarly, insertNode, insertEmptied, insertContext, insertGeneration, insertWithheld
  case writeTip, writeSession, writeClaim, writeRun
  case deleteStates, deleteEarly, deleteNode, deleteEmptied, deleteContext, deleteGeneration, deleteSession, deleteClaim
  case deleteWithheld, deleteDamage
  case readState, readNode

  /// Whether it needs the columns that archives of format 1 lack.
  var usesChecksums: Bool { [.insertNode, .insertContext, .readNode].contains(self) }

  var sql: String {
    switch self {
    case .begin: "BEGIN IMMEDIATE"
    case .noteUnclosed: "REPLACE INTO unclosed VALUES (1)"
    case .commit: "COMMIT"
    case .rollBack: "ROLLBACK"
    case .insertState: "INSERT INTO state VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    case .insertEarly: "INSERT INTO early VALUES (?1)"
    case .insertNode: "INSERT INTO node VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    case .insertEmptied: "INSERT INTO emptied VALUES (?1)"
    case .insertContext: "INSERT INTO context VALUES (?1, ?2, ?3)"
    case .insertGeneration: "INSERT INTO generation VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    case .insertWithheld: "INSERT INTO withheld VALUES (?1, ?2, ?3)"
    case .writeTip:
      """
      UPDATE tip SET sequence = ?1, changeHigh = ?2, changeLow = ?3, lastNode = ?4, lastContext = ?5,
      lastSession = ?6, lastGeneration = ?7, pinned = ?8, written = ?9, content = ?10 WHERE id = 1
      """
    case .writeSession: "REPLACE INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    case .writeClaim: "REPLACE INTO claim VALUES (?1, ?2, ?3, ?4, ?5)"
    case .writeRun: "REPLACE INTO run VALUES (1, ?1, ?2, ?3)"
    case .deleteStates: "DELETE FROM state WHERE sequence BETWEEN ?1 AND ?2"
    case .deleteEarly: "DELETE FROM early WHERE sequence = ?1"
    case .deleteNode: "DELETE FROM node WHERE sequence = ?1"
    case .deleteEmptied: "DELETE FROM emptied WHERE sequence = ?1"
    case .deleteContext: "DELETE FROM context WHERE context = ?1"
    case .deleteGeneration: "DELETE FROM generation WHERE generation = ?1"
    case .deleteSession: "DELETE FROM session WHERE session = ?1"
    case .deleteClaim: "DELETE FROM claim WHERE node = ?1"
    case .deleteWithheld: "DELETE FROM withheld WHERE sequence = ?1"
    case .deleteDamage: "DELETE FROM damage"
    case .readState:
      """
      SELECT node, context, session, revision, written, checksum, text, links, elements, bytes
      FROM state WHERE sequence = ?1
      """
    case .readNode:
      "SELECT \(CheckedRow.node.columns), checksum FROM node WHERE sequence = ?1"
    }
  }
}
