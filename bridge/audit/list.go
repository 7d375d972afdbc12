package audit

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// DefaultPage is how many records a page has.
	DefaultPage = 100
	// MaxPage is how many it has at most.
	MaxPage = 1000
	// maxRead bounds the records that are read for one page, so that a rare one does not
	// keep a call busy. The next page goes on behind them.
	maxRead = 20_000
	// maxCall is more than a call takes from its beginning to its record. Records stand in
	// the order of their ends.
	maxCall = 2 * time.Hour
)

// Query picks records. Zero fields pick all.
type Query struct {
	// Agent, Session and Tool are exact. May, unless nil, is asked of each agent.
	Agent, Session, Tool string
	May                  func(agent string) bool
	Outcome              Outcome
	// From (inclusive) and To (exclusive) bound the time at which calls came in.
	From, To time.Time
	// Limit is how many records a page has. Default DefaultPage, at most MaxPage.
	Limit int
	// After continues behind a page.
	After Cursor
}

// Cursor is a place in a listing; zero is its beginning.
type Cursor struct{ Epoch, Number uint64 }

func (q *Query) picks(r *Record) bool {
	return (q.Agent == "" || r.Agent == q.Agent) && (q.Session == "" || r.Session == q.Session) &&
		(q.Tool == "" || r.Tool == q.Tool) && (q.Outcome == 0 || r.Outcome == q.Outcome) &&
		(q.From.IsZero() || !r.Time.Before(q.From)) && (q.To.IsZero() || r.Time.Before(q.To)) &&
		(q.May == nil || q.May(r.Agent))
}

// List returns the records of a tenant that q picks, last ended first, and the cursor of
// the next page; a zero Cursor is the end. A page may be short or empty although more
// records follow.
func List(ctx context.Context, from kv.Reader, tenant string, q Query) ([]Record, Cursor, error) {
	if q.Limit <= 0 {
		q.Limit = DefaultPage
	}
	q.Limit = min(q.Limit, MaxPage)
	keys := all(tenant, tagRecord)
	keys.Reverse, keys.Limit = true, maxRead
	if q.After != (Cursor{}) {
		keys.End = keyOf(tenant, tagRecord, recordPlace{q.After.Epoch, q.After.Number})
	}
	var out []Record
	var at Cursor
	read := 0
	for pair, err := range from.Scan(ctx, kv.System, keys) {
		if err != nil {
			return nil, Cursor{}, fmt.Errorf("audit: list: %w", err)
		}
		r, err := readRecord(tenant, pair)
		if err != nil {
			return nil, Cursor{}, err
		}
		read++
		at = Cursor{r.Epoch, r.Number}
		if !q.From.IsZero() && r.Time.Before(q.From.Add(-maxCall)) {
			return out, Cursor{}, nil
		}
		if !q.picks(&r) {
			continue
		}
		if out = append(out, r); len(out) == q.Limit {
			return out, at, nil
		}
	}
	if read < maxRead {
		at = Cursor{}
	}
	return out, at, nil
}

// List is List in the log's own store.
func (l *Log) List(ctx context.Context, tenant string, q Query) ([]Record, Cursor, error) {
	return List(ctx, l.engine, tenant, q)
}

// All yields the records of a tenant, the oldest first. An error comes last, with a zero
// Record.
func All(ctx context.Context, from kv.Reader, tenant string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for pair, err := range from.Scan(ctx, kv.System, all(tenant, tagRecord)) {
			var r Record
			if err == nil {
				r, err = readRecord(tenant, pair)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func readRecord(tenant string, pair kv.Pair) (Record, error) {
	tag, p := placeOf(pair.Key)
	if tag != tagRecord {
		return Record{}, fmt.Errorf("%w: record without a number", ErrDamaged)
	}
	r, err := decodeRecord(pair.Value)
	r.Tenant, r.Epoch, r.Number = tenant, p.epoch, p.number
	return r, err
}
