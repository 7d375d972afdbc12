package assemble

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/converter"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// omits tells whether the results of a group stand in no prompt. Pinned ones do, and
// those of a turn that waits for more.
func (r *reading) omits(g *pairing.Group) bool {
	return r.t.preset.Results == history.ResultsOmit && !g.Pinned() && !g.Open
}

// withoutResults are the messages of a group with its calls as text, and without what
// tools gave.
func (r *reading) withoutResults(g *pairing.Group) []pairing.Item {
	spoken := make(map[string]pairing.Item)
	for _, it := range r.spokenItems(g) {
		spoken[it.Label] = it
	}
	var out []pairing.Item
	for _, t := range g.Turns {
		it, said := spoken[t.Label]
		if len(t.Calls) > 0 {
			lines := make([]string, 0, len(t.Calls)+1)
			if said {
				lines = append(lines, it.Message.Content)
			}
			for i := range t.Calls {
				lines = append(lines, r.calling(&t.Calls[i]))
			}
			it = pairing.Item{Label: t.Label, Message: session.Message{Role: session.Assistant, Content: strings.Join(lines, "\n"), Name: it.Message.Name}}
			said = true
		}
		if said {
			out = append(out, it)
		}
	}
	return out
}

// calling is the text of a call.
func (r *reading) calling(c *pairing.Call) string {
	args := c.Wish.Arguments
	if kept, ok := r.withoutWritten(c.Wish); ok {
		args = kept
	}
	return converter.Calling(c.Wish.Name, json.RawMessage(args))
}

// result is what stands for the result of a call.
func (r *reading) result(d *done, whole string, bare bool) string {
	if r.t.preset.Results == history.ResultsCompressed && !bare {
		return r.compressed(&d.act, whole)
	}
	return r.compactor.Result(&d.act, whole, bare)
}

// compressed is the short form of a result, or the whole where that is no longer. The
// whole was stored when the result was recorded, and is named by its path.
func (r *reading) compressed(a *history.Act, whole string) string {
	if a.Pinned || a.Inline == "" || a.Outcome != step.Succeeded {
		return whole
	}
	code, _ := a.Exit()
	short := r.t.compressor.Compress(compress.Result{
		Content: a.Inline, Tool: a.ToolName, Path: pathOf(a.MinimalArgs), ExitCode: code, Ref: refOf(a), RefPath: cmp.Or(a.OutcomePath, a.ID()),
	})
	if !short.IsCompressed || r.t.count(short.Text) >= r.t.count(whole) {
		return whole
	}
	return short.Text
}

// unbounded lets a compressor cut nothing: what is too long for a prompt is cut last.
const unbounded = -1

// refDigits of a hash name a result.
const refDigits = 12

// refOf names the whole result: the beginning of its hash, or what the act is called
// by.
func refOf(a *history.Act) string {
	if a.Ref == "" && len(a.OutcomeRef) > refDigits {
		return a.OutcomeRef[:refDigits]
	}
	return a.ID()
}

// pathOf is the file that a call names, or empty.
func pathOf(args json.RawMessage) string {
	value, err := text.DecodeJSON(args)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return ""
	}
	path, _ := object["path"].(string)
	return path
}
