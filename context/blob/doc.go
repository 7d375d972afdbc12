// Package blob keeps the bytes that are too long for a prompt, and gives them
// back byte for byte.
//
// The nouns:
//
//   - A [Store] holds the blobs of all owners. Each owner is one scope of the
//     blobs keyspace; nothing is ever shared between two.
//   - An [Upload] takes bytes in. A body of one chunk stays in memory until it
//     is staged; the chunks of a longer one are written ahead, not synced, while
//     its source still runs.
//   - [Stored] is what an upload became: its hash, its size, what it looks like.
//   - An [Entry] is a path that leads to a blob. Equal bytes of one owner are
//     stored once; every path is an entry of its own.
//
// A blob exists from the commit that stages its entry on. The chunks of an
// upload that is given up are found by nobody and wait for garbage collection.
//
// Reading changes nothing. Every chunk is checked against its hash before its
// bytes are handed out.
package blob
