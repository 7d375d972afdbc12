//go:build cgo && !norocksdb

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// sqliteProgram searches with the SQLite of Python.
//
//go:embed sqlite.py
var sqliteProgram string

// sqliteScope is one table and what is asked of it.
type sqliteScope struct {
	Records [][3]string `json:"records"` // id, author, text
	Queries []string    `json:"queries"`
}

// sqliteJob is what the program is given.
type sqliteJob struct {
	Scopes []sqliteScope `json:"scopes"`
	Limit  int           `json:"limit"`
	// Seconds is how long queries are repeated; with zero each is asked once, and
	// its hits are returned.
	Seconds float64 `json:"seconds"`
}

type sqliteAnswer struct {
	Version string
	Answers []struct {
		LoadSeconds float64 `json:"load_seconds"`
		Hits        [][]string
		Times       []time.Duration // sorted
	}
}

// sqlite runs a job in a Python of its own.
func (b *memoryBench) sqlite(ctx context.Context, job sqliteJob) (*sqliteAnswer, error) {
	folder, err := os.MkdirTemp(b.folder, "sqlite-")
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
	command := exec.CommandContext(ctx, b.python, "-c", sqliteProgram, file, folder)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.python, err)
	}
	var answer sqliteAnswer
	return &answer, json.Unmarshal(out, &answer)
}

// anyOf makes FTS5's query for any of the words of a text. Without common ones
// those that our own analysis drops are left out.
func anyOf(text string, common bool) string {
	analyzer := analysis.New(nil)
	var words []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		terms := 0
		for range analyzer.Terms("zebra " + w) { // a stop word alone is kept
			terms++
		}
		if common || terms > 1 {
			words = append(words, `"`+w+`"`)
		}
	}
	if len(words) == 0 && !common {
		return anyOf(text, true)
	}
	return strings.Join(words, " OR ")
}

func sqliteRecords(drafts []*loombridgev1.RecordDraft) [][3]string {
	records := make([][3]string, len(drafts))
	for i, d := range drafts {
		records[i] = [3]string{d.GetId(), d.GetAuthor(), d.GetText()}
	}
	return records
}

// sqliteRecalls asks SQLite the questions about the conversations and adds a
// line for all words and one without the common ones.
func (b *memoryBench) sqliteRecalls(ctx context.Context, samples []*locomoSample) error {
	for _, common := range []bool{true, false} {
		job := sqliteJob{Limit: locomoDepths[len(locomoDepths)-1]}
		for _, s := range samples {
			scope := sqliteScope{Records: sqliteRecords(s.drafts())}
			for _, j := range s.judgements() {
				scope.Queries = append(scope.Queries, anyOf(j.Text, common))
			}
			job.Scopes = append(job.Scopes, scope)
		}
		answer, err := b.sqlite(ctx, job)
		if err != nil {
			return err
		}
		var found recall
		for i, s := range samples {
			for k, j := range s.judgements() {
				found.add(answer.Answers[i].Hits[k], j.evidence)
			}
		}
		b.printRecall(fmt.Sprintf("SQLite %s FTS5 bm25, %s", answer.Version, sqliteWords(common)), &found)
	}
	return nil
}

func sqliteWords(common bool) string {
	if common {
		return "all words"
	}
	return "no stop words"
}
