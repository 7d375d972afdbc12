//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	promptsettings "github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/memory/passage"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

const (
	// wholePrompt is the budget of a whole prompt.
	wholePrompt = 32 << 10
	// promptModel counts in o200k.
	promptModel = "gpt-4o"
	// askingAgent is who asks for prompts.
	askingAgent = "asker"
)

// memoryBudgets are the caps of the memory of the user in a prompt, in tokens, and what
// prompts have by default.
var memoryBudgets = [...]int{0, 500, 1000, 2000, 4000, 8000}

// shares are the evidence that stands in prompts, by budget.
type shares struct {
	questions int
	sums      [len(memoryBudgets)]float64
	tokens    [len(memoryBudgets)]int
}

func (s *shares) row(b *memoryBench, name string) {
	n := float64(max(1, s.questions))
	fmt.Fprintf(b.table, "%s\t%d\t", name, s.questions)
	for i := range memoryBudgets {
		fmt.Fprintf(b.table, "%.1f (%d)\t", 100*s.sums[i]/n, s.tokens[i]/max(1, s.questions))
	}
	fmt.Fprintln(b.table)
}

// prompt asks questions as the newest message of a fresh session, and looks how much of
// their evidence stands in the prompt by itself, by how many tokens memory may take; the
// tokens that it took are in brackets.
func (b *memoryBench) prompt(ctx context.Context) error {
	if b.data() == "" {
		b.say("LOOM_EVAL_DATA names no folder: left out")
		return nil
	}
	for _, embedder := range []string{"off", "builtin"} {
		if err := b.promptWith(ctx, embedder); err != nil {
			return err
		}
	}
	return nil
}

func (b *memoryBench) promptWith(ctx context.Context, embedder string) error {
	server, err := b.serve(ctx, "prompt-"+embedder, "--embedder", embedder)
	if err != nil {
		return err
	}
	defer server.remove()
	fmt.Fprintf(b.table, "\nEvidence in the prompt, embedder %s\tquestions\tdefault\t500\t1k\t2k\t4k\t8k\t\n", embedder)
	if strings.Contains("LoCoMo", b.asked) {
		if err := b.promptLocomo(ctx, server); err != nil {
			return err
		}
	}
	if strings.Contains("RealMem", b.asked) {
		if err := b.promptRealmem(ctx, server); err != nil {
			return err
		}
	}
	fmt.Fprintln(b.table, "aim, LoCoMo all\t\t85\t\t\t90\t\t94\t")
	fmt.Fprintln(b.table, "aim, RealMem\t\t60\t\t\t78\t\t92\t")
	return b.table.Flush()
}

func (b *memoryBench) promptLocomo(ctx context.Context, server *memoryServer) error {
	set, err := sets.Locomo(b.data())
	if err != nil {
		return err
	}
	all, classes := &shares{}, make(map[string]*shares)
	for _, talk := range set.Talks {
		if err := server.remember(ctx, talk.ID, evidence.Drafts(talk.Turns)); err != nil {
			return err
		}
		said := make(map[string]string, len(talk.Turns))
		for _, t := range talk.Turns {
			said[t.ID] = text.OneLine(t.Text)
		}
		for i, q := range talk.Questions {
			var pieces [][]string
			for _, id := range q.Evidence {
				pieces = append(pieces, []string{said[id]})
			}
			if classes[q.Class] == nil {
				classes[q.Class] = &shares{}
			}
			if err := server.askPrompts(ctx, talk.ID, fmt.Sprintf("%s-%d", talk.ID, i), q.Text, pieces, all, classes[q.Class]); err != nil {
				return err
			}
		}
	}
	all.row(b, "LoCoMo dev, all")
	for _, class := range sets.LocomoClasses {
		classes[class].row(b, "LoCoMo dev, "+class)
	}
	return nil
}

// remember saves what a user said.
func (s *memoryServer) remember(ctx context.Context, user string, records []*loombridgev1.MemorySaveRequest) error {
	for len(records) > 0 {
		n := min(len(records), 100)
		if _, err := s.memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: askingAgent, UserId: user, Records: records[:n]}); err != nil {
			return err
		}
		records = records[n:]
	}
	for { // vectors are made behind the saves
		stats, err := s.memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: askingAgent, UserId: user, StatsOnly: true})
		if err != nil || stats.GetStats().GetPending() == 0 {
			return err
		}
		time.Sleep(pollPause)
	}
}

// pollPause is how long the bench waits before it looks again.
const pollPause = 20 * time.Millisecond

// askPrompts asks a question in fresh sessions, and adds to sums which part of the
// evidence the prompts show: each piece by one of its texts.
func (s *memoryServer) askPrompts(ctx context.Context, user, session, question string, evidence [][]string, sums ...*shares) error {
	for _, of := range sums {
		of.questions++
	}
	client := contexts.New(s.conn)
	for i, budget := range memoryBudgets {
		own := fmt.Sprintf("%s-%d", session, budget)
		if _, err := client.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{AgentId: askingAgent, SessionId: own, Messages: []*loombridgev1.Message{
			{Role: loombridgev1.Role_ROLE_USER, Content: question},
		}}); err != nil {
			return err
		}
		request := &loombridgev1.AssembleRequest{
			AgentId: askingAgent, SessionId: own, Model: promptModel, MaxTokens: wholePrompt,
			Settings: &loombridgev1.PromptSettings{UserId: user},
		}
		if budget > 0 {
			request.Settings.Sources = &loombridgev1.SourceSettings{UserMemories: promptsettings.MaxShown}
			request.Settings.Limits = &loombridgev1.InjectionLimits{Sections: map[string]int32{promptsettings.UserMemory: int32(budget)}}
		}
		got, err := client.Assemble(ctx, request)
		if err != nil {
			return err
		}
		part, tokens := shownPart(got, evidence), memoryTokens(got)
		for _, of := range sums {
			of.sums[i] += part
			of.tokens[i] += tokens
		}
	}
	return nil
}

// shownPart is which part of the evidence a prompt shows.
func shownPart(p *loombridgev1.AssembleResponse, evidence [][]string) float64 {
	var all strings.Builder
	for _, m := range p.GetMessages() {
		all.WriteString(m.GetContent())
		all.WriteByte('\n')
	}
	shown := 0
	for _, texts := range evidence {
		for _, one := range texts {
			if strings.Contains(all.String(), one) {
				shown++
				break
			}
		}
	}
	return float64(shown) / float64(max(1, len(evidence)))
}

// memoryTokens returns the tokens of the user's memory in a prompt.
func memoryTokens(p *loombridgev1.AssembleResponse) (n int) {
	for _, s := range p.GetReceipt().GetSections() {
		if strings.HasPrefix(s.GetName(), promptsettings.UserMemory) {
			n += int(s.GetTokens())
		}
	}
	return n
}

const (
	// shownBytes of a sentence of a turn say that it stands in a prompt.
	shownBytes = 60
	// minShownBytes is the length of the shortest sentence that does.
	minShownBytes = 30
)

// shownBy are the texts by which a turn stands in a prompt, in part or whole.
func shownBy(said string) (texts []string) {
	for sentence := range passage.Sentences(said) {
		if sentence = text.OneLine(sentence); len(sentence) >= minShownBytes {
			texts = append(texts, text.Head(sentence, shownBytes))
		}
	}
	if len(texts) == 0 {
		texts = append(texts, text.OneLine(said))
	}
	return texts
}

// promptRealmem asks what users asked, before they did, and looks which of the sessions
// that the answer lies in have a turn in the prompt.
func (b *memoryBench) promptRealmem(ctx context.Context, server *memoryServer) error {
	set, err := sets.Realmem(b.data())
	if err != nil {
		return err
	}
	var all shares
	for _, talk := range set.Talks {
		if err := server.askRealmem(ctx, talk, &all); err != nil {
			return err
		}
	}
	all.row(b, "RealMem dev, sessions")
	return nil
}

func (s *memoryServer) askRealmem(ctx context.Context, talk *sets.Talk, all *shares) error {
	said, known := make(map[string][]string), 0
	for i, q := range talk.Questions {
		if err := s.remember(ctx, talk.ID, evidence.Drafts(talk.Turns[known:q.After])); err != nil {
			return err
		}
		for ; known < q.After; known++ {
			t := talk.Turns[known]
			said[t.Session] = append(said[t.Session], shownBy(t.Text)...)
		}
		var pieces [][]string
		for _, id := range q.Evidence {
			pieces = append(pieces, said[id])
		}
		if err := s.askPrompts(ctx, talk.ID, fmt.Sprintf("%s-%d", talk.ID, i), q.Text, pieces, all); err != nil {
			return err
		}
	}
	return nil
}
