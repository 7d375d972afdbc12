package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

const (
	// factsPerScope is how many facts one memory holds.
	factsPerScope = 1000
	// factHits is how many hits are looked at.
	factHits = 5
	// chatMessages is the length of the sessions of a chat.
	chatMessages = 100
)

// Telling is a way in which facts and their changes are saved.
type Telling struct {
	Name string
	// Save saves the facts of one memory, every fact's older texts before its newer ones.
	Save func(ctx context.Context, server Server, agent string, facts []sets.Fact) error
}

// Tellings are all ways.
func Tellings() []Telling {
	return []Telling{
		{"records with a key, updated", updateFacts},
		{"records with key and supersedes", func(ctx context.Context, s Server, agent string, facts []sets.Fact) error {
			return saveFacts(ctx, s, agent, facts, true, true)
		}},
		{"records with supersedes", func(ctx context.Context, s Server, agent string, facts []sets.Fact) error {
			return saveFacts(ctx, s, agent, facts, false, true)
		}},
		{"records, by form alone", func(ctx context.Context, s Server, agent string, facts []sets.Fact) error {
			return saveFacts(ctx, s, agent, facts, false, false)
		}},
		{"chat, by form alone", chatFacts},
	}
}

// rounds calls do with every text that is said in a round, the first texts of all facts
// first.
func rounds(facts []sets.Fact, do func(round int, f sets.Fact) error) error {
	for round := range sets.MaxFactChanges + 1 {
		for _, f := range facts {
			if round < len(f.Said) {
				if err := do(round, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// updateFacts saves each fact once under its key, and updates the record by it.
func updateFacts(ctx context.Context, server Server, agent string, facts []sets.Fact) error {
	first := make([]*loombridgev1.MemorySaveRequest, len(facts))
	for i, f := range facts {
		first[i] = &loombridgev1.MemorySaveRequest{Key: f.Key, Text: f.Said[0]}
	}
	if err := server.Load(ctx, agent, first); err != nil {
		return err
	}
	return rounds(facts, func(round int, f sets.Fact) error {
		if round == 0 {
			return nil
		}
		_, err := server.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
			AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: f.Key}, Record: &loombridgev1.MemorySaveRequest{Text: f.Said[round]},
		})
		return err
	})
}

func factID(f sets.Fact, round int) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(f.Key, "/", "-"), round)
}

func saveFacts(ctx context.Context, server Server, agent string, facts []sets.Fact, key, supersedes bool) error {
	var all []*loombridgev1.MemorySaveRequest
	_ = rounds(facts, func(round int, f sets.Fact) error { // never fails
		d := &loombridgev1.MemorySaveRequest{Id: factID(f, round), Text: f.Said[round]}
		if key {
			d.Key = f.Key
		}
		if supersedes && round > 0 {
			d.Supersedes = factID(f, round-1)
		}
		all = append(all, d)
		return nil
	})
	return server.Load(ctx, agent, all)
}

// chatFacts saves the facts as sessions of a user and an assistant, who repeats every
// second text.
func chatFacts(ctx context.Context, server Server, agent string, facts []sets.Fact) error {
	begin := time.Date(2025, 1, 6, 9, 0, 0, 0, time.UTC)
	var all []*loombridgev1.MemorySaveRequest
	add := func(author, text string) {
		session := len(all) / chatMessages
		all = append(all, &loombridgev1.MemorySaveRequest{
			Text: text, Author: author, SessionId: fmt.Sprintf("session-%d", session), EventTime: timestamppb.New(begin.AddDate(0, 0, session)),
		})
	}
	_ = rounds(facts, func(round int, f sets.Fact) error { // never fails
		add("user", f.Said[round])
		if len(all)%4 == 1 {
			add("assistant", "Noted: "+f.Said[round]+" Is there anything else that I should know?")
		} else {
			add("assistant", "Thank you, I will keep that in mind for the next time you ask.")
		}
		return nil
	})
	return server.Load(ctx, agent, all)
}

// Staleness is what asking for facts found.
type Staleness struct {
	Facts int
	// Stale is how many had an older text among the hits, with or without the newest.
	Stale int
	// Before is how many had an older text before the newest, or without it.
	Before int
	// First is how many had the newest text as the first hit, and Missing how many had it
	// nowhere among the hits.
	First, Missing int
	// Named is how many, of those whose newest text is a hit, name what it replaced: the
	// record it supersedes, that it is not the first version, or what it puts out of date.
	Named int
}

// Newest asks for facts, and looks which of their texts are found.
func Newest(ctx context.Context, server loombridgev1.BridgeServiceClient, agent string, facts []sets.Fact) (s Staleness, err error) {
	for _, f := range facts {
		answer, err := server.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: f.Asked, Limit: factHits})
		if err != nil {
			return s, err
		}
		s.add(f, answer.GetHits())
	}
	return s, nil
}

func (s *Staleness) add(f sets.Fact, hits []*loombridgev1.MemoryHit) {
	s.Facts++
	newest, stale := -1, -1
	for i, hit := range hits {
		switch round := slices.IndexFunc(f.Said, func(said string) bool { return strings.Contains(hit.GetRecord().GetText(), said) }); {
		case round == len(f.Said)-1 && newest < 0:
			newest = i
			if hit.GetRecord().GetSupersedes() != "" || hit.GetRecord().GetVersion() > 1 || len(hit.GetOlderIds()) > 0 {
				s.Named++
			}
		case round >= 0 && round < len(f.Said)-1 && stale < 0:
			stale = i
		}
	}
	if stale >= 0 {
		s.Stale++
		if newest < 0 || stale < newest {
			s.Before++
		}
	}
	if newest == 0 {
		s.First++
	}
	if newest < 0 {
		s.Missing++
	}
}

// Facts asks for facts that changed one to five times, in every form of statement.
func (b *Bench) Facts(ctx context.Context, n int) error {
	facts := sets.Facts(n)
	fmt.Fprintf(b.Table, "\nfacts that changed, in %% of facts\tfacts\tnewest first\tnewest not in top %d\tolder before or without newest\tolder in top %d\tnames the older\taim\t\n", factHits, factHits)
	for _, telling := range Tellings() {
		b.Say("%d facts, %s", n, telling.Name)
		server, err := b.Serve(ctx)
		if err != nil {
			return err
		}
		var s Staleness
		scope := 0
		for some := range slices.Chunk(facts, factsPerScope) {
			scope++
			agent := fmt.Sprintf("facts-%d", scope)
			if err = telling.Save(ctx, server, agent, some); err != nil {
				break
			}
			var found Staleness
			if found, err = Newest(ctx, server, agent, some); err != nil {
				break
			}
			s = s.plus(found)
		}
		server.Remove()
		if err != nil {
			return err
		}
		percent := func(n int) float64 { return 100 * float64(n) / float64(max(1, s.Facts)) }
		aim := "0 older"
		if strings.Contains(telling.Name, "form") {
			aim = "≤ 2 older before"
		}
		fmt.Fprintf(b.Table, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t\n", telling.Name, s.Facts,
			percent(s.First), percent(s.Missing), percent(s.Before), percent(s.Stale), percent(s.Named), aim)
	}
	return b.Table.Flush()
}

func (s Staleness) plus(o Staleness) Staleness {
	return Staleness{s.Facts + o.Facts, s.Stale + o.Stale, s.Before + o.Before, s.First + o.First, s.Missing + o.Missing, s.Named + o.Named}
}
