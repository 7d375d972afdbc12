package assemble

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/converter"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// omits tells whether the results of a group stand in no prompt. Pinned ones do, and
// those of a turn that waits for more.
func (r *reading) omits(g *group) bool {
	return r.t.preset.Results == history.ResultsOmit && !g.pinned() && !g.open
}

// withoutResults are the messages of a group with its calls as text, and without what
// tools gave.
func (r *reading) withoutResults(g *group) []item {
	spoken := make(map[string]item)
	for _, it := range r.spokenItems(g) {
		spoken[it.label] = it
	}
	var out []item
	for _, t := range g.turns {
		it, said := spoken[t.label]
		if len(t.calls) > 0 {
			lines := make([]string, 0, len(t.calls)+1)
			if said {
				lines = append(lines, it.message.Content)
			}
			for i := range t.calls {
				lines = append(lines, r.calling(&t.calls[i]))
			}
			it = item{label: t.label, message: session.Message{Role: session.Assistant, Content: strings.Join(lines, "\n"), Name: it.message.Name}}
			said = true
		}
		if said {
			out = append(out, it)
		}
	}
	return out
}

// calling is the text of a call.
func (r *reading) calling(c *call) string {
	args := c.wish.Arguments
	if kept, ok := r.withoutWritten(c.wish); ok {
		args = kept
	}
	return converter.Calling(c.wish.Name, json.RawMessage(args))
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
