package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MaxRecords bounds the records that one erasure by session or filter takes out: the
// certificate names each.
const MaxRecords = 1_000_000

// ErrTooMany: a filter lets through more than MaxRecords.
var ErrTooMany = fmt.Errorf("erasure: more than %d records; narrow the filter, or erase the whole", MaxRecords)

// Picked are the ids of the records that a session or a filter takes out, by scope. A scope
// without any is there where an earlier version of another record has to go.
type Picked map[kv.Scope]map[string]bool

// Digests stand for the records in a certificate.
func (p Picked) Digests() []string {
	var all []string
	for scope, ids := range p {
		for id := range ids {
			all = append(all, Digest(scope, id))
		}
	}
	slices.Sort(all)
	return all
}

// Pick finds the records of a session or a filter. The store is of engine, which may be
// written to: an index that is out of date is made anew.
func Pick(ctx context.Context, engine kv.Engine, store *memory.Store, subject Subject) (Picked, error) {
	scopes, err := scopesOf(ctx, engine, subject)
	if err != nil {
		return nil, err
	}
	picked, total := make(Picked), 0
	add := func(scope kv.Scope, id string) {
		if picked[scope] == nil {
			picked[scope] = make(map[string]bool)
		}
		if id != "" {
			picked[scope][id] = true
			total++
		}
	}
	for _, scope := range scopes {
		if subject.Session != "" {
			if err := pickSession(ctx, engine, scope, subject.Session, add); err != nil {
				return nil, err
			}
			continue
		}
		for l := (memory.Listing{Filter: subject.Filter, PageSize: memory.MaxPageSize, Tiers: []int{1, 2, 3, 4}}); ; {
			page, err := store.List(ctx, scope, l)
			if err != nil {
				return nil, err
			}
			for _, r := range page.Records {
				add(scope, r.ID)
			}
			if total > MaxRecords {
				return nil, ErrTooMany
			}
			if l.PageToken = page.NextPageToken; l.PageToken == "" {
				break
			}
		}
	}
	if total > MaxRecords {
		return nil, ErrTooMany
	}
	return picked, nil
}

// pickSession finds the records of a session, and scopes with earlier versions of it.
func pickSession(ctx context.Context, engine kv.Engine, scope kv.Scope, session string, add func(kv.Scope, string)) error {
	for r, err := range record.All(ctx, engine, scope) {
		if err != nil {
			return err
		}
		if r.SessionID == session {
			add(scope, r.ID)
		}
	}
	return each(ctx, engine, kv.Records, scope.Key('h'), func(_, value []byte) error {
		r, err := record.Decode(value)
		if err == nil && r.SessionID == session {
			add(scope, "")
		}
		return err
	})
}

// scopesOf are the memories that the subject has records in.
func scopesOf(ctx context.Context, engine kv.Engine, subject Subject) ([]kv.Scope, error) {
	own, err := subject.scope()
	if err != nil || subject.Kind != Tenant {
		return []kv.Scope{own}, err
	}
	found := make(map[kv.Scope]bool)
	for r := kv.TenantRange(subject.Tenant); ; {
		var last kv.Scope
		r.Limit = 1
		for pair, err := range engine.Scan(ctx, kv.Records, r) {
			if err != nil {
				return nil, err
			}
			if last, _, err = kv.SplitKey(pair.Key); err != nil {
				return nil, err
			}
		}
		if last == (kv.Scope{}) {
			break
		}
		if last.Kind != kv.OwnerSystem {
			found[last] = true
		}
		r.Start = kv.After(last.AppendPrefix(nil))
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b kv.Scope) int { return slices.Compare(a.AppendPrefix(nil), b.AppendPrefix(nil)) }), nil
}

// Refill writes the memories that were left out again, without what was picked, as an import
// of their export does. It returns how many records those are.
func Refill(ctx context.Context, from, to *memory.Store, subject Subject, picked Picked) (records int64, err error) {
	for scope, ids := range picked {
		importer, err := to.Import(ctx, scope, false)
		if err != nil {
			return records, err
		}
		var earlier [][]byte
		err = from.Export(ctx, scope, func(lines [][]byte) error {
			for _, text := range lines {
				line, err := record.ParseLine(text)
				switch {
				case err != nil:
					return err
				case ids[line.Record.ID]:
					continue
				case line.Earlier && subject.Session != "" && line.Record.SessionID == subject.Session:
					earlier = nil // and with it those before
					continue
				case line.Earlier:
					earlier = append(earlier, text)
					continue
				}
				for _, one := range append(earlier, text) {
					if err := importer.Take(ctx, one); err != nil {
						return err
					}
				}
				earlier = nil
			}
			return nil
		})
		if err != nil {
			return records, err
		}
		done, err := importer.End(ctx)
		if records += int64(done.Saved); err != nil {
			return records, err
		}
		if done.Unchanged+done.Skipped > 0 {
			return records, errors.New("erasure: a memory that was to be written anew had records")
		}
	}
	return records, nil
}
