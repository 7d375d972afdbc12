package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/hooks"
)

// dialect is the API that a request speaks.
type dialect int

const (
	foreign dialect = iota // is passed on, and nothing more
	chat
	responses
	anthropic
)

// dialects are those of the paths behind an upstream's name.
var dialects = map[string]dialect{"v1/chat/completions": chat, "v1/responses": responses, "v1/messages": anthropic}

// list is the member of a request that has its conversation.
func (d dialect) list() string {
	if d == responses {
		return "input"
	}
	return "messages"
}

// item is one thing that was said or done, as a session's log takes it.
type item struct {
	message *loombridgev1.Message // nil for a step, and for parts of an answer
	answer  []json.RawMessage     // of Responses: what the model said between two others
	result  *result               // of a step
	call    call                  // of a step
	mark    mark
	asks    bool // the user says something
	from    int  // the first of its elements in the request's list; negative where that is a text
	to      int  // the last one
}

// said is the message of an item that is no step.
func (i *item) said() *loombridgev1.Message {
	if i.message == nil {
		return &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, BlocksJson: string(listOf(i.answer))}
	}
	return i.message
}

// maxErrorBytes is the longest error of a failed tool that a step has.
const maxErrorBytes = 64 << 10

// step is an item that is one, without its session.
func (i *item) step() *loombridgev1.RecordStepRequest {
	step := &loombridgev1.RecordStepRequest{ToolName: hooks.ToolName(i.call.name), CallId: i.result.id, Success: !i.result.failed}
	if arguments := hooks.Arguments(i.call.arguments); len(arguments) > 0 {
		step.ArgumentsForm = &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: string(arguments)}
	}
	if i.result.failed {
		step.ErrorMessage = text.Head(i.result.text, maxErrorBytes)
	}
	return step
}

// talk is what a request says.
type talk struct {
	model    string
	previous string // names what was said before and is not in items; empty: nothing was
	system   string // the instructions
	tools    span
	list     span   // the conversation in the body
	elements []span // those of the list
	told     []*told
	items    []item // the conversation without the instructions that it begins with
	calls    map[string]call
	open     bool // the last item is an answer of Responses that may go on
}

// maxValues bounds the values of a request that is read, each of which takes up to some hundred
// bytes: a conversation of maxItems has a quarter as many. A longer one is passed on alone.
const maxValues = 1 << 19

var errUnread = errors.New("proxy: the body is not what the API takes")

// parse reads a request. A fault in reading hostile text is an error of that text alone.
func (d dialect) parse(body []byte, known *known) (t *talk, err error) {
	defer func() {
		if recover() != nil {
			t, err = nil, errUnread
		}
	}()
	if valuesOf(body) > maxValues {
		return nil, status.Errorf(codes.ResourceExhausted, "the request has more than %d values", maxValues)
	}
	t = &talk{calls: map[string]call{}}
	var instructions, conversation, input string
	twice := 0
	whole := members(body, span{0, len(body)}, func(name string, value span) {
		raw := json.RawMessage(value.of(body))
		switch name {
		case "model":
			t.model, _ = plainText(raw)
		case d.list():
			t.list = value
			twice++
		case "system", "instructions":
			instructions, _ = plainText(raw)
		case "tools":
			t.tools = value
		case "previous_response_id":
			t.previous, _ = plainText(raw)
		case "conversation":
			if conversation = string(raw); conversation == "null" {
				conversation = ""
			}
		}
	})
	if !whole || twice > 1 {
		return nil, errUnread
	}
	if t.system = instructions; d == responses && t.previous == "" {
		t.previous = conversation
	} else if d != responses {
		t.previous = ""
	}
	switch raw := t.list.of(body); {
	case d == responses && len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &input) == nil:
		t.told = []*told{{role: loombridgev1.Role_ROLE_USER, message: &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: input}}}
		t.told[0].finish()
		t.take(-1, t.told[0])
		return t, nil
	case len(raw) == 0 && d != responses:
		return t, nil
	case !elements(body, t.list, func(value span) { t.elements = append(t.elements, value) }):
		return nil, errUnread
	}
	t.told, t.items = make([]*told, 0, len(t.elements)), make([]item, 0, len(t.elements))
	for i, at := range t.elements {
		e, err := known.tell(d, at.of(body))
		if err != nil {
			return nil, err
		}
		t.told = append(t.told, e)
		t.take(i, e)
	}
	return t, nil
}

// take takes up what an element says.
func (t *talk) take(at int, e *told) {
	for _, c := range e.calls {
		t.calls[c.id] = c
	}
	if e.answer != nil {
		if !t.open {
			t.items = append(t.items, item{from: at})
			t.open = true
		}
		last := &t.items[len(t.items)-1]
		last.answer, last.to = append(last.answer, e.answer), at
		last.mark = last.mark.with(e.mark)
		return
	}
	t.open = false
	message, mark := e.message, e.mark
	var rest []json.RawMessage
	for i := range e.results {
		r := &e.results[i]
		if c, known := t.calls[r.id]; known && r.plain && r.id != "" && hooks.ToolName(c.name) != "" {
			t.items = append(t.items, item{result: r, call: c, mark: stepMark(r.id), from: at, to: at})
		} else {
			rest = append(rest, r.raw)
		}
	}
	switch {
	case e.alone && len(rest) == 0:
		return // it is a step
	case len(rest) > 0 && !e.alone: // as it came, but for what is a step
		message = &loombridgev1.Message{Role: e.role}
		message.BlocksJson = string(content.Without(e.blocks, func(b *content.Block) bool {
			return b.Kind == content.Result && !slices.ContainsFunc(rest, func(raw json.RawMessage) bool { return bytes.Equal(raw, b.Raw) })
		}))
		mark = markOf(message)
	}
	instructs := e.role == loombridgev1.Role_ROLE_SYSTEM || e.role == loombridgev1.Role_ROLE_DEVELOPER
	switch {
	case blank(message):
	case instructs && len(t.items) == 0 && t.previous == "":
		t.system += "\n" + wordsOf(message)
	default:
		t.items = append(t.items, item{message: message, mark: mark, asks: e.asks, from: at, to: at})
	}
}

// blank reports whether a message says nothing.
func blank(m *loombridgev1.Message) bool {
	return m.GetContent() == "" && m.GetBlocksJson() == "" && len(m.GetToolCalls()) == 0 && m.GetExtraJson() == ""
}

// mark is what two tellings of the same message have in common: who speaks, the words without
// white space around them, the ids of calls. Thoughts do not count, since programs drop them.
type mark [sha256.Size]byte

// with is the mark of an answer with one more part, which may say nothing that counts.
func (m mark) with(part mark) mark {
	if part == (mark{}) {
		return m
	}
	var both [2 * sha256.Size]byte
	copy(both[:], m[:])
	copy(both[sha256.Size:], part[:])
	return sha256.Sum256(both[:])
}

func stepMark(id string) mark { return sha256.Sum256([]byte("step\x00" + id)) }

// markOf is the mark of a message.
func markOf(m *loombridgev1.Message) (found mark) {
	if m.GetRole() == loombridgev1.Role_ROLE_TOOL {
		return stepMark(m.GetToolCallId() + "\x00" + m.GetName())
	}
	var blocks []content.Block
	if m.GetBlocksJson() != "" {
		blocks = content.Parse([]byte(m.GetBlocksJson()))
	}
	if m.GetRole() == loombridgev1.Role_ROLE_ASSISTANT && slices.ContainsFunc(blocks, func(b content.Block) bool { return b.Kind == content.Said || b.Dialect == content.Responses }) {
		for i := range blocks {
			found = found.with(partMark(blocks[i : i+1]))
		}
		return found
	}
	var said, others strings.Builder
	said.WriteString(m.GetContent())
	markBlocks(blocks, &said, &others)
	for _, call := range m.GetToolCalls() {
		others.WriteString("call\x00" + call.GetId() + "\x00")
	}
	return sha256.Sum256([]byte(m.GetRole().String() + "\x00" + strings.Join(strings.Fields(said.String()), " ") + "\x00" + others.String()))
}

// partMark is that of a part of an answer; zero where it says nothing that counts.
func partMark(blocks []content.Block) mark {
	var said, others strings.Builder
	markBlocks(blocks, &said, &others)
	words := strings.Fields(said.String())
	if len(words) == 0 && others.Len() == 0 {
		return mark{}
	}
	return sha256.Sum256([]byte(strings.Join(words, " ") + "\x00" + others.String()))
}

func markBlocks(blocks []content.Block, said, others *strings.Builder) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case content.Said:
			markBlocks(b.Parts, said, others)
		case content.Thought:
		case content.Call, content.Result:
			others.WriteString("call\x00" + b.ID + "\x00")
		case content.Image, content.Audio, content.File:
			m := b.Media()
			others.WriteString("media\x00" + m.Data + m.URL + m.FileID + m.Text + "\x00")
		default:
			said.WriteString(b.Text + " ")
		}
	}
}
