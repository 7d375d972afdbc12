package embed

import "context"

// Embedder makes vectors of texts. Implementations are safe for concurrent use.
type Embedder interface {
	// Space names what the vectors can be compared with: provider, model and
	// whatever else changes them. It never changes and calls no server. At most 128
	// bytes.
	Space() string
	// Embed returns one vector for each text, in their order, all of one
	// dimension. On an error there are none.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// QueryEmbedder is an Embedder whose model wants queries marked as such.
type QueryEmbedder interface {
	Embedder
	// EmbedQuery returns the vector of a text that is searched for.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Query returns the vector of a text that is searched for.
func Query(ctx context.Context, e Embedder, text string) ([]float32, error) {
	if q, ok := e.(QueryEmbedder); ok {
		return q.EmbedQuery(ctx, text)
	}
	vectors, err := e.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	if err := checkCount(len(vectors), 1); err != nil {
		return nil, err
	}
	return vectors[0], nil
}
