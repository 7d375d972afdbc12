package evidence

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/peers"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// peerWays are the lines of ours in the table of peers.
var peerWays = []way{
	{name: "Loom Bridge"},
	{name: "Loom Bridge, max_tokens, whole hits", budgets: true, by: wholeHits},
	{name: "Loom Bridge, max_tokens, and parts", budgets: true, by: evidenceParts},
	{name: "Loom Bridge, expand", expand: true},
	{name: "Loom Bridge, no author, no session", change: func(_ int, d *loombridgev1.MemorySaveRequest) { d.Author, d.SessionId = "", "" }},
}

// signalsOff are the lines of ours with each signal switched off.
func signalsOff() (ways []way) {
	for _, signal := range rank.Signals() {
		ways = append(ways, way{name: "Loom Bridge, " + signal + " off", without: []string{signal}})
	}
	return ways
}

// Peers asks the questions of all collections of a server of ours and of other engines of
// full-text search: the same texts, the same depth, tokens counted alike. The others search
// the author, too, in front of the text. For texts that max_tokens returns in part, the line
// of whole hits counts nothing. The line of parts counts passages with the words of the
// evidence; where these are unknown (RealMem names sessions), any passage of it.
func (b *Bench) Peers(ctx context.Context) error {
	b.header("evidence found, in % of what a question has")
	err := b.each(func(set *sets.Set, sizes *sizes) error {
		for _, w := range slices.Concat(peerWays, signalsOff()) {
			s, err := b.ours(ctx, set, w, sizes)
			if err != nil {
				return err
			}
			b.row(set, w.name, s)
		}
		for _, engine := range peers.Engines() {
			if err := b.peer(ctx, set, engine, sizes); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(b.Table, "aim, RealMem dev\tours against the best other\t\t\t≥ +5\t\t\t\t\t≥ +5\t\t")
	fmt.Fprintln(b.Table, "aim, LoCoMo dev\tours\t\t\t78.0\t84.0\t89.5\t\t\t\t\t")
	return b.Table.Flush()
}

// peer adds the line of another engine.
func (b *Bench) peer(ctx context.Context, set *sets.Set, engine string, sizes *sizes) error {
	b.Say("%s asks %s", engine, set.Name)
	job := peers.Work{Engine: engine, Limit: depth}
	for _, talk := range set.Talks {
		job.Talks = append(job.Talks, peers.NewTalk(talk))
	}
	answer, err := peers.Run(ctx, b.Python, b.Folder, job)
	if err != nil {
		return err
	}
	if answer.Missing != "" {
		fmt.Fprintf(b.Table, "%s\t%s is not installed: %s\t\t\t\t\t\t\t\t\t\t\n", set.Name, engine, answer.Missing)
		return nil
	}
	s := &score{}
	for i, talk := range set.Talks {
		for k, q := range talk.Questions {
			var hits []hit
			for _, id := range answer.Talks[i].Hits[k] {
				hits = append(hits, sizes.turns[talk.ID][id])
			}
			s.add(q, hits)
		}
	}
	b.row(set, answer.Version, s)
	return nil
}
