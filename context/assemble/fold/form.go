package fold

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/converter"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// form are the messages of a group that is no line, with their sizes.
func (r *presetReading) form(g *pairing.Group, form history.Form) ([]pairing.Item, error) {
	if form == history.AsItIs {
		return r.c.Items(g.Items(r.outputs(g)))
	}
	full, bare, err := r.forms(g)
	if form == history.Bare {
		return bare, err
	}
	return full, err
}

// forms are the messages of a group in full, in the words of the preset: written content is
// removed from the arguments of calls, and observations replace results that the preset
// hides. bare are the messages without any results. Pinned entries stay unchanged.
func (r *presetReading) forms(g *pairing.Group) (full, bare []pairing.Item, err error) {
	if r.omits(g) {
		full, err = r.c.Items(r.withoutResults(g))
		return full, full, err
	}
	whole := r.outputs(g)
	all := r.done(g, whole)
	w := wording{own: g.Copied(), texts: make(map[uint64]string), within: make(map[string]string)}
	r.leaveOutWritten(w.own, all)
	r.replace(&w, all, whole, false)
	if full, err = r.c.Items(w.items(whole)); err != nil {
		return nil, nil, err
	}
	r.replace(&w, all, whole, true)
	bare, err = r.c.Items(w.items(whole))
	return full, bare, err
}

// replace puts the preset's words into the places of results.
func (r *presetReading) replace(w *wording, all []done, whole pairing.Output, bare bool) {
	for i := range all {
		d := &all[i]
		if d.result == 0 {
			continue
		}
		result := whole(d.result)
		if d.inBlocks() {
			result = d.act.Inline
		}
		text := r.result(d, result, bare)
		if r.marker != nil {
			if line, marked := r.marker(d); marked && r.c.Text(line) < r.c.Text(text) {
				text = line
			}
		}
		if text != result {
			w.put(d, text)
		}
	}
}

// inBlocks reports whether a result stands in blocks.
func (d *done) inBlocks() bool { return d.call != nil && (d.call.Answered || len(d.call.Blocks) > 0) }

// wording shows a group with other texts in the place of results.
type wording struct {
	own *pairing.Group
	// texts are by the position of the result, within by the id of a call whose
	// result is a block.
	texts  map[uint64]string
	within map[string]string
}

// put puts a text into the place of a result. Content that is no text stays.
func (w *wording) put(d *done, text string) {
	if d.call != nil && d.call.Answered {
		w.within[d.call.ID] = text
		return
	}
	if d.call != nil && len(d.call.Blocks) > 0 && !onlyText(d.call.Blocks) {
		return
	}
	w.texts[d.result] = text
	for _, t := range w.own.Turns {
		for i := range t.Calls {
			if t.Calls[i].Result == d.result {
				t.Calls[i].Blocks = nil
			}
		}
	}
}

// onlyText reports whether blocks are texts.
func onlyText(blocks json.RawMessage) bool { return content.OnlyText(content.Parse(blocks)) }

// items are the group's messages.
func (w *wording) items(whole pairing.Output) []pairing.Item {
	items := w.own.Items(func(position uint64) string {
		if s, ok := w.texts[position]; ok {
			return s
		}
		return whole(position)
	})
	if len(w.within) == 0 {
		return items
	}
	for i := range items {
		m := &items[i].Message
		m.BlocksJSON = content.WithResults(m.BlocksJSON, func(id string) (string, bool) {
			text, ok := w.within[id]
			return text, ok
		})
	}
	return items
}

// leaveOutWritten takes out of a group what its calls wrote: the tool has it, and
// the log. all are the calls in the order of the turns.
func (r *calls) leaveOutWritten(g *pairing.Group, all []done) {
	for _, t := range g.Turns {
		inputs := make(map[string]string)
		for i := range t.Calls {
			c := &t.Calls[i]
			pinned := all[i].act.Pinned || t.Said != nil && t.Said.Pinned
			if args, ok := r.withoutWritten(c.Wish); ok && !pinned {
				c.Wish.Arguments, inputs[c.ID] = args, args
			}
		}
		all = all[len(t.Calls):]
		if len(inputs) == 0 || t.Said == nil || len(t.Said.BlocksJSON) == 0 {
			continue
		}
		said := *t.Said
		said.BlocksJSON = content.WithArguments(said.BlocksJSON, func(id string) (string, bool) {
			args, ok := inputs[id]
			return args, ok
		})
		t.Said = &said
	}
}

// withoutWritten are the arguments of a call without the text that it wrote; false
// where there is none.
func (r *calls) withoutWritten(wish session.ToolCall) (string, bool) {
	kept := r.reducer.KeptArg(r.reducer.ToolName(wish.Name))
	if kept == "" || !strings.Contains(wish.Arguments, kept) {
		return "", false
	}
	args := objectOf(wish.Arguments)
	if _, ok := args[kept].(string); !ok {
		return "", false
	}
	delete(args, kept)
	return string(text.CanonicalJSON(args)), true
}

// omits reports whether the results of a group stand in no prompt. Pinned results do, and
// results of a turn that waits for more.
func (r *presetReading) omits(g *pairing.Group) bool {
	return r.c.Preset.Results == history.ResultsOmit && !g.Pinned() && !g.Open
}

// withoutResults are the messages of a group with its calls as text, and without what
// tools gave.
func (r *presetReading) withoutResults(g *pairing.Group) []pairing.Item {
	spoken := make(map[string]pairing.Item)
	for _, it := range spokenItems(g) {
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
func (r *calls) calling(c *pairing.Call) string {
	args := c.Wish.Arguments
	if kept, ok := r.withoutWritten(c.Wish); ok {
		args = kept
	}
	return converter.Calling(c.Wish.Name, json.RawMessage(args))
}

// result is what stands for the result of a call.
func (r *presetReading) result(d *done, whole string, bare bool) string {
	if r.c.Preset.Results == history.ResultsCompressed && !bare {
		return r.compressed(&d.act, whole)
	}
	return r.c.compactor.Result(&d.act, whole, bare)
}

// compressed is the short form of a result, or the whole where that is no longer. The
// whole was stored when the result was recorded, and is named by its path.
func (r *presetReading) compressed(a *history.Act, whole string) string {
	if a.Pinned || a.Inline == "" || a.Outcome != step.Succeeded {
		return whole
	}
	code, _ := a.Exit()
	short := r.c.compressor.Compress(compress.Result{
		Content: a.Inline, Tool: a.ToolName, Path: pathOf(a.MinimalArgs), ExitCode: code, Ref: refOf(a), RefPath: cmp.Or(a.OutcomePath, a.ID()),
	})
	if !short.IsCompressed || r.c.Text(short.Text) >= r.c.Text(whole) {
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
