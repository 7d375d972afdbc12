//go:build cgo && !norocksdb

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// recallDepths are how many hits are looked at.
var recallDepths = [...]int{1, 5, 10, 25, 50}

// recall is the share of a question's evidence among the first hits, on
// average over questions.
type recall struct {
	questions int
	sums      [len(recallDepths)]float64
}

func (r *recall) add(found, evidence []string) {
	r.questions++
	for i, depth := range recallDepths {
		n := 0
		for _, id := range evidence {
			if slices.Contains(found[:min(depth, len(found))], id) {
				n++
			}
		}
		r.sums[i] += float64(n) / float64(len(evidence))
	}
}

// at is the mean at one of the depths, in per cent.
func (r *recall) at(depth int) float64 {
	return 100 * r.sums[slices.Index(recallDepths[:], depth)] / float64(max(1, r.questions))
}

// recalls are the recalls over all questions and over each class.
type recalls struct {
	all     recall
	classes map[string]*recall
}

func (r *recalls) add(q sets.Question, found []string) {
	if r.classes == nil {
		r.classes = make(map[string]*recall)
	}
	if r.classes[q.Class] == nil {
		r.classes[q.Class] = &recall{}
	}
	r.all.add(found, q.Evidence)
	r.classes[q.Class].add(found, q.Evidence)
}

// printRecalls adds a line for all and for each class to the table.
func (b *memoryBench) printRecalls(name string, r *recalls) {
	b.printRecall(name+", all", &r.all)
	for _, class := range sets.LocomoClasses {
		if c := r.classes[class]; c != nil {
			b.printRecall(name+", "+class, c)
		}
	}
}

func (b *memoryBench) printRecall(name string, r *recall) {
	fmt.Fprintf(b.table, "%s\t%d\t", name, r.questions)
	for _, depth := range recallDepths {
		fmt.Fprintf(b.table, "%.1f\t", r.at(depth))
	}
	fmt.Fprintln(b.table)
}

func (b *memoryBench) recallHeader(title string) {
	fmt.Fprintf(b.table, "\n%s\tquestions\tR@1\tR@5\tR@10\tR@25\tR@50\t\n", title)
}

// ask returns the ids that a query finds, and its receipt.
func (s *memoryServer) ask(ctx context.Context, q *loombridgev1.MemoryQueryRequest) ([]string, *loombridgev1.QueryReceipt, error) {
	answer, err := s.bridge.MemoryQuery(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]string, len(answer.GetHits()))
	for i, hit := range answer.GetHits() {
		ids[i] = hit.GetRecord().GetId()
	}
	return ids, answer.GetReceipt(), nil
}

// locomo asks the questions about long conversations over gRPC, by words alone,
// with and without expansion.
func (b *memoryBench) locomo(ctx context.Context) error {
	if b.data() == "" {
		b.say("LOOM_EVAL_DATA names no folder: left out")
		return nil
	}
	set, err := sets.Locomo(b.data())
	if err != nil {
		return err
	}
	server, err := b.serve(ctx, "locomo")
	if err != nil {
		return err
	}
	defer server.remove()
	b.recallHeader("LoCoMo dev, over gRPC")
	for _, s := range set.Talks {
		if _, err := server.load(ctx, s.ID, evidence.Drafts(s.Turns)); err != nil {
			return err
		}
	}
	for _, expand := range []bool{false, true} {
		var found recalls
		for _, s := range set.Talks {
			for _, j := range s.Questions {
				ids, _, err := server.ask(ctx, &loombridgev1.MemoryQueryRequest{
					AgentId: s.ID, Query: j.Text, Limit: 50, Mode: loombridgev1.QueryMode_QUERY_MODE_LEXICAL, Expand: expand,
				})
				if err != nil {
					return err
				}
				found.add(j, ids)
			}
		}
		name := "words"
		if expand {
			name = "words, expand"
		}
		b.printRecalls(name, &found)
	}
	fmt.Fprintln(b.table, "aim (floor) of words, all\t\t\t72 (68)\t81 (77.5)\t88 (84.5)\t91 (88.5)\t")
	return b.table.Flush()
}

// vaswani prints what the test of that name measures: a query over gRPC has no
// more than a hundred hits, and the measures look at a thousand, so that it
// searches in its own process.
func (b *memoryBench) vaswani(ctx context.Context) error {
	if b.data() == "" {
		b.say("LOOM_EVAL_DATA names no folder: left out")
		return nil
	}
	command := exec.CommandContext(ctx, "go", "test", "-count", "1", "-v", "-run", "^TestVaswani$", "./memory")
	out, err := command.CombinedOutput()
	fmt.Println("\nVaswani, 93 queries to a depth of 1000, in process (aim MAP ≥ .285, nDCG ≥ .610)")
	found := false
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if _, figures, ok := strings.Cut(lines.Text(), "expand "); ok {
			fmt.Println("expand", figures)
			found = true
		}
	}
	if err == nil && !found {
		err = errors.New("the test printed no figures")
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
