package replay

import (
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Preset shows a run's steps by a preset: literally, so that the boundary moves
// with every step, or sticky, so that it moves in batches.
func Preset(name string, p history.Preset, sticky bool, s Settings) Policy {
	form := literalForm
	if sticky {
		form = stickyForm
	}
	return policy{name + form, func(run *Run, count func(string) int) Session {
		return &presetSession{
			run: run, count: count, settings: s, sticky: sticky,
			compactor: history.NewCompactor(count, p),
			reducer:   step.NewReducer(reducerOptions(p)),
			placed:    make(map[int]bool),
		}
	}}
}

// What follows the name of a preset.
const (
	literalForm = "_literal"
	stickyForm  = "_sticky"
)

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
	settings  Settings
	sticky    bool
	compactor *history.Compactor
	reducer   *step.Reducer
	mark      history.Mark

	// steps are those of the messages read so far; places has, for each, the
	// messages of its call and of its result, placed all of them.
	steps  []step.Step
	places [][2]int
	placed map[int]bool
	read   int
}

func (s *presetSession) View(i int) (View, error) {
	s.readUntil(i)
	older := s.compactor.Boundary(s.steps)
	if s.sticky {
		s.mark = s.compactor.Sticky(s.steps, s.mark, 0, &history.Options{Prices: s.settings.Prices})
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
		if !s.placed[k] {
			v.Pieces = append(v.Pieces, whole(&s.run.Entries[k], s.count))
		}
		for ; next < len(s.places) && s.places[next][0] == k; next++ {
			if next == 0 && older > 0 {
				v.Pieces = append(v.Pieces, s.piece(s.compactor.Older(s.steps[:older])))
			}
			v.Folded[k], v.Folded[s.places[next][1]] = true, true
			if next >= older {
				v.Pieces = append(v.Pieces, s.piece(s.compactor.Full(s.steps[next])))
			}
		}
	}
	return v
}

func (s *presetSession) piece(text string) Piece {
	return Piece{Text: text, Tokens: messageTokens + s.count(text)}
}

// readUntil makes steps of calls and their results.
func (s *presetSession) readUntil(i int) {
	for ; s.read < i; s.read++ {
		turn := &s.run.Entries[s.read]
		for n, c := range turn.Calls {
			if at := s.run.results[s.read][n]; at > 0 {
				s.add(s.read, at, turn, c)
			}
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
	s.placed[from], s.placed[to] = true, true
}
