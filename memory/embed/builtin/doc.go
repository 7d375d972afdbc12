// Package builtin makes vectors of texts inside the server: with Google's Universal
// Sentence Encoder multilingual v3, of 16 languages and 512 numbers, from one file next to
// the binary. It calls no server, and no text leaves the process.
//
// The nouns:
//
//   - A [Model] is the embedder. It maps its file at the first use.
//   - The file is what `make model` writes: a row of the table for each piece of a word,
//     the pieces as a tree, the map that normalises characters, and the weights.
//   - Pieces are what a text is cut into, by the best sum of their scores (SentencePiece's
//     unigram model).
//   - The network is a look-up, three convolutions over 2, 3 and 5 pieces, a sum, and
//     four dense layers.
//
// Caveats: the languages are Arabic, Chinese, Dutch, English, French, German, Italian,
// Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish; in others near
// means little. A long text is the mean of its first passages. The file must stay as it is
// while it is mapped: replace it by renaming another, never by writing into it.
package builtin
