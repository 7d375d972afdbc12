package replay

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Preset shows a run by a preset: literally, so that the boundary moves with every
// step, or sticky, so that it moves in batches.
func Preset(name string, p history.Preset, sticky bool, s Settings) Policy {
	form := literalForm
	if sticky {
		form = stickyForm
	}
	return policy{name + form, func(run *Run, count func(string) int) Session {
		return &presetSession{
			run: run, count: count, sticky: sticky,
			options:   history.Options{Prices: s.Prices, MessageTokens: messageTokens},
			compactor: history.NewCompactor(count, p),
			reducer:   step.NewReducer(&step.Options{Style: p.Observation}),
		}
	}}
}

// What follows the name of a preset.
const (
	literalForm = "_literal"
	stickyForm  = "_sticky"
)

// presetSession is a run under a preset. Its parts are the messages read so far,
// a turn with its results as one.
type presetSession struct {
	run       *Run
	count     func(string) int
	options   history.Options
	sticky    bool
	compactor *history.Compactor
	reducer   *step.Reducer
	mark      history.Mark

	parts []history.Chunk
	// shown are the messages of each part, and messages which those are.
	shown    [][]PromptPart
	messages [][]int
	calls    int
	read     int
}

func (s *presetSession) View(i int) (Sent, error) {
	s.readUntil(i)
	l := s.compactor.Show(history.Conversation{Parts: slices.Clone(s.parts), Mark: s.mark, Literal: !s.sticky}, &s.options)
	s.mark = l.Mark
	v := Sent{Folded: make([]bool, i)}
	for _, shown := range l.Shown {
		if shown.Text != "" {
			v.Pieces = append(v.Pieces, PromptPart{Text: shown.Text, Tokens: shown.Tokens})
		} else {
			v.Pieces = append(v.Pieces, s.shown[shown.Part]...)
		}
	}
	for k := range s.parts {
		for _, m := range s.messages[k] {
			v.Folded[m] = len(s.parts[k].Acts) > 0
		}
	}
	return v, nil
}

// readUntil makes parts of messages. A turn comes with the results right behind
// it.
func (s *presetSession) readUntil(i int) {
	for s.read < i {
		turn := s.read
		s.read++
		part := history.Chunk{Position: uint64(turn + 1)}
		asked, messages := s.run.asked(turn), []int{turn}
		for ; s.read < i; s.read++ {
			n := slices.Index(s.run.results[turn], s.read)
			if n < 0 || n >= len(asked) {
				break
			}
			part.Acts = append(part.Acts, s.act(asked[n], &s.run.Entries[s.read]))
			messages = append(messages, s.read)
		}
		s.add(part, messages)
	}
}

// add adds a part: a message, and the results of its calls.
func (s *presetSession) add(part history.Chunk, messages []int) {
	pieces := make([]PromptPart, len(messages))
	for n, m := range messages {
		e := s.run.Entries[m]
		if n == 0 && len(part.Acts) > 0 {
			e.Calls = s.withoutWritten(e.Calls)
		}
		pieces[n] = whole(&e, s.count)
		if n > 0 {
			pieces[n] = s.result(&part.Acts[n-1], &e)
		}
		part.Tokens += pieces[n].Tokens
	}
	part.Bare = part.Tokens
	s.parts, s.shown, s.messages = append(s.parts, part), append(s.shown, pieces), append(s.messages, messages)
}

// result is a result as the preset shows it.
func (s *presetSession) result(a *history.Act, e *history.Entry) PromptPart {
	short := *e
	short.Shown = s.compactor.Result(a, shown(e), false)
	return whole(&short, s.count)
}

// withoutWritten are calls without the text that they wrote.
func (s *presetSession) withoutWritten(calls []history.Call) []history.Call {
	calls = slices.Clone(calls)
	for i, c := range calls {
		kept := s.reducer.KeptArg(s.reducer.ToolName(c.Name))
		args := objectOf(c.Args)
		if _, ok := args[kept].(string); kept != "" && ok {
			delete(args, kept)
			calls[i].Args = string(text.CanonicalJSON(args))
		}
	}
	return calls
}

func objectOf(args string) map[string]any {
	value, _ := text.DecodeJSON([]byte(args))
	object, _ := value.(map[string]any)
	return object
}

// act is a call with its result by the rules for steps.
func (s *presetSession) act(c history.Call, result *history.Entry) history.Act {
	s.calls++
	failed := result.Failed || result.Exit != nil && *result.Exit != 0
	name := s.reducer.ToolName(c.Name)
	r := s.reducer.Reduce(step.Call{Tool: name, Args: objectOf(c.Args), Result: step.Result{
		Failed: failed, ErrorText: result.Output,
		BodyKey: "output", BodyText: result.Output, BodySize: int64(len(result.Output)),
	}})
	made := step.Step{
		Number: uint64(s.calls), ToolName: name, CalledAs: c.Name, MinimalArgs: r.MinimalArgs,
		Observation: r.Observation, Metadata: r.Metadata, Error: r.Error, Inline: r.Inline, Outcome: r.Outcome,
	}
	if r.Offload {
		made.OutcomeRef = "ref"
		made.OutcomePath = "workspace/outputs/" + strings.TrimPrefix(made.ID(), "step_") + "." + r.OffloadExt
	}
	return history.Act{Step: made}
}
