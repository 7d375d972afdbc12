package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// DefaultSummaryTokens bounds a caller's summary.
const DefaultSummaryTokens = 500

// summaryMark begins the line of a caller's summary in a fold.
const summaryMark = "Summary: "

// summary is the line of the caller's summary, or nothing.
func (p *pass) summary() string {
	line, _ := p.checkedSummary()
	return line
}

// checkedSummary is the line of the caller's summary, or why there is none.
func (p *pass) checkedSummary() (line, problem string) {
	if !p.h.Now || p.h.Summary == "" {
		return "", ""
	}
	s := text.OneLine(p.h.Summary)
	switch {
	case s == "":
		return "", "it is blank"
	case len(s) > DefaultSummaryTokens*weightBytes || p.l.count(s) > DefaultSummaryTokens:
		return "", fmt.Sprintf("it is longer than %d tokens", DefaultSummaryTokens)
	}
	return summaryMark + s, ""
}

// summaryProblem is why the caller's summary stands in none of the folds that were
// made; empty where it does, or where there is none.
func (p *pass) summaryProblem() string {
	line, problem := p.checkedSummary()
	has := func(f Fold) bool { return strings.Contains(f.Text, "\n"+line+"\n") }
	switch {
	case line == "" || slices.ContainsFunc(p.made, has):
		return problem
	case len(p.made) == 0:
		return "nothing was folded"
	}
	return "a fold with it would not be shorter than what it stands for"
}

// summaryOf is the line of the caller's summary where a fold of a group has it.
func (p *pass) summaryOf(group []Fold) []string {
	text := p.summary()
	if text == "" {
		return nil
	}
	for i := range group {
		if group[i].Batch > p.h.Batch && strings.Contains(group[i].Text, "\n"+text+"\n") {
			return []string{text}
		}
	}
	return nil
}
