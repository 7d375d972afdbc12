package peers

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// The engines.
const (
	SQLite     = "sqlite"
	Tantivy    = "tantivy"
	BM25S      = "bm25s"
	LanceDB    = "lancedb"
	PostgreSQL = "postgresql"
)

// Engines returns all of them.
func Engines() []string { return []string{SQLite, Tantivy, BM25S, LanceDB, PostgreSQL} }

//go:embed peers.py
var program string

// Work is what an engine is to do.
type Work struct {
	Engine string  `json:"engine"`
	Talks  []*Talk `json:"talks"`
	// Limit is how many hits a query has at most.
	Limit int `json:"limit"`
	// Seconds is how long the queries are repeated; with zero each is asked once, and its
	// hits are returned.
	Seconds float64 `json:"seconds"`
}

// Talk is the content of one index, and the queries to it, in order.
type Talk struct {
	Records [][2]string `json:"records"` // id and text
	Queries []Query     `json:"queries"`
}

// Query asks for any of the words of a text.
type Query struct {
	Text string `json:"text"`
	// Words are the words of the text without stop words, for engines that have none.
	Words []string `json:"words"`
	// After is how many of the records exist when it is asked.
	After int `json:"after"`
}

// Hits is what an engine found.
type Hits struct {
	// Version names the engine, its version and its analysis.
	Version string
	// Missing is the command that installs what the engine needs; nothing else is set then.
	Missing string
	// Talks are in the order of the job.
	Talks []struct {
		LoadSeconds float64 `json:"load_seconds"`
		Hits        [][]string
		Times       []time.Duration // of queries, sorted
	}
}

// NewTalk returns a talk as all engines are given it.
func NewTalk(talk *sets.Talk) *Talk {
	t := &Talk{}
	for _, turn := range talk.Turns {
		t.Records = append(t.Records, [2]string{turn.ID, turn.Line()})
	}
	for _, q := range talk.Questions {
		t.Queries = append(t.Queries, NewQuery(q.Text, q.After))
	}
	return t
}

// NewQuery returns a query that is asked after so many records.
func NewQuery(text string, after int) Query { return Query{text, words(text), after} }

// analyzer recognizes stop words.
var analyzer = sync.OnceValue(func() *analysis.Analyzer { return analysis.New(nil) })

// words returns the words of a text that the analysis of memory keeps, or all words if it
// keeps none.
func words(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	telling := []string{}
	for _, w := range all {
		terms := 0
		for range analyzer().Terms("zebra " + w) { // a stop word alone is kept
			terms++
		}
		if terms > 1 {
			telling = append(telling, w)
		}
	}
	if len(telling) == 0 {
		telling = append(telling, all...)
	}
	return telling
}

// Run does a job in a separate Python program, whose files stand in a new folder below
// folder while it runs.
func Run(ctx context.Context, python, folder string, job Work) (*Hits, error) {
	folder, err := os.MkdirTemp(folder, "peers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	raw, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "job.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, python, "-c", program, file, folder)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", python, job.Engine, err)
	}
	var answer Hits
	return &answer, json.Unmarshal(out, &answer)
}
