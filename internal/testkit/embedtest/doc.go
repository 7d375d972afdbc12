// Package embedtest stands in for embedding servers and their models in tests
// and measurements, without a download: an [LSA] makes vectors of texts from a
// corpus of them, so that texts on the same things come to lie near each other,
// and a [Server] serves any embedder's vectors in the OpenAI protocol, as slowly
// and as unreliably as a test wants.
//
// Caveats: an LSA knows the words of its corpus only, and is no match for a real
// model. Nothing here belongs into a server that serves people.
package embedtest
