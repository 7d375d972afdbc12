// Package segment has the stored form of a scope's index: what stands under which
// key, and the codec of every piece. memory/FORMAT.md describes the bytes.
//
//   - A [Document] is encoded as an [Entry], which holds its terms and its [Row].
//   - A segment is many documents inverted, from terms by document to documents
//     by term: a [Writer] writes chunks of [Block]s of [Posting]s, whose first
//     terms are the directory. A [Cursor] walks through them in order, and
//     [FindBlocks] finds one term in a chunk.
//   - Ids and rows of packed documents stand in blocks of neighbours; the deleted
//     are a [DeletedSet]; [Head] and [List] say what is valid.
//
// Caveats: decoders alias their input, take any bytes and answer [ErrDamaged] or
// [ErrNewer]. What is decoded must not be changed.
package segment
