package embeddings

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

// DegradedFailed is what a receipt says when the embedder failed.
const DegradedFailed = "embedder failed, words only"

// DegradedNoVectors is what it says when nothing stored can be compared with the
// caller's vector.
const DegradedNoVectors = "no record that may be found has a vector in the embedding space of the query"

// degradedNone is what it says without an embedder.
const degradedNone = "no embedder, words only"

// degradedZero is what it says of a caller's vector without a direction.
const degradedZero = "a vector of zeros is similar to nothing"

// DegradedDimension is what it says when the stored vectors of the embedder's
// space have another dimension than the query's.
const DegradedDimension = "stored vectors have another dimension than the embedder's, words only"

// maybeTurns is how far along its axis a text is at least in which somebody comes to the question,
// as three of four of the long ones in which nobody does are not, and surelyTurns the same for the words
// that do it.
const maybeTurns, surelyTurns = -0.8, 0.9

// Query is what a query brings for the vectors.
type Query struct {
	// Space is the space to search, empty for none, and Vector the query's in it.
	Space  string
	Vector []float32
	// Degraded says what is missing, for the receipt.
	Degraded []string
	// Optional: the caller did not ask for vectors, so words do where vectors do not fit.
	Optional bool
	// Given: they are the caller's, not the embedder's.
	Given bool
	// Turn is where the text comes to its question after it spoke of something else, in
	// bytes; zero where it does not.
	Turn int
}

// Counts is what a receipt says about the vectors of a scope.
type Counts struct {
	// Scanned is how many vectors were looked at, if only as codes.
	Scanned int
	// Rescored is how many of them were compared exactly.
	Rescored int
	// Spaces are the spaces that were searched.
	Spaces []string
	// Mismatch: the vectors of a space have another dimension than the query's.
	Mismatch bool
}

// Query returns the vector of a query, once for all scopes: the caller's
// own, else that of the embedder. In mode Vector it is ErrNone or ErrFailed when there is
// none; in mode Hybrid the words have to do.
func (e *Embeddings) Query(ctx context.Context, q question.Question) (Query, error) {
	switch {
	case q.Mode == question.Lexical:
		return Query{}, nil
	case len(q.Embedding) > 0:
		given := Query{Space: q.EmbeddingSpace, Vector: q.Embedding, Given: true}
		if !slices.ContainsFunc(q.Embedding, func(x float32) bool { return x != 0 }) {
			given.Degraded = []string{degradedZero}
		}
		return given, nil
	case e.embedder == nil && q.Mode == question.Vector:
		return Query{}, ErrNone
	case e.embedder == nil:
		return Query{Degraded: []string{degradedNone}}, nil
	}
	defer e.idle(ctx)()
	limited, stop := context.WithTimeout(ctx, e.timeout)
	defer stop()
	v, err := e.embedQuery(limited, q.Text)
	if err != nil {
		return e.withoutVector(ctx, q, err)
	}
	asked := Query{Space: e.embedder.Space(), Vector: v, Optional: q.Mode != question.Vector}
	e.turn(limited, q.Text, &asked)
	return asked, nil
}

// turn finds where a query comes to its question: "stop, what I really want to ask is". Its vector
// is that of the rest then.
func (e *Embeddings) turn(ctx context.Context, text string, asked *Query) {
	clauses := question.Clauses(text)
	if len(clauses) == 0 {
		return
	}
	axes := e.Axes(ctx)
	if axes == nil || axes.Turn.Of(asked.Vector) < maybeTurns {
		return
	}
	for _, clause := range clauses {
		head, err := e.embedQuery(ctx, clause.Head)
		if err != nil {
			return
		}
		if axes.Turn.Of(head) < surelyTurns {
			continue
		}
		if rest, err := e.embedQuery(ctx, text[clause.At:]); err == nil {
			asked.Turn, asked.Vector = clause.At, rest
		}
		return
	}
}

// withoutVector answers for a query whose vector could not be made. That the
// embedder took too long is not the end of the caller's own time.
func (e *Embeddings) withoutVector(ctx context.Context, q question.Question, err error) (Query, error) {
	switch {
	case q.Mode == question.Vector && ctx.Err() != nil:
		return Query{}, fmt.Errorf("%w: %w", ErrFailed, err)
	case q.Mode == question.Vector:
		return Query{}, fmt.Errorf("%w: %v", ErrFailed, err) //nolint:errorlint // see above
	}
	e.logger.DebugContext(ctx, "memory vectors: query goes on with words", "error", err)
	return Query{Degraded: []string{DegradedFailed}}, nil
}

// embedQuery returns the vector of a query, from memory where it can. If several ask for
// the same at once, as the sources of a prompt do, one has it made and the others wait for it.
func (e *Embeddings) embedQuery(ctx context.Context, text string) ([]float32, error) {
	key := queryKey{e.embedder.Space(), text}
	for {
		if v, ok := e.queries.Get(key); ok {
			return v, nil
		}
		made, release := e.making.Claim(key)
		if release != nil {
			defer release()
			break
		}
		select {
		case <-made: // or failed; then this query tries itself
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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

// Vectors returns the vectors of documents in a space, nil for one without.
func (e *Embeddings) Vectors(ctx context.Context, from kv.Getter, scope kv.Scope, space string, ordinals []uint32) ([][]float32, error) {
	return e.index.Vectors(ctx, from, scope, space, ordinals)
}

// Hits finds the k documents of a scope whose vectors are nearest.
func (e *Embeddings) Hits(ctx context.Context, view kv.Reader, scope kv.Scope, v Query, allowed vector.Allowed, k int) ([]vector.Hit, Counts, error) {
	if v.Space == "" {
		return nil, Counts{}, nil
	}
	// A document never gets another vector: a change of text makes another
	// document. Only Reembed removes vectors of documents that stay.
	found, err := e.index.Search(ctx, view, scope, vector.Query{
		Space: v.Space, Vector: v.Vector, K: k, Allowed: allowed, Settled: true,
	})
	if v.Optional && errors.Is(err, vector.ErrDimension) {
		return nil, Counts{Mismatch: true}, nil
	}
	if err != nil && !v.Given {
		err = ofEmbedder(err)
	}
	if err != nil {
		return nil, Counts{}, err
	}
	if found.Tail > packTail {
		e.packs.Add(scope)
	}
	counts := Counts{Scanned: found.Scanned, Rescored: found.Rescored}
	if found.Scanned > 0 {
		counts.Spaces = []string{v.Space}
	}
	return found.Hits, counts, nil
}

// ofEmbedder returns the error for a vector of the embedder's that does not fit its
// space: the caller gave none, and can't mend it.
func ofEmbedder(err error) error {
	if !errors.Is(err, vector.ErrDimension) {
		return err
	}
	return fmt.Errorf("%w: %v; give the embedder's space another name, then reembed", ErrFailed, err) //nolint:errorlint // see above
}

// queryKey names the vector of a query.
type queryKey struct{ space, text string }
