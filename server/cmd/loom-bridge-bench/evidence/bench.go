package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// depth is how many hits a query has at most: as many as MemoryQuery gives.
const depth = 100

// Server is a server of ours on an empty store.
type Server interface {
	loombridgev1.BridgeServiceClient
	loombridgev1.MemoryServiceClient
	// Load saves records in order and waits until they are packed.
	Load(ctx context.Context, agent string, records []*loombridgev1.MemorySaveRequest) error
	// Remove ends the server and removes its store.
	Remove()
}

// Bench is what the tables are made with.
type Bench struct {
	// Serve starts a server on a new store.
	Serve func(ctx context.Context) (Server, error)
	// Data is the folder of the evaluation data, Source that of the project's source; an
	// empty Data leaves out what lies there.
	Data, Source string
	// Only asks the collections whose names hold this text; empty asks all.
	Only string
	// Python is the program that runs the other engines, in folders below Folder.
	Python, Folder string
	// Say says what is being done.
	Say func(format string, args ...any)
	// Table takes the lines.
	Table *tabwriter.Writer
}

// sets are the collections that are there.
func (b *Bench) sets() (all []*sets.Set, err error) {
	readers := []func(string) (*sets.Set, error){sets.Locomo, sets.LocomoSessions, sets.Realmem, sets.Vaswani}
	if b.Data == "" {
		b.Say("LOOM_EVAL_DATA names no folder: only made-up talks are asked")
		readers = nil
	}
	for _, read := range readers {
		set, err := read(b.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, set)
	}
	made, err := sets.Quality(b.Source)
	if err != nil {
		return nil, err
	}
	all = append(all, made, sets.Assistant(sets.FullAssistant))
	return slices.DeleteFunc(all, func(s *sets.Set) bool { return !strings.Contains(s.Name, b.Only) }), nil
}

// each does something with every collection.
func (b *Bench) each(do func(set *sets.Set, sizes *sizes) error) error {
	all, err := b.sets()
	if err != nil {
		return err
	}
	counter, err := tokens.New(nil)
	if err != nil {
		return err
	}
	for _, set := range all {
		sizes, err := newSizes(counter, set)
		if err != nil {
			return err
		}
		if err := do(set, sizes); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) header(title string) {
	fmt.Fprintf(b.Table, "\n%s\tby\tquestions\tR@1\tR@5\tR@10\tR@25\tMRR\tin 1k\tin 4k\tin 16k\t\n", title)
}

// row adds a line of means.
func (b *Bench) row(set *sets.Set, name string, s *score) {
	percent := 100 / float64(max(1, s.questions))
	fmt.Fprintf(b.Table, "%s\t%s\t%d\t", set.Name, name, s.questions)
	for _, sum := range s.depths {
		fmt.Fprintf(b.Table, "%.1f\t", sum*percent)
	}
	fmt.Fprintf(b.Table, "%.3f\t", s.reciprocal*percent/100)
	for _, sum := range s.budgets {
		fmt.Fprintf(b.Table, "%.1f\t", sum*percent)
	}
	fmt.Fprintln(b.Table)
}

// way is one way of asking a server of ours.
type way struct {
	name string
	// change changes a record before it is saved; nil leaves it as it is.
	change func(place int, d *loombridgev1.MemorySaveRequest)
	expand bool
	// without are signals that are switched off.
	without []string
	// budgets: each budget is asked for by itself, with max_tokens, and counts by is evidence.
	budgets bool
	by      how
}

// Draft is the record of a turn; its id is the turn's.
func Draft(t sets.Turn) *loombridgev1.MemorySaveRequest {
	d := &loombridgev1.MemorySaveRequest{
		Id: t.ID, Text: t.Text, Author: t.Author, SessionId: t.Session, Key: t.Key, Supersedes: t.Supersedes,
	}
	if !t.Time.IsZero() {
		d.EventTime = timestamppb.New(t.Time)
	}
	return d
}

// Drafts are the records of turns.
func Drafts(turns []sets.Turn) []*loombridgev1.MemorySaveRequest {
	all := make([]*loombridgev1.MemorySaveRequest, len(turns))
	for i, t := range turns {
		all[i] = Draft(t)
	}
	return all
}

// ours asks a new server of ours in one way.
func (b *Bench) ours(ctx context.Context, set *sets.Set, w way, sizes *sizes) (*score, error) {
	b.Say("%s asks %s", w.name, set.Name)
	server, err := b.Serve(ctx)
	if err != nil {
		return nil, err
	}
	defer server.Remove()
	s := &score{}
	for _, talk := range set.Talks {
		records, known := Drafts(talk.Turns), 0
		for i, d := range records {
			if w.change != nil {
				w.change(i, d)
			}
		}
		for _, q := range talk.Questions {
			if q.After > known {
				if err := server.Load(ctx, talk.ID, records[known:q.After]); err != nil {
					return nil, err
				}
				known = q.After
			}
			if err := judge(ctx, server, talk.ID, q, w, sizes, s); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// judge asks one question and adds what was found.
func judge(ctx context.Context, server Server, talk string, q sets.Question, w way, sizes *sizes, s *score) error {
	request := &loombridgev1.MemoryQueryRequest{AgentId: talk, Query: q.Text, Limit: depth, Expand: w.expand, WithoutSignals: w.without}
	hits, err := ask(ctx, server, request, sizes)
	if err != nil {
		return err
	}
	s.add(q, hits)
	if !w.budgets {
		return nil
	}
	for i, budget := range budgets {
		request.MaxTokens = int32(budget) //nolint:gosec // a small constant
		filled, err := ask(ctx, server, request, sizes)
		if err != nil {
			return err
		}
		s.budgets[i] += q.Recall(ids(within(filled, budget), w.by)) - q.Recall(ids(within(hits, budget), wholeHits))
	}
	return nil
}

// ask returns the hits of a query with the tokens of the returned part of each.
func ask(ctx context.Context, server Server, request *loombridgev1.MemoryQueryRequest, sizes *sizes) ([]hit, error) {
	answer, err := server.MemoryQuery(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("query %.80q: %w", request.GetQuery(), err)
	}
	all := make([]hit, len(answer.GetHits()))
	for i, h := range answer.GetHits() {
		all[i] = sizes.turns[request.GetAgentId()][h.GetRecord().GetId()]
		if len(h.GetPassages()) == 0 {
			continue
		}
		all[i].tokens = 0
		for _, p := range h.GetPassages() {
			n, err := sizes.of(p.GetText())
			if err != nil {
				return nil, err
			}
			all[i].tokens += n
			all[i].passages = append(all[i].passages, p.GetText())
		}
	}
	return all, nil
}
