package memory

import (
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// View reads records as they are at one moment: that of the snapshot that it was made
// with, so that what else is read there belongs together with them. Unlike the store's
// own methods it does not move sliding expiries. Once the snapshot is too old it answers
// kv.ErrTooOld.
//
// Caveat: an index that has to be made anew, which an older version wrote, is made anew;
// the answer is of a later moment then, once.
type View struct {
	store *Store
	from  kv.Reader
}

// At returns the records as a snapshot of the store's engine has them, or the engine
// itself.
func (s *Store) At(view kv.Reader) View { return View{s, view} }

// QueryScopes is Store.QueryScopes at that moment.
func (v View) QueryScopes(ctx context.Context, scopes []kv.Scope, q question.Question) (Answer, error) {
	asked, err := v.store.ask(ctx, scopes, q)
	if err != nil {
		return Answer{}, err
	}
	sequences, err := v.from.Sequence(ctx, lexical.Ref(scopes[0]))
	if err != nil {
		return Answer{}, wrap("memory: query", err)
	}
	result, err := asked.search(ctx, v.from, sequences[0])
	var old *outdatedError
	if errors.As(err, &old) {
		result, err = asked.answer(ctx)
	}
	return result, wrap("memory: query", err)
}

// List is Store.List at that moment.
func (v View) List(ctx context.Context, scope kv.Scope, l Listing) (Page, error) {
	checked, err := v.store.checkListing(scope, l)
	if err != nil {
		return Page{}, err
	}
	page, err := v.store.list(ctx, v.from, checked)
	if errors.Is(err, lexical.ErrOutdated) {
		err = v.store.current(ctx, scope, func() error {
			return v.store.view(ctx, func(now kv.Snapshot) (err error) {
				page, err = v.store.list(ctx, now, checked)
				return err
			})
		})
	}
	return page, wrap("memory: list", err)
}

// GetAll returns the records with those ids, nil for each that is not there or has
// expired. Their vectors are left out.
func (v View) GetAll(ctx context.Context, scope kv.Scope, ids []string) ([]*record.Record, error) {
	if err := v.store.begin(scope); err != nil {
		return nil, err
	}
	now := v.store.now()
	found := make([]*record.Record, len(ids))
	err := record.Each(ctx, v.from, record.Keys(scope, ids), func(i int, r *record.Record, _ int) error {
		if r != nil && !r.ExpiredAt(now) {
			found[i] = r
		}
		return nil
	})
	return found, wrap("memory: get records", err)
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
