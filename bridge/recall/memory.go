package recall

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// UserMemory finds records about the user of a prompt.
type UserMemory struct {
	Store Store
	Terms Terms
}

// Name is that of the section.
func (m *UserMemory) Name() string { return settings.UserMemory }

// userFilter keeps out the kinds with separate sections. Unlike != for each, it reads the
// few records of these kinds, not all others.
const userFilter = `NOT (kind = "` + KindKnowledge + `" OR kind = "` + KindPlaybook + `" OR kind = "` + KindNote +
	`" OR kind = "` + KindSkill + `" OR kind = "` + kindTask + `")`

// Collect finds the memories that fit best.
func (m *UserMemory) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return m.collect(ctx, m.Store.At(a.View), a)
}

// Remembered is Collect without a search.
func (m *UserMemory) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	return remembered(m.Store, a, func(view memory.View) (gather.Found, error) { return m.collect(ctx, view, a) })
}

func (m *UserMemory) collect(ctx context.Context, view memory.View, a *gather.Ask) (gather.Found, error) {
	scope, named := userScope(a)
	if !named {
		return gather.Found{Note: "no user is named: give user_id"}, nil
	}
	limit := cmp.Or(a.Settings.Sources.UserMemories, inject.DefaultShown)
	hits, note, err := search(ctx, view, a, query{scopes: []kv.Scope{scope}, filter: userFilter, limit: limit, minScore: inject.MinMemoryScore})
	if err != nil {
		return gather.Found{}, err
	}
	b := &gather.Block{
		Frame:   inject.UserMemory(nil, 0, a.Settings.Cap(settings.UserMemory)),
		NewName: settings.UserMemory + newSuffix,
		Input:   scope.Owner + "\x00" + strconv.Itoa(limit),
	}
	var asked map[string]float64
	for i := range hits {
		r := &hits[i].Record
		if asked == nil && len(r.Text) > passageBytes {
			asked = askedWords(a, m.Terms)
		}
		b.Items = append(b.Items, gather.Item{Ref: refOf(scope, r.ID), Version: versionOf(r), Text: guard.Text("- " + memoryLine(r, asked, m.Terms))})
	}
	if b.Stale, err = changed(ctx, view, a); err != nil {
		return gather.Found{}, err
	}
	read, err := sequences(ctx, view, []kv.Scope{scope})
	return gather.Found{Block: b, Sequences: read, Note: note}, err
}

// newSuffix makes the name of what is found beyond a section that stands. Callers' own
// sections have no colon in their names.
const newSuffix = ":new"

// memoryLine is a record on one line, with its day and who said it where these are
// known: without them "I went there yesterday" says nothing.
func memoryLine(r *record.Record, asked map[string]float64, terms Terms) string {
	var b strings.Builder
	if !r.EventTime.IsZero() {
		b.WriteString("[" + r.EventTime.UTC().Format(time.DateOnly) + "] ")
	}
	if author := text.OneLine(r.Author); author != "" {
		b.WriteString(author + ": ")
	}
	b.WriteString(text.OneLine(partOf(r.Text, r.ID, asked, terms)))
	return b.String()
}
