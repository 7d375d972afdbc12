// Package rank finds the best documents for a query among the ones that a Selection allows.
//
// [Rank] answers a [Query] from several [Part]s, one for each scope, as if they
// were one: statistics are summed. A document's rank is the sum of signals: its own
// words by BM25 (turn), the words around it in its session (window), the words of its
// section of the session (session), and its author, date, kind of answer and vector. Age,
// lack of importance and what better hits of its session have shown take a part away. The
// longer a document is, the more its own words count in its window, and the less it lends
// to its neighbours. Where lengths are uneven, long documents are marked down: length must
// not be an advantage. A newer statement comes before what it replaces. The score of a
// [Hit] is from 0 to 1 and says how sure it is that the document answers the query.
//
// Caveats: the weights were set on conversations of two people and of users with an
// assistant; changing one changes answers.
// Answers do not depend on packing, merging or caching.
package rank
