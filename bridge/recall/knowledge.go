package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// DefaultKnowledgeTimeout is how long a prompt waits for knowledge.
const DefaultKnowledgeTimeout = 100 * time.Millisecond

// piece is a piece of knowledge and the record, or what else, that it is.
type piece struct {
	inject.Snippet
	ref, version string
}

// maxLabelChars bounds titles, types and sources.
const maxLabelChars = 200

// Knowledge finds records about the subject of a prompt.
type Knowledge struct {
	Store Store
	Terms Terms
	// Base is asked in place of the records of the kind `knowledge`; nil: these.
	Base *Endpoint
}

// Name is that of the section.
func (k *Knowledge) Name() string { return settings.Knowledge }

// Timeout is how long a prompt waits.
func (k *Knowledge) Timeout(a *gather.Ask) time.Duration {
	return cmp.Or(a.Settings.Sources.KnowledgeTimeout, DefaultKnowledgeTimeout)
}

const knowledgeFilter = `kind = "` + KindKnowledge + `"`

// Collect finds the pieces that fit best.
func (k *Knowledge) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return k.collect(ctx, k.Store.At(a.View), a)
}

// Remembered is Collect without a search. A base outside is always asked.
func (k *Knowledge) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	if k.Base != nil {
		return gather.Found{}, false, nil
	}
	return remembered(k.Store, a, func(view memory.View) (gather.Found, error) { return k.collect(ctx, view, a) })
}

func (k *Knowledge) collect(ctx context.Context, view memory.View, a *gather.Ask) (found gather.Found, err error) {
	limit := cmp.Or(a.Settings.Sources.Knowledge, inject.DefaultKnowledge)
	var pieces []piece
	stale := false
	if k.Base != nil {
		pieces, err = k.outside(ctx, a, limit)
	} else {
		if pieces, found.Note, err = k.records(ctx, view, a, limit); err == nil {
			stale, err = changed(ctx, view, a)
		}
	}
	if err != nil {
		return gather.Found{}, err
	}
	if a.Layout == settings.TaskContext {
		k.asMessages(a, pieces, &found)
		return found, nil
	}
	found.Block = k.block(a, pieces, limit)
	found.Block.Stale = stale
	return found, nil
}

// label is a title, type or source on one line.
func label(s string) string {
	return text.CutChars(text.OneLine(text.Valid(s)), maxLabelChars, text.Ellipsis)
}

// records finds records of the kind.
func (k *Knowledge) records(ctx context.Context, view memory.View, a *gather.Ask, limit int) ([]piece, string, error) {
	type noted struct {
		pieces []piece
		note   string
	}
	all, err := search(ctx, view, a, query{
		scopes: scopesOf(a), filter: knowledgeFilter, limit: limit, minScore: inject.MinKnowledgeScore, minShare: minShare,
	}, func(found *results) (noted, int) {
		pieces := make([]piece, len(found.hits))
		for i, hit := range found.hits {
			pieces[i] = pieceOf(&hit.Record)
			pieces[i].Writers = writersOf(a.Scope, hit.Scope, &hit.Record)
			pieces[i].Content = partOf(hit.Record.Text, hit.Record.ID, found.words, k.Terms)
			pieces[i].Score = hit.Score
			pieces[i].ref = refOf(hit.Scope, hit.Record.ID)
		}
		return noted{pieces, found.note}, found.bytes()
	})
	return all.pieces, all.note, err
}

// pieceOf is a record of the kind, without its content: metadata say title, type and
// source (or path); the record's key stands in for a missing title or source.
func pieceOf(r *record.Record) piece {
	var m struct {
		Title, Type, Source, Path, URL any
	}
	_ = json.Unmarshal(r.Metadata, &m) // what does not fit is not there
	return piece{version: versionOf(r), Snippet: inject.Snippet{
		Title: label(cmp.Or(said(m.Title), r.Key, r.ID)), Type: label(cmp.Or(said(m.Type), KindKnowledge)),
		Source: label(cmp.Or(said(m.Source), said(m.Path), said(m.URL), r.Key, "memory:"+r.ID)),
	}}
}

// writersOf is who wrote a record, for a prompt of an agent.
func writersOf(agent, scope kv.Scope, r *record.Record) instruct.Who {
	switch {
	case r.Origin.Foreign():
		return instruct.Tool
	case scope != agent && r.SavedBy != agent.Owner:
		return instruct.Agent
	case r.Vouched():
		return instruct.Program
	case r.Writer == writer.Import:
		return instruct.Import
	}
	return instruct.Model
}

// said is a value if it is text.
func said(v any) string {
	s, _ := v.(string)
	return s
}

// outside asks the base, for what fits the newest message and, where there is none, the
// goal.
func (k *Knowledge) outside(ctx context.Context, a *gather.Ask, limit int) ([]piece, error) {
	words := cmp.Or(strings.TrimSpace(clipped(a.Newest)), strings.TrimSpace(clipped(a.Goal)))
	if words == "" {
		return nil, nil
	}
	all, err := k.Base.Find(ctx, words, limit)
	if err != nil {
		return nil, err
	}
	var pieces []piece
	asked := askedWords(a, k.Terms)
	for i := range all[:min(len(all), limit)] {
		p := piece{Snippet: all[i]}
		p.Writers = instruct.Tool
		if strings.TrimSpace(p.Content) == "" || p.Score < inject.MinKnowledgeScore {
			continue
		}
		p.Content = partOf(p.Content, "", asked, k.Terms)
		p.Title, p.Type, p.Source = label(p.Title), label(p.Type), label(p.Source)
		sum := sha256.Sum256([]byte(all[i].Content))
		p.ref = cmp.Or(p.Source, p.Title) + "#" + hex.EncodeToString(sum[:4])
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// block is the section of the layouts that have one.
func (k *Knowledge) block(a *gather.Ask, pieces []piece, limit int) *gather.Block {
	b := &gather.Block{
		Frame:   inject.Knowledge(nil, 0, a.Settings.Cap(settings.Knowledge)),
		Between: "\n\n",
		NewName: settings.Knowledge + newSuffix,
		Input:   a.Settings.UserID + "\x00" + strconv.Itoa(limit),
	}
	snippets := make(map[string]*inject.Snippet, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		snippets[p.ref] = &p.Snippet
		b.Items = append(b.Items, gather.Item{Ref: p.ref, Version: p.version})
	}
	b.Write = func(number int, item gather.Item) string { return snippets[item.Ref].Numbered(number) }
	return b
}

// asMessages is the section of the layout task_context: a message each, as many as fit the
// cap.
func (k *Knowledge) asMessages(a *gather.Ask, pieces []piece, found *gather.Found) {
	limit, sum := a.Settings.Cap(settings.Knowledge), 0
	var snippets []inject.Snippet
	for i := range pieces {
		p := &pieces[i]
		n := a.Count(inject.KnowledgeMessages([]inject.Snippet{p.Snippet}, 1, 0).Messages[0].Content)
		if limit > 0 && sum+n > limit {
			found.LeftOut = append(found.LeftOut, p.ref)
			continue
		}
		sum += n
		snippets, found.Refs = append(snippets, p.Snippet), append(found.Refs, p.ref)
	}
	if len(snippets) > 0 {
		found.Injections = []inject.Injection{inject.KnowledgeMessages(snippets, len(snippets), limit)}
	}
}
