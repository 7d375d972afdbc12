//go:build cgo && !norocksdb

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// locomoSample is a long conversation of two people with questions about it.
type locomoSample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []locomoQuestion           `json:"qa"`

	turns []locomoTurn // in order
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`

	sample, session string
	at              time.Time
}

type locomoQuestion struct {
	Text     string   `json:"question"`
	Evidence []string `json:"evidence"`
	Category int      `json:"category"`
}

// locomoCategories are named in the order of their numbers.
var locomoCategories = []string{"all", "multi-hop", "temporal", "open", "single-hop", "adversarial"}

// locomoDepths are how many hits are looked at.
var locomoDepths = [...]int{1, 5, 10, 25, 50}

// text is what is saved of a turn.
func (t locomoTurn) text() string {
	if t.Caption == "" {
		return t.Text
	}
	return t.Text + "\n" + t.Caption
}

// readLocomo returns the conversations that the weights of the ranking were set
// on.
func readLocomo(data string) ([]*locomoSample, error) {
	raw, err := os.ReadFile(filepath.Join(data, "locomo", "locomo_dev.json"))
	if err != nil {
		return nil, err
	}
	var samples []*locomoSample
	if err := json.Unmarshal(raw, &samples); err != nil {
		return nil, err
	}
	for _, s := range samples {
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

func (s *locomoSample) read() error {
	for n := 1; ; n++ {
		name := fmt.Sprintf("session_%d", n)
		raw, ok := s.Conversation[name]
		if !ok {
			return nil
		}
		var turns []locomoTurn
		var date string
		if err := json.Unmarshal(raw, &turns); err != nil {
			return err
		}
		if err := json.Unmarshal(s.Conversation[name+"_date_time"], &date); err != nil {
			return err
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			return err
		}
		for _, turn := range turns {
			turn.sample, turn.session, turn.at = s.ID, name, at
			s.turns = append(s.turns, turn)
		}
	}
}

// drafts returns a record for every turn; its id is the turn's.
func (s *locomoSample) drafts() []*loombridgev1.RecordDraft {
	drafts := make([]*loombridgev1.RecordDraft, len(s.turns))
	for i, t := range s.turns {
		drafts[i] = &loombridgev1.RecordDraft{
			Id: t.ID, Text: t.text(), Author: t.Speaker, SessionId: t.session, EventTime: timestamppb.New(t.at),
		}
	}
	return drafts
}

// judged is a question with the turns that answer it.
type judged struct {
	locomoQuestion
	sample   *locomoSample
	evidence []string
}

var locomoEvidence = regexp.MustCompile(`D:?(\d+):(\d+)`)

// judgements returns the questions that have evidence, the slips in its ids
// repaired.
func (s *locomoSample) judgements() (all []judged) {
	known := make(map[string]bool)
	for _, t := range s.turns {
		known[t.ID] = true
	}
	for _, q := range s.Questions {
		j := judged{locomoQuestion: q, sample: s}
		for _, text := range q.Evidence {
			for _, match := range locomoEvidence.FindAllStringSubmatch(text, -1) {
				session, _ := strconv.Atoi(match[1])
				turn, _ := strconv.Atoi(match[2])
				if id := fmt.Sprintf("D%d:%d", session, turn); known[id] && !slices.Contains(j.evidence, id) {
					j.evidence = append(j.evidence, id)
				}
			}
		}
		if len(j.evidence) > 0 {
			all = append(all, j)
		}
	}
	return all
}

// recall is the share of a question's evidence among the first hits, on
// average over questions.
type recall struct {
	questions int
	sums      [len(locomoDepths)]float64
}

func (r *recall) add(found, evidence []string) {
	r.questions++
	for i, depth := range locomoDepths {
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
	return 100 * r.sums[slices.Index(locomoDepths[:], depth)] / float64(max(1, r.questions))
}

// recalls are those of all questions and of each category.
type recalls [6]recall

func (r *recalls) add(j judged, found []string) {
	r[0].add(found, j.evidence)
	r[j.Category].add(found, j.evidence)
}

// printRecalls adds a line for each category to the table.
func (b *memoryBench) printRecalls(name string, r *recalls) {
	for i, category := range locomoCategories {
		b.printRecall(name+", "+category, &r[i])
	}
}

func (b *memoryBench) printRecall(name string, r *recall) {
	fmt.Fprintf(b.table, "%s\t%d\t", name, r.questions)
	for _, depth := range locomoDepths {
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
// with and without expansion, and asks them of SQLite.
func (b *memoryBench) locomo(ctx context.Context) error {
	if b.data() == "" {
		b.say("LOOM_EVAL_DATA names no folder: left out")
		return nil
	}
	samples, err := readLocomo(b.data())
	if err != nil {
		return err
	}
	server, err := b.serve(ctx, "locomo")
	if err != nil {
		return err
	}
	defer server.remove()
	b.recallHeader("LoCoMo dev, over gRPC")
	for _, s := range samples {
		if _, err := server.load(ctx, s.ID, s.drafts()); err != nil {
			return err
		}
	}
	for _, expand := range []bool{false, true} {
		var found recalls
		for _, s := range samples {
			for _, j := range s.judgements() {
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
	if err := b.sqliteRecalls(ctx, samples); err != nil {
		return err
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
