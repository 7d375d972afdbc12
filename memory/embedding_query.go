package memory

import (
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
	// space is the space to search, empty for none, and vector the query's in it.
	space  string
	vector []float32
	// degraded says what is missing, for the receipt.
	degraded []string
	// optional: the caller did not ask for vectors, so words do where vectors do not fit.
	optional bool
	// given: they are the caller's, not the embedder's.
	given bool
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

// queryVectors returns the vector of a query, once for all scopes: the caller's
// own, else that of the embedder. In mode Vector it is ErrNoEmbedder or ErrEmbedder when there is
// none; in mode Hybrid the words have to do.
func (s *Store) queryVectors(ctx context.Context, q question.Question) (queryVectors, error) {
	e := s.embeddings
	switch {
	case q.Mode == question.Lexical:
		return queryVectors{}, nil
	case len(q.Embedding) > 0:
		given := queryVectors{space: q.EmbeddingSpace, vector: q.Embedding, given: true}
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
	v, err := e.embedQuery(limited, q.Text)
	if err != nil {
		return e.withoutVector(ctx, q, err)
	}
	return queryVectors{space: e.embedder.Space(), vector: v, optional: q.Mode != question.Vector}, nil
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

// embedQuery returns the vector of a query, from memory where it can. Of those who ask for the
// same at once, as the sources of a prompt do, one has it made and the others wait for it.
func (e *embeddings) embedQuery(ctx context.Context, text string) ([]float32, error) {
	key := queryKey{e.embedder.Space(), text}
	for {
		if v, ok := e.queries.Get(key); ok {
			return v, nil
		}
		made, first := e.begin(key)
		if first {
			break
		}
		select {
		case <-made: // or failed; then this query tries itself
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer e.end(key)
	v, err := embed.Query(ctx, e.embedder, text)
	if err == nil {
		err = vector.Check(v)
	}
	if err != nil {
		return nil, err
	}
	e.queries.Put(key, v, 1)
	return v, nil
}

// begin reports whether the caller is the one who makes the vector of a query. It calls end then;
// else made is closed when the vector is made or failed.
func (e *embeddings) begin(key queryKey) (made <-chan struct{}, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if running, ok := e.making[key]; ok {
		return running, false
	}
	e.making[key] = make(chan struct{})
	return nil, true
}

func (e *embeddings) end(key queryKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.making[key])
	delete(e.making, key)
}

// vectorHits finds the k documents of a scope whose vectors are nearest.
func (s *Store) vectorHits(ctx context.Context, view kv.Reader, scope kv.Scope, v queryVectors, allowed vector.Allowed, k int) ([]vector.Hit, vectorCounts, error) {
	if v.space == "" {
		return nil, vectorCounts{}, nil
	}
	// A document never gets another vector: a change of text makes another
	// document. Only Reembed removes vectors of documents that stay.
	found, err := s.embeddings.index.Search(ctx, view, scope, vector.Query{
		Space: v.space, Vector: v.vector, K: k, Allowed: allowed, Settled: true,
	})
	if v.optional && errors.Is(err, vector.ErrDimension) {
		return nil, vectorCounts{Mismatch: true}, nil
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
	counts := vectorCounts{Scanned: found.Scanned, Rescored: found.Rescored}
	if found.Scanned > 0 {
		counts.Spaces = []string{v.space}
	}
	return found.Hits, counts, nil
}

// ofEmbedder returns the error for a vector of the embedder's that does not fit its
// space: the caller gave none, and can't mend it.
func ofEmbedder(err error) error {
	if !errors.Is(err, vector.ErrDimension) {
		return err
	}
	return fmt.Errorf("%w: %v; give the embedder's space another name, then reembed", ErrEmbedder, err) //nolint:errorlint // see above
}

// queryKey names the vector of a query.
type queryKey struct{ space, text string }
