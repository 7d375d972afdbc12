package replay

import (
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Preset shows a run's steps by a preset: literally, so that the boundary moves
// with every step, or sticky, so that it moves in batches.
func Preset(name string, p history.Preset, sticky bool) Policy {
	form := "_literal"
	if sticky {
		form = "_sticky"
	}
	return policy{name + form, func(run *Run, count func(string) int) Session {
		return &presetSession{
			run: run, count: count, sticky: sticky,
			compactor: history.NewCompactor(count, p),
			reducer:   step.NewReducer(reducerOptions(p)),
		}
	}}
}

// reducerOptions are how a preset records steps.
func reducerOptions(p history.Preset) *step.Options {
	if p.Style == history.StyleDesign {
		return &step.Options{Style: step.ObservationDesign, HideOffloaded: true}
	}
	return nil
}

type presetSession struct {
	run       *Run
	count     func(string) int
	sticky    bool
	compactor *history.Compactor
	reducer   *step.Reducer
	mark      history.Mark

	// steps are those of the messages read so far; places has, for each, the
	// messages of its call and of its result.
	steps  []step.Step
	places [][2]int
	read   int
}

func (s *presetSession) View(i int) (View, error) {
	s.readUntil(i)
	older := s.compactor.Boundary(s.steps)
	if s.sticky {
		s.mark = s.compactor.Sticky(s.steps, s.mark, 0, nil)
		older = s.mark.Older
	}
	return s.view(i, older), nil
}

// view has the older steps together in the place of the first, everything else
// where it was.
func (s *presetSession) view(i, older int) View {
	v := View{Folded: make([]bool, i)}
	next := 0
	for k := range i {
		if next >= len(s.places) || s.places[next][0] != k {
			if !s.inStep(k, next) {
				v.Pieces = append(v.Pieces, whole(&s.run.Entries[k], s.count))
			}
			continue
		}
		if next == 0 && older > 0 {
			v.Pieces = append(v.Pieces, s.piece(s.compactor.Older(s.steps[:older])))
		}
		v.Folded[k], v.Folded[s.places[next][1]] = true, true
		if next >= older {
			v.Pieces = append(v.Pieces, s.piece(s.compactor.Full(s.steps[next])))
		}
		next++
	}
	return v
}

// inStep tells whether a message is the result of a step that began before.
func (s *presetSession) inStep(k, next int) bool {
	for n := next - 1; n >= 0 && s.places[n][1] >= k; n-- {
		if s.places[n][1] == k {
			return true
		}
	}
	return false
}

func (s *presetSession) piece(text string) Piece {
	return Piece{Text: text, Tokens: messageTokens + s.count(text)}
}

// readUntil makes steps of calls and their results. Calls are paired with the
// results that follow by place, because ids may repeat.
func (s *presetSession) readUntil(i int) {
	for ; s.read < i; s.read++ {
		turn := &s.run.Entries[s.read]
		for n, c := range turn.Calls {
			at := s.read + 1 + n
			if at >= i || s.run.Entries[at].Kind != history.Result {
				break
			}
			s.add(s.read, at, turn, c)
		}
	}
}

func (s *presetSession) add(from, to int, turn *history.Entry, c history.Call) {
	result := &s.run.Entries[to]
	args, _ := step.DecodeJSON([]byte(c.Args))
	object, _ := args.(map[string]any)
	failed := result.Failed || result.Exit != nil && *result.Exit != 0
	call := step.Call{Tool: c.Name, Args: object, Result: step.Result{
		Failed: failed, ErrorText: result.Output,
		BodyKey: "output", BodyText: result.Output, BodySize: int64(len(result.Output)),
	}}
	r := s.reducer.Reduce(call)
	made := step.Step{
		Number: uint64(len(s.steps) + 1), ToolName: c.Name, MinimalArgs: r.MinimalArgs,
		Observation: r.Observation, Metadata: r.Metadata, Error: r.Error, Inline: r.Inline,
		Outcome: r.Outcome, Thought: turn.Text,
	}
	if r.Offload {
		made.OutcomeRef = "ref"
		made.OutcomePath = "workspace/outputs/" + made.ID() + "." + r.OffloadExt
	}
	s.steps = append(s.steps, made)
	s.places = append(s.places, [2]int{from, to})
}
