// Package vector finds the vectors that point most nearly the same way as a
// query's. It keeps them per scope, as they came, in commits of its caller's.
//
// The nouns:
//
//   - A space is what the vectors of one model form: a name and a dimension,
//     which its first vector fixes. A scope holds several; a vector of another
//     dimension is a [DimensionError], and nothing is compared across spaces.
//   - A vector belongs to the ordinal of a document. It is stored whole, and
//     read whole for the exact cosine.
//   - A block is up to a few thousand vectors packed for scanning: their centre,
//     and for each one the signs of its rotated difference from the centre and
//     two numbers that convert those bits into an estimate of the cosine. A block
//     never changes.
//   - The fine codes of a block have a byte for each number of those
//     differences, which makes much better estimates and takes eight times the
//     room.
//   - The tail holds the vectors not packed yet. They are compared exactly.
//
// A search estimates the cosine of everything that is allowed from the signs in
// the blocks, and once more from the fine codes where it can still come among the
// first. Then it reads whole vectors in the order of what their cosine can be at
// best, until none of those left can still come among the first ten: a dozen or
// two. The hits behind have their cosine from the fine codes. Where little is
// allowed it compares all of that exactly.
//
// Recently used data stays in memory, fine codes only if there is room left. Blocks without
// fine codes, including blocks of older versions, are searched too, but more vectors are
// read; fewer where vectors form clusters, as embeddings of language do.
//
// A space that outgrows the scan has its blocks made anew from neighbouring
// vectors, and a search scans the nearest ones only.
//
// Caveats: similarity is the cosine; lengths do not matter, and a vector of
// zeros is similar to nothing. The estimates' error is known as a standard
// deviation, so that a search is exact with high probability, not with
// certainty. Packing is the caller's to call for; without it everything is
// found all the same, only slower.
package vector
