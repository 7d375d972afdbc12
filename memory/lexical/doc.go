// Package lexical is the index of one scope's records: their words, the values
// that filters ask for, and their facts. It lives in the index keyspace and can be
// rebuilt from the records at any time.
//
//   - A document is what the index knows of a record. It gets an ordinal, its
//     number within the scope in order of arrival. A [Change] adds and deletes
//     documents; a changed record has a new document in the place of the old one.
//   - The newest documents are the tail, one entry each. [Index.Pack] converts it into
//     a segment, and [Index.Merge] several segments into a larger one.
//   - A [Reader] is one state of a scope: package selection filters it, package rank
//     ranks it. A document is found the moment that it is committed.
//
// Caveats: statistics are exact, so no answer depends on packing or caching. An ordinal is
// assigned once within an incarnation of an index. An index of another layout or analysis
// returns [ErrOutdated] until [Index.Rebuild] is done.
package lexical
