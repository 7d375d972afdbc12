package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/passage"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// UserMemory finds records of the agent and of the user of a prompt that fit it.
type UserMemory struct {
	Store Store
	Terms Terms
	// Memo remembers records that were packed before. Default: none.
	Memo *passage.Memo
}

// Name is that of the section.
func (m *UserMemory) Name() string { return settings.UserMemory }

// ownKinds are the kinds with a separate section. Unlike != for each, a condition with
// NOT reads the few records of these and not all others.
const ownKinds = `kind = ("` + KindKnowledge + `" OR "` + KindPlaybook + `" OR "` + KindSkill + `" OR "` + kindTask + `")`

// Collect finds the memories that fit best.
func (m *UserMemory) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return m.collect(ctx, m.Store.At(a.View), a)
}

// Remembered is Collect without a search.
func (m *UserMemory) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	return remembered(m.Store, a, func(view memory.View) (gather.Found, error) { return m.collect(ctx, view, a) })
}

func (m *UserMemory) collect(ctx context.Context, view memory.View, a *gather.Ask) (gather.Found, error) {
	limit := cmp.Or(a.Settings.Sources.UserMemories, settings.MaxShown)
	scopes := scopesOf(a)
	found, err := search(ctx, view, a, query{scopes: scopes, filter: "NOT " + ownKinds, limit: limit}, asFound)
	if err != nil {
		return gather.Found{}, err
	}
	b := &gather.Block{
		Frame:   inject.UserMemory(a.Settings.Cap(settings.UserMemory)),
		NewName: settings.UserMemory + newSuffix,
		Input:   a.Settings.UserID + "\x00" + strconv.Itoa(limit),
		Pack: func(room int, shown func(ref string) bool) ([]gather.Item, []string) {
			return m.pack(ctx, a, &found, room, shown)
		},
		Packs: func(shown func(ref string) bool) string { return packs(a, &found, shown) },
	}
	if b.Stale, err = changed(ctx, view, a); err != nil {
		return gather.Found{}, err
	}
	if len(found.hits) == 0 && len(scopes) == 1 {
		found.note += "; no user is named: give user_id"
	}
	return gather.Found{Block: b, Note: found.note}, nil
}

// packs is a digest of all that says how memories are packed.
func packs(a *gather.Ask, found *results, shown func(ref string) bool) string {
	var said []byte
	add := func(s string) { said = append(binary.AppendUvarint(said, uint64(len(s))), s...) }
	for _, s := range []string{a.Newest, a.Goal, a.Before, a.Answer} {
		add(s)
	}
	for i := range found.hits {
		hit := &found.hits[i]
		ref := refOf(hit.Scope, hit.Record.ID)
		add(ref)
		add(versionOf(&hit.Record))
		for _, id := range hit.Older {
			add(id)
		}
		said = strconv.AppendBool(binary.BigEndian.AppendUint64(said, math.Float64bits(hit.Score)), shown(ref))
	}
	sum := sha256.Sum256(said)
	return string(sum[:])
}

// partHint ends the first line that says a part of a memory. Names of records would take more
// room than most passages.
const partHint = " [" + text.Ellipsis + " was left out: search memory for these words to read all of it]"

// packAttempts bounds how often memories are chosen again because their lines take more than was
// thought.
const packAttempts = 3

// pack chooses of what was found what says most within so many tokens: short memories whole, of
// long ones passages.
func (m *UserMemory) pack(ctx context.Context, a *gather.Ask, found *results, room int, shown func(ref string) bool) (items []gather.Item, left []string) {
	var hits []memory.Hit
	var texts []passage.Text
	for i, hit := range found.hits {
		said := strings.TrimSpace(text.Valid(hit.Record.Text))
		if said == "" || shown(refOf(hit.Scope, hit.Record.ID)) {
			continue
		}
		beside := a.Count(inject.MemoryLine(memoryLine(&hit.Record, "", len(hit.Older) > 0)))
		hits, texts = append(hits, hit), append(texts, passage.Text{Text: said, Value: passage.ValueOf(i, hit.Score), Beside: beside})
	}
	if len(hits) == 0 {
		return nil, nil
	}
	// A line break, or what is left out, takes a token before each.
	by := passage.Filler{Terms: m.Terms, Weights: found.words, Count: func(s string) int { return a.Count(s) + 1 }, Memo: m.Memo}
	budget := cmp.Or(max(room, 0), math.MaxInt32)
	for range packAttempts {
		parts, err := by.Fill(ctx, texts, budget)
		if err != nil {
			return nil, nil
		}
		given := make(map[string]bool, len(hits))
		for i := range hits {
			given[refOf(hits[i].Scope, hits[i].Record.ID)] = parts[i].Given()
		}
		stands := func(ref string) bool { return given[ref] || shown(ref) }
		tokens, hint := 0, partHint
		items, left = nil, nil
		for i := range hits {
			r := &hits[i].Record
			item := gather.Item{Ref: refOf(hits[i].Scope, r.ID), Version: versionOf(r)}
			said := texts[i].Text
			switch {
			case !parts[i].Given():
				left = append(left, item.Ref)
				continue
			case !parts[i].Whole:
				said = joinedPassages(said, parts[i].Passages) + hint
				item.Part, hint = true, ""
			}
			item.Text = inject.MemoryLine(memoryLine(r, said, isNewest(hits, i, stands)))
			items, tokens = append(items, item), tokens+a.Count(item.Text)+1
		}
		if room <= 0 || tokens <= room {
			break
		}
		budget = max(budget-(tokens-room), 1)
	}
	return items, left
}

// newSuffix makes the name of what is found beyond a section that stands. Callers' own
// sections have no colon in their names.
const newSuffix = ":new"

// newestMark stands in a line beside which an older one stands.
const newestMark = "newest"

// isNewest reports whether a hit states anew what a record that stands beside it stated before,
// and no other hit states it anew.
func isNewest(hits []memory.Hit, i int, stands func(ref string) bool) bool {
	hit := &hits[i]
	states := func(newer memory.Hit) bool {
		return newer.Scope == hit.Scope && slices.Contains(newer.Older, hit.Record.ID)
	}
	return slices.ContainsFunc(hit.Older, func(id string) bool { return stands(refOf(hit.Scope, id)) }) && !slices.ContainsFunc(hits, states)
}

// memoryLine is what is shown of a record, with its day, the day until which it is true, that it
// is the newest of what was said of the same, and who said it where these are known: without
// them "I went there yesterday" says nothing, and what is over looks as true as the rest.
func memoryLine(r *record.Record, said string, newest bool) string {
	var b strings.Builder
	var days []string
	if !r.EventTime.IsZero() {
		days = append(days, r.EventTime.UTC().Format(time.DateOnly))
	}
	if !r.ValidUntil.IsZero() {
		days = append(days, "until "+r.ValidUntil.UTC().Format(time.DateOnly))
	}
	if newest {
		days = append(days, newestMark)
	}
	if len(days) > 0 {
		b.WriteString("[" + strings.Join(days, " ") + "] ")
	}
	if author := text.OneLine(r.Author); author != "" {
		b.WriteString(author + ": ")
	}
	b.WriteString(said)
	return b.String()
}
