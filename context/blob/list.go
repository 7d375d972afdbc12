package blob

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MaxListed bounds the entries of one page.
const MaxListed = 1000

// maxSkipped bounds the entries that one page looks at, so that a filter which
// fits few does not make it read all.
const maxSkipped = 50_000

// Filter selects entries. Zero fields select all.
type Filter struct {
	// SessionID, StepID, Kind and Category must be equal.
	SessionID, StepID, Kind, Category string
	// Tier must be equal when OneTier is set.
	Tier    Tier
	OneTier bool
	// Archived selects those in the archive.
	Archived bool
}

func (f Filter) fits(e *Entry) bool {
	return (f.SessionID == "" || f.SessionID == e.SessionID) &&
		(f.StepID == "" || f.StepID == e.StepID) &&
		(f.Kind == "" || f.Kind == e.Kind) &&
		(f.Category == "" || f.Category == e.Category) &&
		(!f.OneTier || f.Tier == e.Tier) &&
		(!f.Archived || e.Archive.Category != "")
}

// Page is a part of a listing.
type Page struct {
	// Entries are in the order of the paths they were made with.
	Entries []Entry
	// Next continues the listing; empty at its end. A page may have fewer entries
	// than asked for, or none, and still a next one.
	Next string
}

// List returns up to limit entries of an owner that fit a filter, from where the
// page that gave after ended; an empty after is the beginning. A limit outside 1
// to MaxListed means MaxListed.
func (s *Store) List(ctx context.Context, scope kv.Scope, filter Filter, after string, limit int) (Page, error) {
	if err := scope.Validate(); err != nil {
		return Page{}, err
	}
	if len(after) > MaxPathBytes {
		return Page{}, fmt.Errorf("%w: no page begins there", ErrInvalid)
	}
	if limit <= 0 || limit > MaxListed {
		limit = MaxListed
	}
	var page Page
	seen, last := 0, ""
	for e, err := range entries(ctx, s.engine, scope, after, 0) {
		if err != nil {
			return Page{}, err
		}
		if len(page.Entries) == limit || seen == maxSkipped {
			page.Next = last
			break
		}
		seen, last = seen+1, e.Home()
		if filter.fits(&e) {
			page.Entries = append(page.Entries, e.seen(scope.Owner, s.now()))
		}
	}
	return page, nil
}
