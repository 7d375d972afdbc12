// Package peers searches the same texts with other engines of full-text search, in a Python
// of the caller's: SQLite's FTS5, which Python brings, and tantivy, bm25s, LanceDB and
// PostgreSQL where they are installed.
package peers
