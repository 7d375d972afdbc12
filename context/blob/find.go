package blob

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

const (
	// DefaultFound is how many archived blobs a search returns.
	DefaultFound = 5
	// MaxFound bounds them.
	MaxFound = 100
	// MaxQueryBytes bounds the words of a search, maxQueryWords their number.
	MaxQueryBytes = 1024
	maxQueryWords = 32
	// MaxFoundMatches bounds the lines of one blob in a search of the archive.
	MaxFoundMatches = 1000
	// DefaultFoundMatches is how many there are by default.
	DefaultFoundMatches = 3
	// maxFoundBytes bounds what one search of the archive reads.
	maxFoundBytes = 1 << 30
)

// Query is a search of the archive. At most one of Words and Pattern is set;
// without either the filters alone decide.
type Query struct {
	// Words are words that occur in the blob, its name or its tags; the more of
	// them, and the rarer, the better.
	Words string
	// Pattern matches a line.
	Pattern *LinePattern
	// Category is the archive's category, Tags are all on the blob. Default: any.
	Category string
	Tags     []string
	// Limit is how many blobs at most, up to MaxFound. Default DefaultFound.
	Limit int
	// Matches is how many lines of each at most, up to MaxFoundMatches. Default
	// DefaultFoundMatches.
	Matches int
}

// ArchiveHit is an archived blob that a search found.
type ArchiveHit struct {
	Entry Entry
	// Score says how well the words fit; only its order means something. Zero
	// without words.
	Score float64
	// Matches are the first lines with a word, or that match.
	Matches []Match
	// More says that there are further ones.
	More bool
}

// Results is what a search of the archive found, the best first, or the newest
// where no words are asked for.
type Results struct {
	Found []ArchiveHit
	// Incomplete says that the archive was not read to its end: it is too large, or
	// the search's time was over.
	Incomplete bool
}

// Find searches the owner's archive. It reads every archived blob that the
// filters let through; binary blobs are found by name and tags. It queues with other
// searches as Search does; too many give a *turn.BusyError.
func (s *Store) Find(ctx context.Context, scope kv.Scope, q Query) (Results, error) {
	if err := q.check(); err != nil {
		return Results{}, err
	}
	if err := scope.Validate(); err != nil {
		return Results{}, err
	}
	work, err := s.searches.Enter(scope.Tenant, scope.Owner)
	if err != nil {
		return Results{}, err
	}
	defer work.Leave()
	archived, err := s.archived(ctx, scope, q)
	if err != nil {
		return Results{}, err
	}
	f := finder{store: s, scope: scope, query: q, left: maxFoundBytes, scan: &scan{work: work, limit: s.opts.SearchTime, began: time.Now()}}
	if q.Words != "" {
		return f.byWords(ctx, archived)
	}
	return f.byPattern(ctx, archived)
}

// check fills in the defaults and refuses what breaks a rule.
func (q *Query) check() error {
	q.Limit = cmp.Or(q.Limit, DefaultFound)
	q.Matches = cmp.Or(q.Matches, DefaultFoundMatches)
	switch {
	case q.Words != "" && q.Pattern != nil:
		return invalid.Field(ErrInvalid, "pattern", "is one of words, literal and regexp")
	case len(q.Words) > MaxQueryBytes:
		return invalid.Field(ErrInvalid, "words", "are too long")
	case q.Limit < 0 || q.Limit > MaxFound:
		return invalid.Field(ErrInvalid, "limit", "is out of range")
	case q.Matches < 0 || q.Matches > MaxFoundMatches:
		return invalid.Field(ErrInvalid, "max_matches", "is out of range")
	case q.Category != "":
		return checkArchive(q.Category)
	}
	return nil
}

// archived returns the entries in the archive that the filters let through, the
// newest first.
func (s *Store) archived(ctx context.Context, scope kv.Scope, q Query) ([]Entry, error) {
	var all []Entry
	for e, err := range entries(ctx, s.engine, scope, "", 0) {
		if err != nil {
			return nil, err
		}
		if e.Archive.Category == "" || q.Category != "" && e.Archive.Category != q.Category {
			continue
		}
		if !slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(e.Archive.Tags, tag) }) {
			all = append(all, e.seen(scope.Owner, s.now()))
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return b.Archive.Time.Compare(a.Archive.Time) })
	return all, nil
}

// finder is one Find under way.
type finder struct {
	store *Store
	scope kv.Scope
	query Query
	left  int64 // bytes that may still be read
	scan  *scan
}

// affords counts a blob's bytes and reports whether it may be read.
func (f *finder) affords(e Entry) bool {
	f.left -= e.Size
	return f.left >= 0
}

func (f *finder) byPattern(ctx context.Context, archived []Entry) (Results, error) {
	var r Results
	for _, e := range archived {
		if len(r.Found) == f.query.Limit {
			break
		}
		found := ArchiveHit{Entry: e}
		if f.query.Pattern != nil {
			if r.Incomplete = !f.affords(e); r.Incomplete {
				break
			}
			for m, err := range search(ctx, f.scan, f.store.ahead(ctx, f.scope, e, 0), f.query.Pattern, From{}) {
				if r.Incomplete = isUnfinished(err); r.Incomplete {
					break
				}
				if err != nil {
					return Results{}, err
				}
				if found.More = len(found.Matches) == f.query.Matches; found.More {
					break
				}
				found.Matches = append(found.Matches, m)
			}
			if len(found.Matches) > 0 {
				r.Found = append(r.Found, found)
			}
			if r.Incomplete = r.Incomplete || f.scan.over(); r.Incomplete {
				break
			}
			continue
		}
		r.Found = append(r.Found, found)
	}
	return r, nil
}

func isUnfinished(err error) bool {
	_, unfinished := errors.AsType[*UnfinishedError](err)
	return unfinished
}

// Weights of BM25, and how often a word counts that stands in a blob's name or
// tags.
const (
	bm25K1     = 1.2
	bm25B      = 0.75
	nameWeight = 4
)

// document is what the words of one blob are.
type document struct {
	ArchiveHit
	counts []float64 // of each word asked for
	length float64
}

func (f *finder) byWords(ctx context.Context, archived []Entry) (Results, error) {
	var r Results
	terms := f.terms()
	docs := make([]document, 0, len(archived))
	length := 0.0
	in := make([]float64, len(terms))
	if err := f.scan.work.Begin(ctx); err != nil {
		return Results{}, err
	}
	defer f.scan.work.End()
	for _, e := range archived {
		if r.Incomplete = !f.affords(e) || f.scan.over(); r.Incomplete {
			break
		}
		doc, err := f.document(ctx, e, terms)
		if err != nil {
			return Results{}, err
		}
		length += doc.length
		for i, count := range doc.counts {
			in[i] += min(count, 1)
		}
		docs = append(docs, doc)
	}
	for _, doc := range docs {
		doc.Score = doc.score(in, float64(len(docs)), length/float64(len(docs)))
		if doc.Score > 0 {
			r.Found = append(r.Found, doc.ArchiveHit)
		}
	}
	slices.SortStableFunc(r.Found, func(a, b ArchiveHit) int { return cmp.Compare(b.Score, a.Score) })
	r.Found = r.Found[:min(len(r.Found), f.query.Limit)]
	return r, nil
}

// score is BM25: in counts the documents that have each word.
func (d document) score(in []float64, documents, mean float64) float64 {
	score := 0.0
	for i, count := range d.counts {
		rare := math.Log(1 + (documents-in[i]+0.5)/(in[i]+0.5))
		score += rare * count * (bm25K1 + 1) / (count + bm25K1*(1-bm25B+bm25B*d.length/max(mean, 1)))
	}
	return score
}

// terms are the words asked for, each once, with their places.
func (f *finder) terms() map[string]int {
	terms := make(map[string]int)
	for word := range f.store.opts.Words(f.query.Words) {
		if _, known := terms[word]; !known && len(terms) < maxQueryWords {
			terms[word] = len(terms)
		}
	}
	return terms
}

// document counts the words of a blob, or of its beginning when the time is over.
func (f *finder) document(ctx context.Context, e Entry, terms map[string]int) (document, error) {
	doc := document{ArchiveHit: ArchiveHit{Entry: e}, counts: make([]float64, len(terms))}
	for word := range f.store.opts.Words(strings.Join(append([]string{e.Path}, e.Archive.Tags...), " ")) {
		if i, asked := terms[word]; asked {
			doc.counts[i] += nameWeight
		}
	}
	if e.Kind == KindImage || e.Kind == KindAudio || e.Kind == KindBinary {
		return doc, nil
	}
	body := NewReader(f.store.Read(ctx, f.scope, e, 0, -1))
	defer body.Close()
	for l, err := range lines(body) {
		if err != nil {
			return document{}, err
		}
		hit := false
		for word := range f.store.opts.Words(string(l.Text)) {
			doc.length++
			if i, asked := terms[word]; asked {
				doc.counts[i]++
				hit = true
			}
		}
		if hit {
			doc.add(l, f.query.Matches)
		}
		if err := f.scan.work.Pause(ctx); err != nil {
			return document{}, err
		}
		if f.scan.over() {
			break
		}
	}
	return doc, nil
}

func (d *document) add(l Match, limit int) {
	if d.More = len(d.Matches) == limit; d.More {
		return
	}
	l.Text = slices.Clone(l.Text[:min(len(l.Text), MaxShownBytes)])
	l.Length = int64(len(l.Text))
	d.Matches = append(d.Matches, l)
}

// wordLineBytes is from when on a line is cut before its words are counted.
const wordLineBytes = 64 << 10

// lines yields the lines of a text, long ones in parts. Text is valid until the
// next one.
func lines(body io.Reader) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		r := bufio.NewReaderSize(body, wordLineBytes)
		next := Match{Line: 1}
		for {
			text, err := r.ReadSlice('\n')
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
				yield(Match{}, err)
				return
			}
			size := int64(len(text))
			l := next
			l.Text = bytes.TrimSuffix(text, []byte{'\n'})
			if size > 0 && !yield(l, nil) || errors.Is(err, io.EOF) {
				return
			}
			next.Offset += size
			if err == nil {
				next.Line++
			}
		}
	}
}

// plainWords yields runs of letters and digits in lower case.
func plainWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if !yield(strings.ToLower(word)) {
				return
			}
		}
	}
}
