// Package analysis cuts text into the terms that an index stores and a query
// asks for. Index and query use the same [Analyzer], so that they meet.
//
// A term is made like this:
//
//   - Text is normalized (NFKC) and case-folded, then cut into words after
//     Unicode's rules. Text in ASCII takes a shorter way to the same terms.
//   - A possessive 's falls away. English stop words fall away, unless a text
//     has no other word. English words are cut to their stem.
//   - Runs of Han, Kana and Hangul become overlapping pairs of characters; a
//     lone character stands for itself.
//   - Identifiers are kept whole and split: getUserName is also get, user,
//     name; src/app.py is also src, app.py, app, py; v1.2.3 is also v1, 2, 3.
//   - Numbers lose their thousands separators: 45,000 is 45000.
//
// Caveats: the stemmer and the stop words are English; other languages are
// matched word for word. What the terms of a text are is part of the index
// format: a change needs a new index generation.
package analysis
