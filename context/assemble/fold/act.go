package fold

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// nameObserved names an action without a name.
const nameObserved = "action"

// calls reads the calls of groups by the rules for steps. Its methods are safe for
// concurrent use.
type calls struct {
	reducer *step.Reducer
	// briefs are calls in messages.
	briefs *cache.Cache[[sha256.Size]byte, step.Step]
}

// done is a call of a group with what it gave.
type done struct {
	act history.Act
	// call is the call of a message; nil of an action that was text, and of a result
	// that no call waits for.
	call *pairing.Call
	// result is the position of the entry with the result, 0 for none.
	result uint64
}

// done are the calls of a group in order: each has a step, a message or a block of
// one for its result, or nothing.
// whole is what a prompt shows of its outputs with nothing folded.
func (r *calls) done(g *pairing.Group, whole pairing.Output) []done {
	var all []done
	for _, t := range g.Turns {
		for i := range t.Calls {
			all = append(all, r.called(g, &t.Calls[i]))
		}
	}
	if g.Asks() == nil {
		all = append(all, r.observations(g)...)
	}
	for i := range g.Members {
		if m := &g.Members[i]; m.Use == pairing.Stray {
			all = append(all, done{r.asCall(m.Entry, nameObserved, "{}", whole(m.Entry.Position)), nil, m.Entry.Position})
		}
	}
	return all
}

// actsOf are the calls alone.
func actsOf(all []done) []history.Act {
	acts := make([]history.Act, len(all))
	for i := range all {
		acts[i] = all[i].act
	}
	return acts
}

// called is a call of a message, or a step that none asked for.
func (r *calls) called(g *pairing.Group, c *pairing.Call) done {
	var e session.Entry
	text := ""
	switch {
	case c.Result != 0:
		if e = g.EntryAt(c.Result); e.Step != nil {
			return done{history.Act{Step: *e.Step}, c, c.Result}
		}
		text = pairing.Words(e.Message)
	case c.Answered:
		e, text = g.AnswerWithin(c.ID)
	}
	if e.Message == nil {
		return done{act: r.unanswered(g, c), call: c}
	}
	return done{r.asCall(e, c.Wish.Name, c.Wish.Arguments, text), c, e.Position}
}

// unanswered is a call without a result.
func (r *calls) unanswered(g *pairing.Group, c *pairing.Call) history.Act {
	name := r.reducer.ToolName(c.Wish.Name)
	return history.Act{
		Step: step.Step{
			ToolName: name, CalledAs: c.Wish.Name, MinimalArgs: r.reducer.MinimalArgs(name, objectOf(c.Wish.Arguments)),
			Outcome: step.Unknown, Observation: pairing.NoResult,
		},
		Ref: session.MessageID(g.First()),
	}
}

// observations are what messages observed of an action that was text.
func (r *calls) observations(g *pairing.Group) []done {
	var all []done
	name, args := nameObserved, "{}"
	for i := range g.Members {
		m := &g.Members[i]
		if m.Speaks() {
			if a, ok := step.ParseAction(pairing.Words(m.Entry.Message)); ok {
				name, args = a.Name, string(text.CanonicalJSON(a.Args))
			}
		}
		if m.Use != pairing.Observed {
			continue
		}
		all = append(all, done{r.asCall(m.Entry, name, args, pairing.Words(m.Entry.Message)), nil, m.Entry.Position})
		name, args = nameObserved, "{}"
	}
	return all
}

// asCall returns a call with a message as its result. Parts that the preset hides can be
// read by the message's name.
func (r *calls) asCall(e session.Entry, name, args, result string) history.Act {
	s := r.reduced(name, args, result)
	s.Inline, s.Pinned = result, e.Message.Pinned
	id := session.MessageID(e.Position)
	if s.OutcomeRef != "" {
		s.OutcomeRef, s.OutcomePath = id, session.HistoryFolder+id+".txt"
	}
	return history.Act{Step: s, Ref: id}
}

// reduced is a call in a message by the rules for steps, but for its Inline. It has
// an OutcomeRef if its result would be offloaded. Nobody says whether such a call
// failed.
func (r *calls) reduced(name, args, result string) step.Step {
	key := reducedKey(name, args, result)
	if s, ok := r.briefs.Get(key); ok {
		return s
	}
	c := step.Call{Tool: r.reducer.ToolName(name), Args: objectOf(args)}
	c.Result = resultOf(c.Tool, result)
	got := r.reducer.Reduce(c)
	s := step.Step{
		ToolName: c.Tool, CalledAs: name, MinimalArgs: got.MinimalArgs, Observation: text.Valid(got.Observation),
		Outcome: got.Outcome, Error: got.Error, Metadata: got.Metadata,
	}
	if got.Offload {
		s.OutcomeRef = "kept"
	}
	r.briefs.Put(key, s, 1)
	return s
}

func reducedKey(parts ...string) (key [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Sum(key[:0])
	return key
}

// objectOf are arguments as a model wrote them; nil where they are no JSON object.
func objectOf(args string) map[string]any {
	value, err := text.DecodeJSON([]byte(args))
	if err != nil {
		return nil
	}
	object, _ := value.(map[string]any)
	return object
}

// resultOf is a result that stands in a message: JSON, or a text.
func resultOf(tool, s string) step.Result {
	if begin := strings.TrimLeft(s, " \t\r\n"); strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[") {
		switch value, err := text.DecodeJSON([]byte(s)); value := value.(type) {
		case map[string]any:
			if err == nil {
				return step.Result{Output: value, Unjudged: true}
			}
		case []any:
			if err == nil {
				return step.Result{Value: value, IsValue: true, Unjudged: true}
			}
		}
	}
	out := step.Result{BodyKey: "output", BodyText: s, BodySize: int64(len(s)), Unjudged: true}
	if tool == step.ToolReadFile {
		out.BodyKey = "content"
	}
	if len(s) > step.HeldBodyBytes {
		out.BodyText, out.BodyTail = text.Head(s, step.HeldBodyBytes), text.Tail(s, step.HeldBodyBytes)
	}
	return out
}
