package memory

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// maxQueryWords bounds the different words of a query that are searched. A
// question has a dozen; a text pasted into a query has its first words count.
const maxQueryWords = 256

// What a receipt can say is missing.
const (
	degradedNoEmbedder = "no embedder, words only"
	degradedNoWords    = "no words to search for in the query"
	degradedCut        = "only the first 256 words of the query were searched"
)

// Query finds the records that fit best, none of them expired or superseded.
// All that it reads stands in one snapshot, which holds every save that was
// acknowledged before the call.
//
// Errors: *InvalidError, *FilterError, ErrNoEmbedder.
func (s *Store) Query(ctx context.Context, scope kv.Scope, q Query) (Result, error) {
	if err := s.begin(scope); err != nil {
		return Result{}, err
	}
	if err := checkQuery(q); err != nil {
		return Result{}, err
	}
	conditions, err := parseFilter(q.Filter)
	if err != nil {
		return Result{}, err
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	var result Result
	err = s.view(ctx, func(view kv.Snapshot) error {
		result, err = s.search(ctx, view, scope, q, conditions)
		return err
	})
	if err != nil {
		return Result{}, wrap("memory: query", err)
	}
	return result, nil
}

func (s *Store) search(ctx context.Context, view kv.Snapshot, scope kv.Scope, q Query, conditions []condition) (Result, error) {
	words, degraded := s.queryWords(q)
	sequences, err := view.Sequence(ctx, lexical.Ref(scope))
	if err != nil {
		return Result{}, err
	}
	filter, err := resolve(ctx, view, scope, conditions)
	if err != nil {
		return Result{}, err
	}
	answer, err := s.index.Search(ctx, view, scope, lexical.Query{
		Words: words, Filter: filter, Now: s.now().UnixMicro(), Limit: q.Limit, MinScore: q.MinScore,
	})
	if err != nil {
		return Result{}, err
	}
	s.packer.read(scope, answer.Statistics)
	hits, err := readHits(ctx, view, scope, answer.Hits)
	if err != nil {
		return Result{}, err
	}
	return Result{Hits: hits, Receipt: Receipt{
		LexicalCandidates: answer.Candidates,
		Filtered:          answer.Filtered,
		Expired:           answer.Expired,
		Superseded:        answer.Superseded,
		UnderMinScore:     answer.UnderMinScore,
		Records:           int64(answer.Statistics.Documents),
		IndexSequence:     sequences[0],
		Degraded:          degraded,
	}}, nil
}

// queryWords returns the different words of a query in their order.
func (s *Store) queryWords(q Query) (words []lexical.QueryWord, degraded []string) {
	if q.Mode == Hybrid {
		degraded = append(degraded, degradedNoEmbedder)
	}
	places := make(map[string]int)
	for word := range s.analyzer.Terms(q.Text) {
		i, ok := places[word]
		if !ok && len(words) == maxQueryWords {
			return words, append(degraded, degradedCut)
		}
		if !ok {
			i = len(words)
			places[word] = i
			words = append(words, lexical.QueryWord{Text: word})
		}
		words[i].Count++
	}
	if len(words) == 0 {
		degraded = append(degraded, degradedNoWords)
	}
	return words, degraded
}

// resolve turns conditions into those of the index. Id and key become the
// number of the record that has them; a name that nobody has matches nothing.
func resolve(ctx context.Context, view getter, scope kv.Scope, conditions []condition) ([]lexical.Condition, error) {
	filter := make([]lexical.Condition, len(conditions))
	for i, c := range conditions {
		if c.index != 0 {
			filter[i] = lexical.Condition{Field: c.index, Value: c.value}
			continue
		}
		r, err := readNamed(ctx, view, scope, c)
		if err != nil {
			return nil, err
		}
		filter[i] = lexical.Condition{Ordinal: r.ordinal}
	}
	return filter, nil
}

// readNamed returns the record with the id or key that a condition names, or
// an empty one. A name longer than any can be is nobody's.
func readNamed(ctx context.Context, view getter, scope kv.Scope, c condition) (Record, error) {
	if len(c.value) > max(MaxIDBytes, MaxKeyBytes) {
		return Record{}, nil
	}
	read := readRecord
	if c.field == "key" {
		read = readByKey
	}
	r, _, err := read(ctx, view, scope, c.value)
	return r, err
}

// readHits reads the records of hits.
func readHits(ctx context.Context, view getter, scope kv.Scope, found []lexical.Hit) ([]Hit, error) {
	if len(found) == 0 {
		return nil, nil
	}
	keys := make([][]byte, len(found))
	for i, hit := range found {
		keys[i] = recordKey(scope, hit.ID)
	}
	values, err := view.Get(ctx, kv.Records, keys...)
	if err != nil {
		return nil, err
	}
	hits := make([]Hit, len(found))
	for i, value := range values {
		if value == nil {
			return nil, fmt.Errorf("%w: the index names record %q, which is not there", ErrDamaged, found[i].ID)
		}
		r, err := decodeRecord(value)
		if err != nil {
			return nil, err
		}
		hits[i] = Hit{Record: r, Score: found[i].Score}
	}
	return hits, nil
}
