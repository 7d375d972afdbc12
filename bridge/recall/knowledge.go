package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// DefaultKnowledge is how many pieces of knowledge a prompt shows.
	DefaultKnowledge = 3
	// DefaultKnowledgeTimeout is how long a prompt waits for them.
	DefaultKnowledgeTimeout = 100 * time.Millisecond
	// minKnowledgeScore is how sure a search must be.
	minKnowledgeScore = 0.1
	// knowledgePriority is where the section stands among those of its phase.
	knowledgePriority = 80
	// maxLabelChars bounds titles, types and sources.
	maxLabelChars = 200
)

// Piece is a piece of knowledge.
type Piece struct {
	// Title names it, Type says what it is, and Source where it comes from, such as a
	// path. All may be empty.
	Title, Type, Source string
	// Content is what it says.
	Content string
	// Score says from 0 to 1 how well it fits.
	Score float64

	ref, version string
}

// Base is a knowledge base outside. Its methods are safe for concurrent use.
type Base interface {
	// Find returns at most limit pieces, the best first. It ends soon after ctx does.
	Find(ctx context.Context, query string, limit int) ([]Piece, error)
}

// Knowledge is what is known of the subject of a prompt.
type Knowledge struct {
	Store Store
	Terms Terms
	// Base is asked in place of the records of the kind `knowledge`; nil: these.
	Base Base
}

// Name is that of the section.
func (k *Knowledge) Name() string { return settings.Knowledge }

// Timeout is how long a prompt waits.
func (k *Knowledge) Timeout(a *gather.Ask) time.Duration {
	return cmp.Or(a.Settings.Sources.KnowledgeTimeout, DefaultKnowledgeTimeout)
}

const knowledgeFilter = `kind = "` + KindKnowledge + `"`

// Collect finds the pieces that fit best.
func (k *Knowledge) Collect(ctx context.Context, a *gather.Ask) (found gather.Found, err error) {
	limit := cmp.Or(a.Settings.Sources.Knowledge, DefaultKnowledge)
	var pieces []Piece
	stale := false
	if k.Base != nil {
		pieces, err = k.outside(ctx, a, limit)
	} else {
		view := k.Store.At(a.View)
		if pieces, found.Note, err = k.records(ctx, view, a, limit); err == nil {
			stale, err = changed(ctx, view, a)
		}
		if err == nil {
			found.Sequences, err = sequences(ctx, view, scopesOf(a))
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

// records finds records of the kind.
func (k *Knowledge) records(ctx context.Context, view memory.View, a *gather.Ask, limit int) ([]Piece, string, error) {
	hits, note, err := search(ctx, view, a, query{scopes: scopesOf(a), filter: knowledgeFilter, limit: limit, minScore: minKnowledgeScore})
	if err != nil || len(hits) == 0 {
		return nil, note, err
	}
	words := askedWords(a, k.Terms)
	pieces := make([]Piece, len(hits))
	for i, hit := range hits {
		pieces[i] = pieceOf(&hit.Record)
		pieces[i].Content = passage(hit.Record.Text, words, k.Terms)
		pieces[i].Score = hit.Score
		pieces[i].ref = refOf(hit.Scope, hit.Record.ID)
	}
	return pieces, note, nil
}

// pieceOf is a record of the kind, without its content: metadata say title, type and
// source (or path); the record's key stands in for a title or source that nobody gave.
func pieceOf(r *record.Record) Piece {
	var m struct {
		Title, Type, Source, Path, URL any
	}
	_ = json.Unmarshal(r.Metadata, &m) // what does not fit is not there
	return Piece{
		Title: cmp.Or(said(m.Title), r.Key, r.ID), Type: cmp.Or(said(m.Type), KindKnowledge),
		Source: cmp.Or(said(m.Source), said(m.Path), said(m.URL), r.Key, "memory:"+r.ID), version: versionOf(r),
	}
}

// said is a value if it is text.
func said(v any) string {
	s, _ := v.(string)
	return s
}

// outside asks the base, for what fits the newest message and, where there is none, the
// goal.
func (k *Knowledge) outside(ctx context.Context, a *gather.Ask, limit int) ([]Piece, error) {
	words := cmp.Or(strings.TrimSpace(clipped(a.Newest)), strings.TrimSpace(clipped(a.Goal)))
	if words == "" {
		return nil, nil
	}
	all, err := k.Base.Find(ctx, words, limit)
	if err != nil {
		return nil, err
	}
	var pieces []Piece
	asked := askedWords(a, k.Terms)
	for i := range all[:min(len(all), limit)] {
		p := all[i]
		if strings.TrimSpace(p.Content) == "" || p.Score < minKnowledgeScore {
			continue
		}
		p.Content = passage(p.Content, asked, k.Terms)
		p.ref = cmp.Or(p.Source, p.Title)
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// label is a title, type or source on one line.
func label(s string) string { return text.CutChars(text.OneLine(text.Valid(s)), maxLabelChars, text.Ellipsis) }

// block is the section of the layouts that have one.
func (k *Knowledge) block(a *gather.Ask, pieces []Piece, limit int) *gather.Block {
	b := &gather.Block{
		Frame: inject.Injection{
			Name: settings.Knowledge, Phase: inject.UserContext, Cache: inject.Session, Priority: knowledgePriority,
			MaxTokens: a.Settings.Cap(settings.Knowledge), Tag: "knowledge_context", Framed: true, Source: "knowledge",
		},
		Between: "\n\n",
		NewName: settings.Knowledge + newSuffix,
		Input:   a.Settings.UserID + "\x00" + strconv.Itoa(limit),
		Write:   func(number int, item gather.Item) string { return "[" + strconv.Itoa(number) + "] " + item.Text },
	}
	for i := range pieces {
		p := &pieces[i]
		b.Items = append(b.Items, gather.Item{Ref: p.ref, Version: p.version, Text: fmt.Sprintf("%s (%s) score %.2f\n%s\nSource: %s",
			guardedLabel(p.Title), guardedLabel(p.Type), p.Score, inject.Guard(p.Content), guardedLabel(p.Source))})
	}
	return b
}

// guardedLabel is a label in which a stranger opens no tag. It does not begin a line, so
// that nothing else is to be marked.
func guardedLabel(s string) string { return strings.TrimPrefix(inject.Guard(label(s)), "| ") }

// asMessages is the section of the layout task_context: a message of the system each,
// within the cap.
func (k *Knowledge) asMessages(a *gather.Ask, pieces []Piece, found *gather.Found) {
	limit := a.Settings.Cap(settings.Knowledge)
	in := inject.Injection{
		Name: settings.Knowledge, Phase: inject.UserContext, Cache: inject.Dynamic, Priority: knowledgePriority, MaxTokens: limit,
		Framed: true, Source: "knowledge",
	}
	sum := 0
	for i := range pieces {
		p := &pieces[i]
		content := "📚 Knowledge: " + inject.Guard(p.Content) + "\n(Source: " + guardedLabel(p.Source) + ")"
		n := a.Count(content)
		if limit > 0 && sum+n > limit {
			if sum > 0 {
				found.LeftOut = append(found.LeftOut, p.ref)
				continue
			}
			content = inject.Lines(content, limit, a.Count)
			n = a.Count(content)
		}
		sum += n
		in.Messages = append(in.Messages, session.Message{Role: session.System, Content: content})
		found.Refs = append(found.Refs, p.ref)
	}
	if len(in.Messages) > 0 {
		found.Injections = append(found.Injections, in)
	}
}
