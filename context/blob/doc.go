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
//   - A [Pattern] is what Search looks for in the lines of a blob, a [Query] what
//     Find looks for in the archive.
//   - [Referrers] are those outside this package who need blobs: sessions and
//     memory records.
//
// The life of a blob: it is created by a commit that stages its entry, and
// registered by it (List). It is referred to by steps and texts, and read back
// (Lookup, Read, Search). It may be promoted to another tier (Promote) or put
// into the archive (Archive). In its time it expires, which only marks it. Then
// it is collected (Collect), once nobody refers to it. What was collected leaves
// word under each of its names (*CollectedError).
//
// An owner has a quota: what exceeds it is a *QuotaError, after the owner's
// garbage was collected.
//
// Caveats: the chunks of an upload that is given up are found by nobody, do not
// count, and are swept when they are a day old. A name in a text is any way to
// write the name that Lookup takes; a collection rather keeps one blob too many.
// Reading changes nothing. Every chunk is checked against its hash before its
// bytes are handed out.
package blob
