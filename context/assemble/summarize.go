package assemble

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxSummarized bounds the text that a caller is asked to summarize, in bytes. Of more
// the end is left out.
const maxSummarized = 256 << 10

// Summarizer asks a caller to summarize old messages. It is called while a prompt is
// made, by several calls at once, and must return when its context is done.
type Summarizer interface {
	// Summarize returns the summary of a text, without any mark around it. What it
	// gives late, what is blank or over the tokens, and an error make the prompt do
	// without.
	Summarize(ctx context.Context, r SummaryRequest) (string, error)
}

// SummaryRequest says what to summarize.
type SummaryRequest struct {
	// Scope is whose session it is, SessionID which.
	Scope     kv.Scope
	SessionID string
	// Tool is the name of the tool that the settings give.
	Tool string
	// Goal is what the agent works towards; it may be empty.
	Goal string
	// Text has the messages as they were, each behind its role in brackets.
	Text string
	// Messages is how many they are.
	Messages int
	// MaxTokens bounds the summary.
	MaxTokens int
}

// summarizer asks the caller for summaries. An empty one says that there is none.
func (f *faded) summarizer(ctx context.Context, rules history.Summarizing) func(units []decay.Unit, messages int) string {
	return func(units []decay.Unit, messages int) string {
		ctx, cancel := context.WithTimeout(ctx, rules.Timeout)
		defer cancel()
		own, err := f.t.a.summarizer.Summarize(ctx, SummaryRequest{
			Scope: f.t.r.Scope, SessionID: sessionOf(f.t.r.SessionID), Tool: rules.Tool, Goal: f.goal(f.t.r.Goal),
			Text: f.words(units), Messages: messages, MaxTokens: rules.MaxTokens,
		})
		own = text.OneLine(text.Valid(own))
		switch {
		case err != nil:
			f.problem = fmt.Sprintf("the tool %s did not summarize: %v", rules.Tool, err)
		case own == "":
			f.problem = fmt.Sprintf("the summary of the tool %s is blank", rules.Tool)
		case len(own) > history.MaxSummaryBytes/2 || f.t.count(own) > rules.MaxTokens:
			f.problem = fmt.Sprintf("the summary of the tool %s is longer than %d tokens", rules.Tool, rules.MaxTokens)
		default:
			return own
		}
		return ""
	}
}

// words are the messages of units as one text.
func (f *faded) words(units []decay.Unit) string {
	var b strings.Builder
	next := 0
	for i := range units {
		for f.groups[next].First() != units[i].Position {
			next++
		}
		for _, it := range f.groups[next].Items(f.outputs(f.groups[next])) {
			m := &it.Message
			b.WriteString("[" + m.Role.String() + "] " + spokenText(m))
			for _, c := range m.ToolCalls {
				b.WriteString("\n" + c.Name + " " + c.Arguments)
			}
			b.WriteString("\n")
		}
		if b.Len() > maxSummarized {
			break
		}
	}
	return text.Head(b.String(), maxSummarized)
}

// refsOf name the entries of a group.
func refsOf(g *pairing.Group) []string {
	refs := make([]string, len(g.Members))
	for i := range g.Members {
		e := &g.Members[i].Entry
		if e.Step != nil {
			refs[i] = e.Step.ID()
		} else {
			refs[i] = session.MessageID(e.Position)
		}
	}
	return refs
}

// maxWeighed bounds what of a message is weighed against the goal, in bytes: units are
// remembered.
const maxWeighed = 1 << 10

// said is what a summary may say of a group: its messages, and for each call what
// came of it.
func (r *reading) said(g *pairing.Group) []decay.Said {
	all := make([]decay.Said, 0, len(g.Members))
	for _, it := range r.spokenItems(g) {
		m := &it.Message
		words := spokenText(m)
		sentence := decay.Sentence(words)
		if sentence == "" && len(m.BlocksJSON) > 0 && len(pairing.CallsWithin(m)) == 0 {
			sentence = decay.Multimodal
		}
		all = append(all, decay.Said{Role: m.Role.String(), Sentence: sentence, Words: text.Head(words, maxWeighed)})
	}
	if r.omits(g) {
		return all
	}
	done := r.answered(g)
	for i := range done {
		a := &done[i].act
		line := decay.Sentence(calledAs(a) + " → " + r.outcome(a))
		all = append(all, decay.Said{
			Role: session.Tool.String(), Sentence: line, Words: text.Head(cmp.Or(a.Inline, a.Observation), maxWeighed), Result: true, Failed: a.Outcome == step.Failed,
		})
	}
	return all
}
