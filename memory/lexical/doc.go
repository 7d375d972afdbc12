// Package lexical is the index of one scope's records by their words and by
// the values that filters ask for. It lives in the index keyspace and can be
// rebuilt from the records at any time.
//
// The nouns:
//
//   - A [Document] is what the index knows of a record: its words with their
//     frequencies, its values, its lengths. It gets an ordinal, its number
//     within the scope in order of arrival.
//   - An entry is a stored document as it came. The newest entries are the
//     tail: a save writes one entry and the statistics, nothing else.
//   - A segment is the packed form of many documents: their terms in order,
//     each with the ordinals it stands in, in chunks of a few KiB. A segment
//     never changes. [Index.Pack] turns the tail into a segment, and
//     [Index.Merge] turns several segments into a larger one, in time
//     proportional to what they read, so every document is rewritten about as
//     often as its scope has levels.
//   - A [Query] reads the chunks that hold its terms and scans the tail, all in
//     one view, so that it finds a document the moment that is committed.
//
// Statistics are exact: counts and lengths are raised in the commit that adds a
// document, and how many documents hold a term is counted by every query.
//
// Caveats: documents are added, never taken away. Packing moves and rewrites
// bytes but changes no answer.
package lexical
