package tiers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// maxMoveBytes bounds the texts of one move, so that the move and its part of the index
// fit one commit. The rest goes with the next move.
const maxMoveBytes = 1 << 20

// due reports whether a tier is at least nine tenths full.
func due(n, capacity int) bool { return n*10 >= capacity*9 }

// summarize moves the least important tasks of L2 to L3, the oldest first among
// equals.
func (t *Tiers) summarize(ctx context.Context, p sessionKey, tally session.Tally) (again bool, err error) {
	if !due(tally.Second, t.opts.L2) {
		return false, nil
	}
	members, err := t.members(ctx, p, tierWorking)
	if err != nil {
		return false, err
	}
	if !due(len(members), t.opts.L2) {
		return false, t.recount(ctx, p, tally, func(now *session.Tally) { now.Second = len(members) })
	}
	slices.SortStableFunc(members, func(a, b record.Record) int { return cmp.Compare(a.Importance, b.Importance) })
	moves, err := t.moves(ctx, p, chosen(members), tierSummary, tally.Moved)
	if err != nil || len(moves) == 0 {
		return false, err
	}
	return true, t.move(ctx, p, moves, tally, func(now *session.Tally) {
		now.Second = len(members) - len(moves)
		now.Third += len(moves)
		now.Moved += uint64(len(moves))
	})
}

// archive moves the tasks that have been in L3 the longest to L4.
func (t *Tiers) archive(ctx context.Context, p sessionKey, tally session.Tally) (again bool, err error) {
	if !due(tally.Third, t.opts.L3) {
		return false, nil
	}
	members, err := t.members(ctx, p, tierSummary)
	if err != nil {
		return false, err
	}
	if !due(len(members), t.opts.L3) {
		return false, t.recount(ctx, p, tally, func(now *session.Tally) { now.Third = len(members) })
	}
	sortByMoved(members)
	moves, err := t.moves(ctx, p, chosen(members), record.LongTerm, 0)
	if err != nil || len(moves) == 0 {
		return false, err
	}
	return true, t.move(ctx, p, moves, tally, func(now *session.Tally) { now.Third = len(members) - len(moves) })
}

// chosen returns the records that leave a tier. Pinned ones stay.
func chosen(members []record.Record) []record.Record {
	n := max(1, len(members)/5)
	free := slices.DeleteFunc(members, func(r record.Record) bool { return r.Pinned })
	return free[:min(n, len(free))]
}

// sortByMoved puts records into the order in which they entered L3.
func sortByMoved(members []record.Record) {
	order := make(map[string]uint64, len(members))
	for _, r := range members {
		s, _ := SummaryOf(r)
		order[r.ID] = s.Moved
	}
	slices.SortStableFunc(members, func(a, b record.Record) int { return cmp.Compare(order[a.ID], order[b.ID]) })
}

// moves prepares the moves of records to a tier. Records that enter L3 get consecutive
// numbers (Summary.Moved) after the last one.
func (t *Tiers) moves(ctx context.Context, p sessionKey, records []record.Record, tier int, moved uint64) ([]*memory.Staging, error) {
	var all []*memory.Staging
	size := 0
	for _, r := range records {
		values := record.Record{Tier: tier, Text: r.Text}
		task, err := t.log.Task(ctx, p.scope, strings.TrimPrefix(r.Key, session.TaskFolder))
		switch {
		case err == nil:
			values.Text = kept(r, recordText(task, r.Tier), recordText(task, tier))
		case !errors.Is(err, session.ErrTaskNotFound) && !errors.Is(err, session.ErrInvalid):
			return nil, err
		}
		if size += len(values.Text) + len(r.Metadata); size > maxMoveBytes && len(all) > 0 {
			break
		}
		fields, metadata := memory.TierField|memory.TextField, map[string]any(nil)
		if tier == tierSummary {
			moved++
			fields, metadata = fields|memory.MetadataField, map[string]any{"moved": moved}
		}
		change, err := t.update(ctx, p, r, fields, values, metadata)
		if err != nil {
			return nil, err
		}
		all = append(all, change)
	}
	return all, nil
}

// move commits moves, if the tally has not changed since they were chosen.
func (t *Tiers) move(ctx context.Context, p sessionKey, moves []*memory.Staging, from session.Tally, change func(*session.Tally)) error {
	return t.commit(ctx, p, moves, func(ctx context.Context, tx *kv.Tx) error {
		return t.log.StageTally(ctx, tx, p.scope, p.session, func(now *session.Tally) error {
			if now.Second != from.Second || now.Third != from.Third || now.Moved != from.Moved {
				return errMoved
			}
			change(now)
			return nil
		})
	})
}

// recount corrects the tally of a tier that holds less than the tally says.
func (t *Tiers) recount(ctx context.Context, p sessionKey, from session.Tally, change func(*session.Tally)) error {
	return t.move(ctx, p, nil, from, change)
}

// members are the records of a session in a tier, in the order of their tasks.
func (t *Tiers) members(ctx context.Context, p sessionKey, tier int) ([]record.Record, error) {
	return members(ctx, t.store.List, p, tier)
}

// members returns the records that list yields.
func members(ctx context.Context, list func(context.Context, kv.Scope, memory.Listing) (memory.Page, error), p sessionKey, tier int) ([]record.Record, error) {
	listing := memory.Listing{
		Filter:   "kind = " + quoted(Kind) + " AND session_id = " + quoted(p.session),
		Tiers:    []int{tier},
		PageSize: memory.MaxPageSize,
	}
	var all []record.Record
	for {
		page, err := list(ctx, p.scope, listing)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Records...)
		if listing.PageToken = page.NextPageToken; listing.PageToken == "" {
			return all, nil
		}
	}
}

// quoted returns a text as a filter quotes it.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
