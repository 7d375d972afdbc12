package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MaxRecords bounds the records that one erasure by session or filter takes out: the
// certificate names each.
const MaxRecords = 1_000_000

// ErrTooMany: a filter lets through more than MaxRecords.
var ErrTooMany = fmt.Errorf("erasure: more than %d records; narrow the filter, or erase the whole", MaxRecords)

// Digests stand for picked records in a certificate.
func Digests(p Picked) []string {
	var all []string
	for scope, ids := range p {
		for id := range ids {
			all = append(all, memory.Digest(scope, id))
		}
	}
	slices.Sort(all)
	return all
}

// Lister lists records of a memory, as memory.Store does.
type Lister interface {
	List(ctx context.Context, scope kv.Scope, l memory.Listing) (memory.Page, error)
}

// Pick finds the records of a session, a step's task or a filter, and the records that an agent saved into
// shared memories. They are deleted or lose its name, so a memory may be picked without any of its records.
// store is on engine; only a filter uses it, and may write to engine then, because an outdated index is
// rebuilt.
func Pick(ctx context.Context, engine kv.Engine, store Lister, subject Subject) (Picked, error) {
	scopes, err := scopesOf(ctx, engine, subject)
	if err != nil {
		return nil, err
	}
	p := picking{picked: make(Picked)}
	if subject.Step != 0 {
		return p.picked, p.ofStep(ctx, engine, scopes[0], subject)
	}
	for _, scope := range scopes {
		if subject.Filter == "" {
			err = p.saved(ctx, engine, scope, subject)
		} else {
			err = p.filtered(ctx, store, scope, subject.Filter)
		}
		if err == nil && p.total > MaxRecords {
			err = ErrTooMany
		}
		if err != nil {
			return nil, err
		}
	}
	return p.picked, nil
}

// picking is one run of Pick.
type picking struct {
	picked Picked
	total  int
}

// add picks a record of a memory; an empty id only the memory.
func (p *picking) add(scope kv.Scope, id string) {
	if p.picked[scope] == nil {
		p.picked[scope] = make(map[string]bool)
	}
	if id != "" && !p.picked[scope][id] {
		p.picked[scope][id] = true
		p.total++
	}
}

func (p *picking) filtered(ctx context.Context, store Lister, scope kv.Scope, filter string) error {
	for l := (memory.Listing{Filter: filter, PageSize: memory.MaxPageSize, Tiers: []int{1, 2, 3, 4}}); ; {
		page, err := store.List(ctx, scope, l)
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			p.add(scope, r.ID)
		}
		if l.PageToken = page.NextPageToken; l.PageToken == "" || p.total > MaxRecords {
			return nil
		}
	}
}

// ofStep picks the tasks that were recorded with a step, in whatever tier they are.
func (p *picking) ofStep(ctx context.Context, engine kv.Engine, scope kv.Scope, subject Subject) error {
	tasks, err := session.StepTasks(ctx, engine, scope, subject.Step, subject.Session)
	if err != nil || len(tasks) == 0 {
		return err
	}
	for r, err := range record.All(ctx, engine, scope) {
		if err != nil {
			return err
		}
		if id, isTask := strings.CutPrefix(r.Key, session.TaskFolder); isTask && slices.Contains(tasks, id) {
			p.add(scope, r.ID)
		}
	}
	return nil
}

// saved picks the records that the subject saved, and memories with earlier versions of such.
func (p *picking) saved(ctx context.Context, engine kv.Engine, scope kv.Scope, subject Subject) error {
	goes := scope.Kind == kv.OwnerAgent || subject.Shared == erase.Records
	for r, err := range record.All(ctx, engine, scope) {
		switch {
		case err != nil:
			return err
		case !memory.SavedIn(subject, scope, &r):
		case goes:
			p.add(scope, r.ID)
		default:
			p.add(scope, "")
		}
	}
	for r, err := range record.EarlierVersions(ctx, engine, scope) {
		if err != nil {
			return err
		}
		if memory.SavedIn(subject, scope, &r) {
			p.add(scope, "")
		}
	}
	return nil
}

// scopesOf are the memories that the subject may have records in.
func scopesOf(ctx context.Context, engine kv.Engine, subject Subject) (scopes []kv.Scope, err error) {
	own, err := scopeOf(subject)
	if err != nil || subject.Kind == User || subject.Kind == Agent && subject.Filter != "" || subject.Step != 0 {
		return []kv.Scope{own}, err
	}
	for scope, err := range kv.ScopesIn(ctx, engine, kv.Records, kv.TenantRange(subject.Tenant)) {
		switch {
		case err != nil:
			return nil, err
		case scope.Kind == kv.OwnerSystem:
		case subject.Kind == Tenant || scope.Kind != kv.OwnerAgent || scope == own && subject.Narrowed():
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// Refill writes the left-out memories again, without the picked records, as an import of
// their export does. It returns the number of records written.
func Refill(ctx context.Context, from, to *memory.Store, subject Subject, picked Picked) (records int64, err error) {
	for scope, ids := range picked {
		importer, err := to.Refill(ctx, scope, from)
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
				case memory.SavedIn(subject, scope, &line.Record):
					if line.Earlier && scope.Kind == kv.OwnerAgent {
						earlier = nil // and with it those before
						continue
					}
					line.Record = memory.Unsigned(subject, line.Record)
					if text, err = line.Encode(); err != nil {
						return err
					}
				}
				if line.Earlier {
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
			return records, errors.New("erasure: a memory to be rewritten had records")
		}
	}
	return records, nil
}
