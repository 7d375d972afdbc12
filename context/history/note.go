package history

import "strings"

// DefaultSummaryTokens bounds a caller's summary.
const DefaultSummaryTokens = 500

// summaryMark begins the line of a caller's summary in a fold.
const summaryMark = "Summary: "

// summary is the line of the caller's summary, or nothing.
func (p *pass) summary() string {
	if !p.h.Now || p.h.Summary == "" {
		return ""
	}
	text := strings.Join(strings.Fields(p.h.Summary), " ")
	if text == "" || len(text) > DefaultSummaryTokens*weightBytes || p.l.count(text) > DefaultSummaryTokens {
		return ""
	}
	return summaryMark + text
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
