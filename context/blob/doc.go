// Package blob keeps the bytes that are too long for a prompt, and gives them back
// byte for byte.
//
// A [Store] holds the blobs of all owners, each in its own scope. An [Upload]
// takes bytes in; [Stored] is the outcome of it. An [Entry] is a path that leads to a
// blob; equal bytes of one owner are stored once. A [LinePattern] is what Search looks for
// in the lines of a blob, a [Query] what Find looks for in the archive.
//
// An entry comes with the commit that stages it, may be promoted or archived, expires,
// and is collected (Collect) once nothing refers to it: no open session ([Sessions]),
// no mention of package mention, no lease of a call that runs (Use). Its names then
// give a *CollectedError. What exceeds an owner's quota is a *QuotaError.
//
// Caveats: the chunks of an aborted upload count for no owner and are deleted when they
// are a day old. Every chunk that is read is checked against its hash.
package blob
