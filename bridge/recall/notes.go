package recall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// agentsFile is what a workspace says to all agents.
	agentsFile = "AGENTS.md"
	// agentsName is the name of its part of the section.
	agentsName = settings.Notes + ":agents_md"
	// agentsPriority and notesPriority are where the parts stand: before what is found.
	agentsPriority = 100
	notesPriority  = 95
	// maxNotes bounds the notes that are looked at of the agent, and of the user.
	maxNotes = 100
)

// Workspaces are where agents work.
type Workspaces interface {
	// RootIn returns the workspace of an agent, for a call that may read within a view. It
	// stays open.
	RootIn(ctx context.Context, scope kv.Scope) (*os.Root, error)
}

// Notes stand in every prompt of an agent, whatever it is about: the AGENTS.md of its
// workspace, or the text of the settings in its place, and what is always remembered of the
// agent and the user, which are the records of the kind `note` and those that are pinned. The
// section's cap is that of AGENTS.md, and again that of the records.
type Notes struct {
	Store Store
	Terms Terms
	// Agents reads AGENTS.md; nil: it is not read.
	Agents *AgentsFiles
}

// Name is that of the section.
func (n *Notes) Name() string { return settings.Notes }

// Collect reads AGENTS.md and the notes.
func (n *Notes) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return n.collect(ctx, n.Store.At(a.View), a)
}

// Remembered is Collect without a search.
func (n *Notes) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	if a.Settings.AgentsMD == "" && n.Agents != nil && !n.Agents.Known(a.Scope) {
		return gather.Found{}, false, nil
	}
	return remembered(n.Store, a, func(view memory.View) (gather.Found, error) { return n.collect(ctx, view, a) })
}

func (n *Notes) collect(ctx context.Context, view memory.View, a *gather.Ask) (gather.Found, error) {
	found := gather.Found{}
	limit := a.Settings.Cap(settings.Notes)
	agents, source, names, err := n.agents(ctx, a)
	if err != nil {
		found.Failures = append(found.Failures, gather.Failure{Source: agentsName, Reason: agentsFile + " can't be read: " + err.Error()})
	}
	if agents != "" {
		in := inject.Injection{
			Name: agentsName, Phase: inject.UserContext, Cache: inject.Stable, Priority: agentsPriority, MaxTokens: limit,
			Tag: guard.TagAgents, Text: agents, Source: source,
			Rest: "Read in the workspace for the rest, if it says more about what you do: " + names + ".",
		}
		found.Injections, found.Refs = append(found.Injections, in), append(found.Refs, agentsFile)
	}
	return found, n.notes(ctx, view, a, limit, &found)
}

// agents is the text of AGENTS.md, and where it is from; empty where there is none. The
// file is that of the workspace, so all agents that work there get it.
func (n *Notes) agents(ctx context.Context, a *gather.Ask) (said, source, names string, err error) {
	if own := a.Settings.AgentsMD; own != "" || n.Agents == nil {
		return own, fmt.Sprintf("agents_md of the settings, %d bytes", len(own)), agentsFile, nil
	}
	head, err := n.Agents.Head(ctx, a.Scope)
	switch {
	case err != nil:
		return "", "", "", err
	case head.Size < 0:
		return "", "", "", nil
	case bytes.IndexByte(head.Text, 0) >= 0:
		return "", "", "", errors.New("it holds a NUL, so it is no text")
	}
	if names = strings.Join(head.Names[:min(len(head.Names), maxNamed)], ", "); len(head.Names) > maxNamed {
		names += fmt.Sprintf(" and %d more", len(head.Names)-maxNamed)
	}
	source = fmt.Sprintf("%s of the workspace, %d bytes", names, head.Size)
	shown := head.Text
	if head.Size > int64(len(shown)) {
		shown = text.WholeChars(shown)
		source += fmt.Sprintf(", the first %d of them", len(shown))
	}
	return text.Valid(string(shown)), source, names, nil
}

// maxNamed bounds the rule files that are named.
const maxNamed = 4

// noteFilter finds notes, and pinned records without a separate section.
const noteFilter = `kind = "` + KindNote + `" OR (pinned = true AND NOT ` + ownKinds + `)`

// notes adds the notes.
func (n *Notes) notes(ctx context.Context, view memory.View, a *gather.Ask, limit int, found *gather.Found) error {
	all, err := memory.Whole(ctx, view, scopesOf(a), []string{settings.Notes}, func(view memory.View) (all listedNotes, bytes int, err error) {
		all, err = n.listed(ctx, view, a)
		for i := range all.items {
			bytes += noteBytes + len(all.items[i].Text)
		}
		return all, bytes, err
	})
	if err != nil {
		return err
	}
	b := &gather.Block{
		Frame: inject.Injection{
			Name: settings.Notes, Phase: inject.UserContext, Cache: inject.Session, Priority: notesPriority, MaxTokens: limit,
			Tag: guard.TagNotes, Framed: true, Source: "notes",
		},
		Items:   all.items,
		NewName: settings.Notes + newSuffix,
		Rest:    "More notes were saved than fit here: search your memory for them.",
		More:    all.more,
		Input:   a.Settings.UserID + "\x00" + strconv.Itoa(limit),
	}
	b.Stale, err = changed(ctx, view, a)
	found.Block = b
	return err
}

// listedNotes are notes as they are shown; more says that there are others.
type listedNotes struct {
	items []gather.Item
	more  bool
}

// noteBytes is about how many bytes a note takes in memory in addition to its text.
const noteBytes = 256

// listed are the notes: the most important first, and of equal ones the newest.
func (n *Notes) listed(ctx context.Context, view memory.View, a *gather.Ask) (listed listedNotes, err error) {
	type note struct {
		scope  kv.Scope
		record *record.Record
	}
	var all []note
	for _, scope := range scopesOf(a) {
		page, err := view.List(ctx, scope, memory.Listing{Filter: noteFilter, PageSize: maxNotes, NewestFirst: true})
		if err != nil {
			return listed, err
		}
		listed.more = listed.more || page.NextPageToken != ""
		for i := range page.Records {
			if r := &page.Records[i]; !r.Archived && r.SupersededBy == "" && !r.Review.Hides() {
				all = append(all, note{scope, r})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b note) int {
		return cmp.Or(cmp.Compare(b.record.Importance, a.record.Importance), b.record.CreateTime.Compare(a.record.CreateTime))
	})
	for i := range all {
		r := all[i].record
		listed.items = append(listed.items, gather.Item{
			Ref: refOf(all[i].scope, r.ID), Version: versionOf(r), Text: guard.Text("- " + text.OneLine(partOf(r.Text, r.ID, nil, n.Terms))),
		})
	}
	return listed, nil
}
