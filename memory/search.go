package memory

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// What a receipt can say is missing.
const (
	degradedNoWords   = "no words to search for in the query"
	degradedCut       = "only the first 256 words of the query were searched"
	degradedGone      = "as of an earlier moment: records deleted, erased or expired since can't be shown"
	degradedAccesses  = "accesses are not counted by this server, or not known as of an earlier moment: access_weight was passed over"
	degradedRelations = "as of an earlier moment: relations that have ended since may be missing, a record has had too many of them"
	degradedThen      = "as of an earlier moment: what has changed since was searched by words, as earlier versions have no vectors"
)

// vectorCandidates is how many records of a scope the vectors propose: many
// times a usual limit, as words re-order them.
const vectorCandidates = 100

// Query finds the records of one scope that fit best, none of them expired or
// superseded. All that it reads stands in one snapshot, which holds every save
// that was acknowledged before the call.
//
// Errors: *invalid.Error, *filter.Error; in mode Vector ErrNoEmbedder and
// ErrEmbedder.
func (s *Store) Query(ctx context.Context, scope kv.Scope, q question.Question) (Answer, error) {
	return s.QueryScopes(ctx, []kv.Scope{scope}, q)
}

// QueryScopes does what Query does in several scopes as if they were one: the
// best hit is the best of all. Scopes are 1 to MaxScopes, each once.
func (s *Store) QueryScopes(ctx context.Context, scopes []kv.Scope, q question.Question) (Answer, error) {
	asked, err := s.ask(ctx, scopes, q)
	if err != nil {
		return Answer{}, err
	}
	result, err := asked.answer(ctx)
	if err != nil {
		return Answer{}, wrap("memory: query", err)
	}
	if !q.Peek && q.Moment.IsNow() {
		for _, hit := range result.Hits {
			s.touched(hit.Scope, hit.Record)
			s.accesses.Add(hit.Scope, hit.Record.ID)
		}
	}
	return result, nil
}

func (s *Store) checkScopes(scopes []kv.Scope) error {
	if len(scopes) == 0 || len(scopes) > MaxScopes {
		return invalid.Field(ErrInvalid, "scopes", "are %d, not 1 to %d", len(scopes), MaxScopes)
	}
	for i, scope := range scopes {
		if err := s.begin(scope); err != nil {
			return err
		}
		if slices.Contains(scopes[:i], scope) {
			return invalid.Field(ErrInvalid, "scopes", "name %s twice", scope)
		}
	}
	return nil
}

// ask checks a query and prepares it.
func (s *Store) ask(ctx context.Context, scopes []kv.Scope, q question.Question) (*asking, error) {
	if err := s.checkScopes(scopes); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	return s.prepareQuery(ctx, scopes, q)
}

// asking is a query with what it needs before it reads anything.
type asking struct {
	*Store
	scopes   []kv.Scope
	query    question.Question
	filter   filter.Expression
	vectors  embeddings.Query
	asked    rank.Query
	options  selection.Options
	degraded []string
	byAccess bool // hits are weighed by their accesses
	// restored: what expired records had replaced was restored. restores is when the next
	// does expire.
	restored bool
	restores int64
}

// asksForPast is how far along its axis a question asks for the past: one that could be for
// either lies near the middle.
const asksForPast = 0.2

// asksForWork is how far along its axis a query asks for some work, as hardly a question for
// a fact does; instructsFrom is from where on a text is taken for an instruction that holds, in
// full from instructsSurely on.
const asksForWork, instructsFrom, instructsSurely = 0.4, 0.3, 0.5

// foreignOrigins are the origins of texts that are never taken as instructions.
var foreignOrigins = []string{record.OriginTool.String(), record.OriginWeb.String()}

// accessLooked is how many times as many hits as are asked for are weighed by their accesses.
const accessLooked = 4

func (s *Store) prepareQuery(ctx context.Context, scopes []kv.Scope, q question.Question) (*asking, error) {
	a := &asking{Store: s, scopes: scopes, query: q, restores: math.MaxInt64}
	var err error
	if a.filter, err = filter.Parse(q.Filter); err != nil {
		return nil, err
	}
	if a.vectors, err = s.embeddings.Query(ctx, q); err != nil {
		return nil, err
	}
	a.degraded = a.vectors.Degraded
	now := s.now()
	tiers, _ := tierBits(q.Tiers) // checked before
	a.options = selection.Options{Now: now.UnixMicro(), Tiers: tiers, Archived: q.Archived}
	var whole bool
	a.asked, whole = q.Read(s.analyzer, now, a.vectors.Turn)
	a.asked.Near = s.vectorWeight
	if a.vectors.Optional {
		a.asked.Foreign = foreignOrigins
		a.asked.Instructs = func(ctx context.Context) func([]float32) float64 {
			if axes := s.embeddings.Axes(ctx); axes != nil && axes.Request.Of(a.vectors.Vector) >= asksForWork {
				return func(v []float32) float64 {
					return min(1, max(0, (axes.Rule.Of(v)-instructsFrom)/(instructsSurely-instructsFrom)))
				}
			}
			return nil
		}
		a.asked.Vector = a.vectors.Vector
		a.asked.Changes = func(ctx context.Context) *rank.Changes {
			if axes := s.embeddings.Axes(ctx); axes != nil && axes.Past.Of(a.vectors.Vector) < asksForPast {
				return &rank.Changes{
					States: func(v []float32) float64 { return min(1, max(-1, axes.Change.Of(v))) },
					Middle: axes.Middle, Deviation: axes.Deviation,
				}
			}
			return nil
		}
	}
	switch {
	case q.AccessWeight == 0:
	case s.accesses == nil || !q.Moment.IsNow():
		a.degraded = append(a.degraded, degradedAccesses)
	default:
		a.byAccess, a.asked.Limit = true, min(question.MaxLimit, accessLooked*a.asked.Limit)
	}
	switch {
	case !whole:
		a.degraded = append(a.degraded, degradedCut)
	case len(a.asked.Words) == 0 && q.Mode != question.Vector:
		a.degraded = append(a.degraded, degradedNoWords)
	}
	return a, nil
}

// answer searches, and first rebuilds an index that an older version wrote, and restores what
// expired records had replaced.
func (a *asking) answer(ctx context.Context) (result Answer, err error) {
	refs := make([]kv.Ref, len(a.scopes))
	for i, scope := range a.scopes {
		refs[i] = lexical.Ref(scope)
	}
	for {
		err = kv.ViewWith(ctx, a.engine, refs, a.foresee, func(view kv.Snapshot) error {
			result, err = a.search(ctx, view, view.Sequences()[0])
			return err
		})
		var old *outdatedError
		var replaced *replacedError
		switch {
		case errors.As(err, &replaced):
			for _, scope := range a.scopes {
				a.restore(ctx, scope)
			}
			a.restored = true
		case !errors.As(err, &old):
			return result, err
		default:
			if err := a.rebuild(ctx, old.scope); err != nil {
				return Answer{}, err
			}
		}
	}
}

// foresee is what a search reads of each scope in any case.
func (a *asking) foresee(along *kv.Reads) {
	for _, scope := range a.scopes {
		a.index.Foresee(along, scope)
	}
}

// outdatedError names a scope whose index has to be made anew.
type outdatedError struct{ scope kv.Scope }

func (e *outdatedError) Error() string {
	return "memory: the index of " + e.scope.String() + " is outdated"
}

// search answers the query from one view, in which the index of the first scope has
// that sequence.
func (a *asking) search(ctx context.Context, view kv.Reader, sequence uint64) (Answer, error) {
	result := Answer{Receipt: Receipt{Degraded: a.degraded, IndexSequence: sequence}}
	searched, err := a.open(ctx, view, &result.Receipt)
	defer searched.close()
	if err != nil {
		return Answer{}, err
	}
	if a.vectors.Given && result.Receipt.Records > 0 && len(result.Receipt.EmbeddingSpaces) == 0 {
		result.Receipt.Degraded = append(slices.Clip(result.Receipt.Degraded), embeddings.DegradedNoVectors)
	}
	found, hits, err := a.find(ctx, searched, &result.Receipt)
	if err != nil {
		return Answer{}, err
	}
	result.Hits = hits
	result.Receipt.count(found)
	result.Receipt.lookedBack(a.query.Moment)
	result.Receipt.OverMaxBytes = len(found.Hits) - len(result.Hits)
	if a.query.Related != nil {
		if err := a.addRelated(ctx, searched, &result); err != nil {
			return Answer{}, err
		}
	}
	result.words, result.weights = a.asked.Words, found.Weights
	if err := a.fill(ctx, &result); err != nil {
		return Answer{}, err
	}
	result.Receipt.explainEmpty(len(result.Hits), found.Irrelevant)
	return result, nil
}

// searched are the parts that one search ranks together.
type searched struct {
	parts []rank.Part
	from  []source // of each part
	then  []*past.Index
	// ranking is of the query without further words; nil until it is asked.
	ranking *rank.Ranking
	kept    map[ranked]record.Record // what was read for an answer before
}

// ranked is a document of a part.
type ranked struct {
	part    int
	ordinal uint32
}

// keep keeps what was read, for the next answer.
func (s *searched) keep(found []rank.Hit, hits []Hit) {
	s.kept = make(map[ranked]record.Record, len(hits))
	for i, hit := range hits {
		s.kept[ranked{found[i].Part, found[i].Ordinal}] = hit.Record
	}
}

// source is where the records of a part are read.
type source struct {
	scope kv.Scope
	view  kv.Getter
}

func (s *searched) close() {
	if s.ranking != nil {
		s.ranking.Close()
	}
	for _, x := range s.then {
		x.Close()
	}
}

// view is where all else of a scope is read than the versions of then, which its other part
// has.
func (s *searched) view(scope kv.Scope) (view kv.Getter) {
	for _, from := range s.from {
		if from.scope == scope {
			view = from.view // the last one
		}
	}
	return view
}

func (s *searched) add(part rank.Part, from source) {
	s.parts, s.from = append(s.parts, part), append(s.from, from)
}

// open opens the index of every scope, with what may be a hit there and what
// the vectors propose. Close what it returns, also with an error.
func (a *asking) open(ctx context.Context, view kv.Reader, receipt *Receipt) (*searched, error) {
	all := &searched{}
	for _, scope := range a.scopes {
		reader, err := a.index.Open(ctx, view, scope)
		if errors.Is(err, lexical.ErrOutdated) {
			return all, &outdatedError{scope}
		}
		if err != nil {
			return all, err
		}
		a.packer.Read(scope, reader.Statistics())
		receipt.Records += int64(reader.Statistics().Documents)
		bound, err := a.filter.Bind(ctx, view, scope)
		if err != nil {
			return all, err
		}
		options, bound, err := a.lookBack(ctx, view, scope, reader, bound, all, receipt)
		if err != nil {
			return all, err
		}
		selection, err := selection.Select(ctx, reader, bound, options)
		if err != nil {
			return all, err
		}
		restores := selection.Restores()
		if restores <= options.Now && !a.restored && a.query.Moment.IsNow() {
			return all, &replacedError{scope}
		}
		a.restores = min(a.restores, restores)
		part := rank.Part{Reader: reader, Selection: selection}
		if part.Vectors, err = a.findVectors(ctx, view, scope, a.vectors, selection, vectorCandidates, receipt); err != nil {
			return all, err
		}
		if len(part.Vectors) > 0 {
			part.ReadVectors = func(ctx context.Context, ordinals []uint32) ([][]float32, error) {
				return a.embeddings.Vectors(ctx, view, scope, a.vectors.Space, ordinals)
			}
			var seen []rank.VectorHit // by the ranking before, which is likely to ask the same
			like, least := a.vectors, 0
			part.Nearest = func(ctx context.Context, v []float32, k int) (hits []rank.VectorHit, err error) {
				if k == least && slices.Equal(v, like.Vector) {
					return seen, nil
				}
				like.Vector, least = v, k
				seen, err = a.findVectors(ctx, view, scope, like, selection, k, receipt)
				return seen, err
			}
		}
		all.add(part, source{scope, view})
	}
	return all, nil
}

// lookBack narrows the search of a scope to what counted at the moment that is asked for,
// and adds the versions that counted then as their own part.
func (a *asking) lookBack(ctx context.Context, view kv.Reader, scope kv.Scope, reader *lexical.Reader, bound selection.Filter, all *searched, receipt *Receipt) (selection.Options, selection.Filter, error) {
	m, options := a.query.Moment, a.options
	if m.IsNow() {
		return options, bound, nil
	}
	then, found, err := a.then(ctx, view, scope, reader, m, false)
	if err != nil {
		return options, bound, err
	}
	receipt.Reread += found.Reread
	receipt.Lost += found.Lost
	options.Superseded = true // which those are that were, the moment knows
	if then != nil {
		all.then = append(all.then, then)
		if err := a.addThen(ctx, scope, then, options, all); err != nil {
			return options, bound, err
		}
	}
	return options, selection.And(bound, m.Condition(), selection.Not(selection.Only(found.Except...))), nil
}

func (a *asking) addThen(ctx context.Context, scope kv.Scope, then *past.Index, options selection.Options, all *searched) error {
	reader, err := then.Open(ctx)
	if err != nil {
		return err
	}
	bound, err := a.filter.Bind(ctx, then.View(), scope)
	if err != nil {
		return err
	}
	selection, err := selection.Select(ctx, reader, selection.And(bound, a.query.Moment.Condition()), options)
	if err != nil {
		return err
	}
	all.add(rank.Part{Reader: reader, Selection: selection}, source{scope, then.View()})
	return nil
}

// findVectors returns the k documents of a scope whose vectors are nearest.
func (a *asking) findVectors(ctx context.Context, view kv.Reader, scope kv.Scope, v embeddings.Query, selection *selection.Selection, k int, receipt *Receipt) ([]rank.VectorHit, error) {
	found, counts, err := a.embeddings.Hits(ctx, view, scope, v, selection, k)
	if counts.Mismatch && !slices.Contains(receipt.Degraded, embeddings.DegradedDimension) {
		receipt.Degraded = append(slices.Clip(receipt.Degraded), embeddings.DegradedDimension)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	receipt.VectorsScanned += counts.Scanned
	receipt.VectorsRescored += counts.Rescored
	receipt.addSpaces(counts.Spaces)
	hits := make([]rank.VectorHit, len(found))
	for i, hit := range found {
		hits[i] = rank.VectorHit{Ordinal: hit.Ordinal, Cosine: hit.Cosine}
	}
	return hits, nil
}

// rank ranks the records of all parts, twice where the query is to be expanded, for so many
// hits at most.
func (a *asking) rank(ctx context.Context, in *searched, most int, receipt *Receipt) (rank.Answer, error) {
	if !a.query.Expand {
		if in.ranking == nil {
			ranking, err := rank.Open(ctx, in.parts, a.asked)
			if err != nil {
				return rank.Answer{}, err
			}
			in.ranking = &ranking
		}
		return in.ranking.Answer(ctx, most)
	}
	asked := a.asked
	asked.Limit = most
	found, words, err := a.rankExpanded(ctx, in, asked)
	for _, word := range words {
		receipt.ExpandedWords = append(receipt.ExpandedWords, word.Text)
	}
	return found, err
}

// weighAccesses takes from the scores of hits what little use leaves them, and keeps the best
// of as many as are asked for.
func (a *asking) weighAccesses(ctx context.Context, in *searched, found *rank.Answer) error {
	now, weight := a.now(), a.query.AccessWeight
	for part, from := range in.from {
		var ids []string
		var hits []*rank.Hit
		for i := range found.Hits {
			if hit := &found.Hits[i]; hit.Part == part {
				ids, hits = append(ids, hit.ID), append(hits, hit)
			}
		}
		values, err := access.Read(ctx, from.view, from.scope, ids)
		if err != nil {
			return err
		}
		for i, hit := range hits {
			left := 1 - weight*(1-values[i].Strength(now))
			hit.Score *= left
			if a.query.Explain {
				sum := 0.0
				for _, s := range hit.Signals {
					sum += s.Share
				}
				hit.Signals = append(hit.Signals, rank.Signal{Name: rank.SignalAccess, Raw: values[i].At(now), Share: sum * (left - 1)})
			}
		}
	}
	slices.SortStableFunc(found.Hits, func(x, y rank.Hit) int { return cmp.Compare(y.Score, x.Score) })
	kept := slices.IndexFunc(found.Hits, func(hit rank.Hit) bool { return hit.Score < a.query.MinScore })
	if kept >= 0 {
		found.UnderMinScore += len(found.Hits) - kept
		found.Hits = found.Hits[:kept]
	}
	if limit := a.query.Most(); len(found.Hits) > limit {
		found.OverLimit += len(found.Hits) - limit
		found.Hits = found.Hits[:limit]
	}
	return nil
}

// readAtOnce is how many hits are read at a time where their size is bounded: so
// much more than the bound lies in memory at most.
const readAtOnce = 16

// readWithin reads the records of hits as far as MaxBytes lets them.
func (a *asking) readWithin(ctx context.Context, in *searched, found []rank.Hit) ([]Hit, error) {
	if a.query.MaxBytes == 0 {
		return a.read(ctx, in, found)
	}
	var hits []Hit
	size := 0
	for chunk := range slices.Chunk(found, readAtOnce) {
		read, err := a.read(ctx, in, chunk)
		if err != nil {
			return nil, err
		}
		for i, hit := range read {
			size += hit.Record.Bytes()
			if size > a.query.MaxBytes && len(hits)+i > 0 {
				return append(hits, read[:i]...), nil
			}
		}
		hits = append(hits, read...)
	}
	return hits, nil
}

// read reads the records of hits.
func (a *asking) read(ctx context.Context, in *searched, found []rank.Hit) ([]Hit, error) {
	hits := make([]Hit, len(found))
	for n, from := range in.from {
		if slices.ContainsFunc(in.from[:n], func(other source) bool { return other.view == from.view }) {
			continue // read already
		}
		if err := a.readFrom(ctx, in, from.view, found, hits); err != nil {
			return nil, err
		}
	}
	if a.query.WithVectors {
		return hits, a.completeVectors(ctx, in.from[0].view, hits)
	}
	return hits, nil
}

// readFrom reads the found records that are in one view.
func (a *asking) readFrom(ctx context.Context, in *searched, view kv.Getter, found []rank.Hit, hits []Hit) error {
	keys, places := make([][]byte, 0, len(found)), make([]int, 0, len(found))
	for i, hit := range found {
		from := in.from[hit.Part]
		if from.view != view {
			continue
		}
		if r, ok := in.kept[ranked{hit.Part, hit.Ordinal}]; ok {
			hits[i] = a.hit(from.scope, r, hit)
		} else {
			keys, places = append(keys, record.Key(from.scope, hit.ID)), append(places, i)
		}
	}
	return record.Each(ctx, view, keys, func(n int, r *record.Record, _ int) error {
		i := places[n]
		if r == nil {
			return record.Missing(found[i].ID)
		}
		a.query.Moment.Show(r)
		hits[i] = a.hit(in.from[found[i].Part].scope, *r, found[i])
		return nil
	})
}

func (a *asking) hit(scope kv.Scope, r record.Record, found rank.Hit) Hit {
	hit := Hit{Scope: scope, Record: r, Score: found.Score, Older: found.Older}
	if a.query.Explain {
		hit.Explanation = &Explanation{MatchedWords: found.Words, Signals: found.Signals}
	}
	return hit
}

// completeVectors reads the vectors of hits, scope by scope.
func (a *asking) completeVectors(ctx context.Context, view kv.Getter, hits []Hit) error {
	for _, scope := range a.scopes {
		var records []*record.Record
		for i := range hits {
			if hits[i].Scope == scope {
				records = append(records, &hits[i].Record)
			}
		}
		if err := a.embeddings.Complete(ctx, view, scope, records...); err != nil {
			return err
		}
	}
	return nil
}
