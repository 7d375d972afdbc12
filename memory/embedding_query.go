package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

const (
	// maxQueryVectors bounds the queries whose vectors are remembered.
	maxQueryVectors = 512
	// packTail: a search that finds a longer tail has it packed.
	packTail = vector.PackAfter
)

// degradedEmbedder is what a receipt says when the embedder failed.
const degradedEmbedder = "embedder failed, words only"

// degradedNoVectors is what it says when nothing stored can be compared with the
// caller's vector.
const degradedNoVectors = "no record that may be found has a vector in the embedding space of the query"

// degradedZero is what it says of a caller's vector without a direction.
const degradedZero = "a vector of zeros is similar to nothing"

// degradedDimension is what it says when the stored vectors of the embedder's
// space have another dimension than the query's.
const degradedDimension = "stored vectors have another dimension than the embedder's, words only"

// queryVectors is what a query brings for the vectors.
type queryVectors struct {
	// spaces are the spaces to search, the one that counts first.
	spaces []spaceVector
	// degraded says what is missing, for the receipt.
	degraded []string
	// optional: the caller did not ask for vectors, so words do where vectors do not fit.
	optional bool
	// given: they are the caller's, not the embedder's.
	given bool
}

type spaceVector struct {
	space  string
	vector []float32
}

// vectorCounts is what a receipt says about the vectors of a scope.
type vectorCounts struct {
	// Scanned is how many vectors were looked at, if only as codes.
	Scanned int
	// Rescored is how many of them were compared exactly.
	Rescored int
	// Spaces are the spaces that were searched.
	Spaces []string
	// Mismatch: the vectors of a space have another dimension than the query's.
	Mismatch bool
}

// queryVectors returns the vectors of a query, once for all scopes: the caller's
// own, else that of the embedder, and during a change of embedders that of the
// one before. In mode Vector it is ErrNoEmbedder or ErrEmbedder when there is
// none; in mode Hybrid the words have to do.
func (s *Store) queryVectors(ctx context.Context, q question.Question) (queryVectors, error) {
	e := s.embeddings
	switch {
	case q.Mode == question.Lexical:
		return queryVectors{}, nil
	case len(q.Embedding) > 0:
		given := queryVectors{spaces: []spaceVector{{q.EmbeddingSpace, q.Embedding}}, given: true}
		if !slices.ContainsFunc(q.Embedding, func(x float32) bool { return x != 0 }) {
			given.degraded = []string{degradedZero}
		}
		return given, nil
	case e.embedder == nil && q.Mode == question.Vector:
		return queryVectors{}, ErrNoEmbedder
	case e.embedder == nil:
		return queryVectors{degraded: []string{degradedNoEmbedder}}, nil
	}
	defer e.idle(ctx)()
	limited, stop := context.WithTimeout(ctx, e.timeout)
	defer stop()
	v, err := e.embedQuery(limited, e.embedder, q.Text)
	if err != nil {
		return e.withoutVector(ctx, q, err)
	}
	found := queryVectors{spaces: []spaceVector{{e.embedder.Space(), v}}, optional: q.Mode != question.Vector}
	if e.previous == nil || e.previous.Space() == e.embedder.Space() {
		return found, nil
	}
	if v, err = e.embedQuery(limited, e.previous, q.Text); err == nil {
		found.spaces = append(found.spaces, spaceVector{e.previous.Space(), v})
	}
	return found, nil
}

// withoutVector answers for a query whose vector could not be made. That the
// embedder took too long is not the end of the caller's own time.
func (e *embeddings) withoutVector(ctx context.Context, q question.Question, err error) (queryVectors, error) {
	switch {
	case q.Mode == question.Vector && ctx.Err() != nil:
		return queryVectors{}, fmt.Errorf("%w: %w", ErrEmbedder, err)
	case q.Mode == question.Vector:
		return queryVectors{}, fmt.Errorf("%w: %v", ErrEmbedder, err) //nolint:errorlint // see above
	}
	e.logger.DebugContext(ctx, "memory vectors: query goes on with words", "error", err)
	return queryVectors{degraded: []string{degradedEmbedder}}, nil
}

// embedQuery returns the vector of a query, from memory where it can.
func (e *embeddings) embedQuery(ctx context.Context, by embed.Embedder, text string) ([]float32, error) {
	key := queryKey{by.Space(), text}
	if v, ok := e.queries.Get(key); ok {
		return v, nil
	}
	v, err := embed.Query(ctx, by, text)
	if err == nil {
		err = vector.Check(v)
	}
	if err != nil {
		return nil, err
	}
	e.queries.Put(key, v, 1)
	return v, nil
}

// vectorHits finds the k documents of a scope whose vectors are nearest.
func (s *Store) vectorHits(ctx context.Context, view kv.Reader, scope kv.Scope, v queryVectors, allowed vector.Allowed, k int) ([]vector.Hit, vectorCounts, error) {
	var counts vectorCounts
	var hits []vector.Hit
	for _, from := range v.spaces {
		// A document never gets another vector: a change of text makes another
		// document. Only Reembed removes vectors of documents that stay, and those
		// have one in the space that is searched first.
		found, err := s.embeddings.index.Search(ctx, view, scope, vector.Query{
			Space: from.space, Vector: from.vector, K: k, Allowed: allowed, Settled: true,
		})
		if v.optional && errors.Is(err, vector.ErrDimension) {
			counts.Mismatch = true
			continue
		}
		if err != nil && !v.given {
			err = ofEmbedder(err)
		}
		if err != nil {
			return nil, vectorCounts{}, err
		}
		if found.Tail > packTail {
			s.embeddings.packs.Add(scope)
		}
		if found.Scanned > 0 {
			counts.Spaces = append(counts.Spaces, from.space)
		}
		counts.Scanned += found.Scanned
		counts.Rescored += found.Rescored
		hits = joinSpaces(hits, found.Hits, k)
	}
	return hits, counts, nil
}

// ofEmbedder returns the error for a vector of the embedder's that does not fit its
// space: the caller gave none, and can't mend it.
func ofEmbedder(err error) error {
	if !errors.Is(err, vector.ErrDimension) {
		return err
	}
	return fmt.Errorf("%w: %v; give the embedder's space another name, then reembed", ErrEmbedder, err) //nolint:errorlint // see above
}

// joinSpaces merges the hits of another space into the hits of the first. Cosines of two
// models are not comparable, so each cosine is scaled: 0 at the last hit of its space, 1 at
// sameness. A document in both keeps its value of the first.
func joinSpaces(first, other []vector.Hit, k int) []vector.Hit {
	if len(first) == 0 || len(other) == 0 {
		return append(first, other...)
	}
	have := make(map[uint32]struct{}, len(first))
	for _, hit := range first {
		have[hit.Ordinal] = struct{}{}
	}
	level, otherLevel := first[len(first)-1].Cosine, other[len(other)-1].Cosine
	for _, hit := range other {
		if _, ok := have[hit.Ordinal]; ok {
			continue
		}
		way := 0.0
		if otherLevel < 1 {
			way = (hit.Cosine - otherLevel) / (1 - otherLevel)
		}
		first = append(first, vector.Hit{Ordinal: hit.Ordinal, Cosine: level + way*(1-level)})
	}
	slices.SortStableFunc(first, func(a, b vector.Hit) int { return cmp.Compare(b.Cosine, a.Cosine) })
	return first[:min(len(first), k)]
}

// queryKey names the vector of a query.
type queryKey struct{ space, text string }
