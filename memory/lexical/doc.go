// Package lexical is the index of one scope's records by their words, by the
// values that filters ask for, and by what stands beside them: session, author,
// times. It lives in the index keyspace and can be rebuilt from the records at
// any time.
//
// The nouns:
//
//   - A [Document] is what the index knows of a record as it is now: its words
//     with their frequencies, its values, its [Facts]. It gets an ordinal, its
//     number within the scope in order of arrival. A [Change] adds documents
//     and lets others die; a changed record has a new document, in the place of
//     the old one.
//   - An entry is a stored document as it came. The newest entries are the
//     tail: a save writes one entry, the count of its session and the head.
//   - A segment is the packed form of many documents: their terms in order,
//     each with the ordinals it stands in, in chunks of a few KiB. A segment
//     never changes. [Index.Pack] turns the tail into a segment, and
//     [Index.Merge] turns several segments into a larger one, in time
//     proportional to what they read, so every document is rewritten about as
//     often as its scope has levels. Both leave out the dead.
//   - A row is what is known of a document besides its terms, a frame the rows
//     of all documents of one state, with neighbours and sums. Frames are kept
//     in memory; the next state's frame costs what is new in it. A document has
//     its row in a slot, a number within the frame, so that the dead need none.
//   - A [Reader] is one state of a scope, opened on a view. A [Selection] says
//     which of its documents may be hits, and [Index.Rank] finds the best among
//     those of several readers for a [Query]. A document is found the moment
//     that it is committed.
//
// Statistics are exact: they change in the commit that adds a document or lets
// one die, and how many documents hold a term is counted by every query among
// the living. So nothing of an answer depends on what is packed, merged or
// remembered.
//
// Caveats: an ordinal is never given twice within one incarnation of an index;
// those of the dead cost a bit each on disk and next to nothing in memory. What
// died stays in segments until they are merged or written anew, which happens
// when a fifth of a segment is dead. An index with an older layout, or
// with terms that came from another analysis than Options.Analysis, answers
// [ErrOutdated] until [Index.Rebuild] has made it anew.
package lexical
