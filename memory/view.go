package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// View reads records as they are at one moment: that of the snapshot that it was made
// with, so that what else is read there belongs together with them. Unlike the store's
// own methods it does not move sliding expiries. Once the snapshot is too old it answers
// kv.ErrTooOld. Of a snapshot it remembers answers while nothing in the scopes changes;
// what their records hold is for reading only.
//
// Caveat: an index that has to be made anew, which an older version wrote, is made anew;
// the answer is of a later moment then, once.
type View struct {
	store *Store
	from  kv.Reader
	// onlyRemembered answers from the cache alone.
	onlyRemembered bool
	// whole is what the answers are parts of; nil where they are not.
	whole *wholeAnswer
}

// At returns the records as a snapshot of the store's engine has them, or the engine
// itself.
func (s *Store) At(view kv.Reader) View { return View{store: s, from: view} }

// Foresee adds what views read of a scope in any case.
func (s *Store) Foresee(along *kv.Reads, scope kv.Scope) {
	along.Sequence(lexical.Ref(scope))
	s.index.Foresee(along, scope)
}

// Remembered returns the view that answers repeated queries from the cache, and gives
// ErrNotRemembered for others.
func (v View) Remembered() View {
	v.onlyRemembered = true
	return v
}

// QueryScopes is Store.QueryScopes at that moment.
func (v View) QueryScopes(ctx context.Context, scopes []kv.Scope, q question.Question) (Answer, error) {
	answer, err := v.queryScopes(ctx, scopes, q)
	return answer, wrap("memory: query", err)
}

// search searches. then reports whether the answer is of the view's moment, and restores is
// when something expires that had replaced another record.
func (v View) search(ctx context.Context, scopes []kv.Scope, q question.Question) (_ Answer, then bool, restores int64, err error) {
	asked, err := v.store.ask(ctx, scopes, q)
	if err != nil {
		return Answer{}, false, 0, err
	}
	sequences, err := v.from.Sequence(ctx, lexical.Ref(scopes[0]))
	if err != nil {
		return Answer{}, false, 0, err
	}
	result, err := asked.search(ctx, v.from, sequences[0])
	var old *outdatedError
	var replaced *replacedError
	if errors.As(err, &old) || errors.As(err, &replaced) {
		result, err = asked.answer(ctx)
		return result, false, 0, err
	}
	return result, true, asked.restores, err
}

// List is Store.List at that moment.
func (v View) List(ctx context.Context, scope kv.Scope, l Listing) (Page, error) {
	page, err := v.list(ctx, scope, l)
	return page, wrap("memory: list", err)
}

// page reads a page. then and restores are as in search.
func (v View) page(ctx context.Context, scope kv.Scope, l Listing) (page Page, then bool, restores int64, err error) {
	checked, err := v.store.checkListing(scope, l)
	if err != nil {
		return Page{}, false, 0, err
	}
	checked.restores = &restores
	page, err = v.store.list(ctx, v.from, checked)
	var replaced *replacedError
	if !errors.Is(err, lexical.ErrOutdated) && !errors.As(err, &replaced) {
		return page, true, restores, err
	}
	page, err = v.store.page(ctx, scope, checked)
	return page, false, 0, err
}

// restoring is a record that expires at that moment, so that an answer is not remembered for
// longer.
func restoring(at int64) *record.Record {
	if at == math.MaxInt64 {
		return nil
	}
	return &record.Record{ExpireTime: time.UnixMicro(at)}
}

// GetAll returns the records with those ids, nil for each that is not there or has
// expired. Their vectors are left out.
func (v View) GetAll(ctx context.Context, scope kv.Scope, ids []string) ([]*record.Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := remember(ctx, v, []kv.Scope{scope}, gotten, ids, func() ([]*record.Record, []*record.Record, bool, error) {
		found, err := v.getAll(ctx, scope, ids)
		return found, found, true, err
	})
	return slices.Clone(found), wrap("memory: get records", err)
}

func (v View) getAll(ctx context.Context, scope kv.Scope, ids []string) ([]*record.Record, error) {
	now := v.store.now()
	found := make([]*record.Record, len(ids))
	err := record.Each(ctx, v.from, record.Keys(scope, ids), func(i int, r *record.Record, _ int) error {
		if r != nil && !r.ExpiredAt(now) {
			found[i] = r
		}
		return nil
	})
	return found, err
}

// Sequence is how many commits to the index of a scope the view shows, which every
// change of a record makes; a query's Receipt.IndexSequence is the same.
func (v View) Sequence(ctx context.Context, scope kv.Scope) (uint64, error) {
	sequences, err := v.from.Sequence(ctx, lexical.Ref(scope))
	if err != nil {
		return 0, wrap("memory: read sequence", err)
	}
	return sequences[0], nil
}

// Limits of what views remember.
const (
	// maxRememberedBytes bounds the answers that views of a store remember: enough for some
	// thousand agents. The tenant whose answers take most loses them first.
	maxRememberedBytes = 32 << 20
	// maxAnswerBytes bounds one of them; a larger one is looked for again.
	maxAnswerBytes = 1 << 20
	// answerBytes is about what an answer takes in addition to its key and records, and
	// recordBytes a record without its texts.
	answerBytes, recordBytes = 512, 512
)

// ErrNotRemembered is what a view answers that only remembers.
var ErrNotRemembered = errors.New("memory: the answer is not remembered")

// remembered caches the answers of views. The key is the query, the day, and the commit
// counts of the scopes' indexes, which every change of a record increases: so an answer
// stays valid until one of its records expires.
type remembered struct {
	answers *cache.Fair[string, string, rememberedAnswer]
}

type rememberedAnswer struct {
	value any
	// until is when the first of its records expires; zero is never.
	until time.Time
	size  int // bytes
}

// expires notes when something of it expires; zero is never.
func (a *rememberedAnswer) expires(at time.Time) {
	if !at.IsZero() && (a.until.IsZero() || at.Before(a.until)) {
		a.until = at
	}
}

func (r remembered) get(tenant, key string, now time.Time) (rememberedAnswer, bool) {
	known, ok := r.answers.Get(tenant, key)
	return known, ok && (known.until.IsZero() || known.until.After(now))
}

func (r remembered) put(tenant, key string, a rememberedAnswer) {
	if a.size <= maxAnswerBytes {
		r.answers.Put(tenant, key, a, a.size)
	}
}

func newRemembered(bytes int) remembered {
	return remembered{cache.NewFair[string, string, rememberedAnswer](bytes)}
}

// Kinds of answers.
const (
	queried byte = iota + 1
	listed
	gotten
	wholes
)

// remember returns the answer of a view to what parts say, which find finds where it is
// not known. Only a snapshot's is of one moment, so that it can be known. lasts says
// whether the answer stays true.
func remember[T any](ctx context.Context, v View, scopes []kv.Scope, kind byte, parts []string, find func() (T, []*record.Record, bool, error)) (T, error) {
	var none T
	if err := v.store.checkScopes(scopes); err != nil {
		return none, err
	}
	_, still := v.from.(kv.Snapshot)
	if !still {
		if v.onlyRemembered {
			return none, ErrNotRemembered
		}
		found, _, _, err := find()
		return found, err
	}
	key, now, err := v.key(ctx, scopes, kind, parts)
	if err != nil {
		return none, err
	}
	if known, ok := v.store.remembered.get(scopes[0].Tenant, key, now); ok {
		v.whole.add(&known)
		return known.value.(T), nil
	}
	if v.onlyRemembered {
		return none, ErrNotRemembered
	}
	found, records, lasts, err := find()
	if err != nil || !lasts {
		v.whole.add(nil)
		return found, err
	}
	known := rememberedAnswer{value: found, size: answerBytes + len(key)}
	for _, r := range records {
		if r == nil {
			continue
		}
		known.size += recordBytes + r.Bytes()
		known.expires(r.ExpireTime)
	}
	v.whole.add(&known)
	v.store.remembered.put(scopes[0].Tenant, key, known)
	return found, nil
}

// Whole is what find makes of answers of a view about scopes and nothing else but parts, and its
// bytes in memory. Of a snapshot it is remembered, as those answers are; it is for reading only.
func Whole[T any](ctx context.Context, v View, scopes []kv.Scope, parts []string, find func(View) (T, int, error)) (T, error) {
	_, still := v.from.(kv.Snapshot)
	if !still || len(scopes) == 0 {
		found, _, err := find(v)
		return found, err
	}
	var none T
	key, now, err := v.key(ctx, scopes, wholes, parts)
	if err != nil {
		return none, wrap("memory: read sequence", err)
	}
	tenant := scopes[0].Tenant
	if known, ok := v.store.remembered.get(tenant, key, now); ok {
		v.whole.add(&known)
		return known.value.(T), nil
	}
	inner := v
	inner.whole = &wholeAnswer{lasts: true}
	found, size, err := find(inner)
	if err != nil || !inner.whole.lasts {
		v.whole.add(nil)
		return found, err
	}
	known := inner.whole.rememberedAnswer
	known.value, known.size = found, size+answerBytes+len(key)
	v.whole.add(&known)
	v.store.remembered.put(tenant, key, known)
	return found, nil
}

// wholeAnswer is an answer that is being made of others.
type wholeAnswer struct {
	rememberedAnswer

	lasts bool // all of them do
}

// add takes in an answer, nil for one that does not last.
func (w *wholeAnswer) add(part *rememberedAnswer) {
	switch {
	case w == nil:
	case part == nil:
		w.lasts = false
	default:
		w.expires(part.until)
	}
}

// key names an answer. Words such as "yesterday" mean something else each day.
func (v View) key(ctx context.Context, scopes []kv.Scope, kind byte, parts []string) (string, time.Time, error) {
	refs := make([]kv.Ref, len(scopes))
	for i, scope := range scopes {
		refs[i] = lexical.Ref(scope)
	}
	sequences, err := v.from.Sequence(ctx, refs...)
	if err != nil {
		return "", time.Time{}, err
	}
	now := v.store.now()
	const day = 24 * 60 * 60
	key := append([]byte{kind}, binary.AppendVarint(nil, now.Unix()/day)...)
	for i, scope := range scopes {
		key = appendKeyPart(key, string(scope.Key(kind)))
		key = binary.AppendUvarint(key, sequences[i])
	}
	for _, part := range parts {
		key = appendKeyPart(key, part)
	}
	return string(key), now, nil
}

func appendKeyPart(key []byte, part string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(part))), part...)
}

// number is a number as a part of a key.
func number(n int) string { return string(binary.AppendVarint(nil, int64(n))) }

// queryScopes is QueryScopes, remembered. What the caller gets is his own but for what
// the records hold.
func (v View) queryScopes(ctx context.Context, scopes []kv.Scope, q question.Question) (Answer, error) {
	plain := question.Question{Text: q.Text, Filter: q.Filter, Limit: q.Limit}
	if !reflect.DeepEqual(q, plain) {
		if v.onlyRemembered {
			return Answer{}, ErrNotRemembered
		}
		v.whole.add(nil)
		answer, _, _, err := v.search(ctx, scopes, q)
		return answer, err
	}
	answer, err := remember(ctx, v, scopes, queried, []string{q.Text, q.Filter, number(q.Limit)}, func() (Answer, []*record.Record, bool, error) {
		answer, then, restores, err := v.search(ctx, scopes, q)
		records := make([]*record.Record, len(answer.Hits), len(answer.Hits)+1)
		for i := range answer.Hits {
			records[i] = &answer.Hits[i].Record
		}
		return answer, append(records, restoring(restores)), then && !slices.Contains(answer.Receipt.Degraded, embeddings.DegradedFailed), err
	})
	answer.Hits = slices.Clone(answer.Hits)
	return answer, err
}

// list is List, remembered.
func (v View) list(ctx context.Context, scope kv.Scope, l Listing) (Page, error) {
	plain := Listing{Filter: l.Filter, PageSize: l.PageSize, NewestFirst: l.NewestFirst}
	if !reflect.DeepEqual(l, plain) {
		if v.onlyRemembered {
			return Page{}, ErrNotRemembered
		}
		v.whole.add(nil)
		page, _, _, err := v.page(ctx, scope, l)
		return page, err
	}
	order := "oldest"
	if l.NewestFirst {
		order = "newest"
	}
	page, err := remember(ctx, v, []kv.Scope{scope}, listed, []string{l.Filter, number(l.PageSize), order}, func() (Page, []*record.Record, bool, error) {
		page, then, restores, err := v.page(ctx, scope, l)
		return page, append(pointers(page.Records), restoring(restores)), then, err
	})
	page.Records = slices.Clone(page.Records)
	return page, err
}
