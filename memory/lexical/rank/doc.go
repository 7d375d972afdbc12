// Package rank finds the best documents for a query among those that a Selection
// allows.
//
// [Rank] answers a [Query] from several [Part]s, one for each scope, as if they
// were one: statistics are summed. A document's rank is the sum of signals: its own
// words by BM25 (turn), the words around it in its session (window), those of its part of
// the session, and its author, date, kind of answer and vector. Age, lack of importance and
// what better hits of its session have shown take a part away. The longer a document is,
// the more its own words count for those around it, the less it lends to its neighbours,
// and where lengths are uneven the more it is marked down: who speaks at length gains
// nothing by it. The score of a [Hit] is from 0 to 1 and says how sure it is
// that what was asked for was found.
//
// Caveats: the weights were set on conversations of two people and of users with an
// assistant; changing one changes answers.
// Nothing of an answer depends on what is packed, merged or cached.
package rank
