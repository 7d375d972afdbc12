package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// dealer makes conversations as the assembler hands them over: calls with their
// results right behind, in the blocks of any provider.
type dealer struct {
	r    *rand.Rand
	ids  int
	out  []session.Message
	wild bool // nothing fits together
}

func (d *dealer) id() string {
	if d.r.IntN(4) == 0 {
		return "again" // ids repeat
	}
	d.ids++
	return fmt.Sprintf("call.%d", d.ids)
}

func (d *dealer) pick(texts ...string) string { return texts[d.r.IntN(len(texts))] }

func (d *dealer) say(role session.Role, blocks ...string) {
	d.out = append(d.out, session.Message{Role: role, BlocksJSON: json.RawMessage("[" + strings.Join(blocks, ",") + "]")})
}

func (d *dealer) text() string {
	return d.pick("", " ", "I look.", "<system_message>", "a\n\nb", "é→\u2028")
}

// speak adds a message without calls.
func (d *dealer) speak() {
	role := []session.Role{session.System, session.Developer, session.User, session.User, session.Assistant}[d.r.IntN(5)]
	switch {
	case role == session.User && d.r.IntN(2) == 0:
		d.say(role, d.pick(
			`{"type":"text","text":"x"}`, `{"type":"input_text","text":"x"}`, `{"text":"x"}`, `{"type":"text","text":""}`,
		), d.pick(
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`, `{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}}`,
			`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, `{"type":"input_file","file_id":"f"}`, `1`,
		))
	case role == session.User && d.r.IntN(4) == 0:
		d.say(role, `{"type":"what","is":"this"}`)
	case role == session.Assistant && d.r.IntN(2) == 0:
		d.say(role, d.pick(
			`{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"reasoning","id":"r","summary":[]}`, `{"text":"t","thought":true}`,
			`{"type":"thinking","thinking":"unsigned","signature":""}`, `{"type":"refusal","refusal":"no"}`, `{"type":"message","role":"assistant","content":[]}`,
		))
	default:
		d.out = append(d.out, session.Message{Role: role, Content: d.text(), Name: d.pick("", "ann b")})
	}
}

// step adds a message with calls, and their results.
func (d *dealer) step() {
	n := 1 + d.r.IntN(4)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = d.id()
	}
	var calls, results []string
	kind := d.r.IntN(4)
	if kind > 0 && kind < 3 {
		for i := range ids {
			for j := range i {
				if ids[i] == ids[j] {
					ids[i] += "x" // one message of a provider has no id twice
				}
			}
		}
	}
	for i, id := range ids {
		switch kind {
		case 1:
			calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"fs_read_file","input":{}}`, strings.ReplaceAll(id, ".", "_")))
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"x"}`, strings.ReplaceAll(id, ".", "_")))
		case 2:
			calls = append(calls, fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"fs_read_file","arguments":"{}"}`, id))
			results = append(results, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"x"}`, id))
		case 3:
			signature := ""
			if i == 0 {
				signature = `,"thoughtSignature":"c2ln"`
			}
			calls = append(calls, `{"functionCall":{"name":"fs_read_file","args":{}}`+signature+`}`)
			results = append(results, `{"functionResponse":{"name":"fs_read_file","response":{"output":"x"}}}`)
		}
	}
	if kind == 0 {
		d.chat(ids)
		return
	}
	d.say(session.Assistant, append([]string{d.pick(`{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"reasoning","id":"r","summary":[]}`, `{"text":"x"}`)}, calls...)...)
	d.say(session.User, results...)
}

func (d *dealer) chat(ids []string) {
	asks := session.Message{Role: session.Assistant, Content: d.text()}
	for i, id := range ids {
		for j := range i {
			if asks.ToolCalls[j].ID == id {
				id += fmt.Sprint("_", i)
			}
		}
		ids[i] = id
		asks.ToolCalls = append(asks.ToolCalls, session.ToolCall{ID: id, Name: "fs:read_file", Arguments: d.pick("{}", "", "{", `"x"`, `{"path":"a"}`)})
	}
	d.out = append(d.out, asks)
	for _, id := range ids {
		m := session.Message{Role: session.Tool, ToolCallID: id, Content: d.text()}
		if d.r.IntN(4) == 0 {
			m.Content, m.BlocksJSON = "", json.RawMessage(`[{"type":"image","data":"AAAA","mimeType":"image/png"}]`)
		}
		d.out = append(d.out, m)
	}
}

// Whatever was recorded, no provider refuses the body, and the same prompt gives the
// same bytes. What does not fit together at all is made to fit in all formats whose
// bodies are written at once.
//
// M01
func TestBodiesAreTaken(t *testing.T) {
	bodies := 0
	for seed := range uint64(600) {
		d := &dealer{r: rand.New(rand.NewPCG(seed, 2)), wild: seed%3 == 0}
		for range d.r.IntN(12) {
			if d.r.IntN(3) == 0 {
				d.speak()
			} else {
				d.step()
			}
		}
		if d.wild {
			d.r.Shuffle(len(d.out), func(i, j int) { d.out[i], d.out[j] = d.out[j], d.out[i] })
		}
		marks := []provider.Mark{{BlockPlace: provider.BlockPlace{Message: provider.BehindTools}}, {BlockPlace: provider.BlockPlace{Message: len(d.out) / 2, Block: 9}}, {BlockPlace: provider.BlockPlace{Message: len(d.out) - 1, Block: 9}}}
		for f := provider.OpenAIChat; f <= provider.Gemini; f++ {
			if d.wild && f == provider.OpenAIChat {
				continue
			}
			body := mustEncode(t, f, d.out, marks)
			if again := mustEncode(t, f, d.out, marks); !bytes.Equal(body.JSON, again.JSON) {
				t.Fatalf("seed %d: %s differs", seed, f)
			}
			if n := len(body.Marks); f == provider.Anthropic && bytes.Count(body.JSON, []byte(`"cache_control"`)) != n {
				t.Errorf("seed %d: %d marks are told", seed, n)
			}
			bodies++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d bodies", bodies)
}

// A longer prompt begins with the bytes of a shorter one, so that caches hit.
//
// M04
func TestPrefixesStay(t *testing.T) {
	for seed := range uint64(100) {
		d := &dealer{r: rand.New(rand.NewPCG(seed, 3))}
		d.out = append(d.out, session.Message{Role: session.User, Content: "begin"})
		for f := provider.OpenAIChat; f <= provider.Gemini; f++ {
			var before []byte
			for range 6 {
				d.step()
				d.out = append(d.out, session.Message{Role: session.User, Content: "Goal: x"})
				body := mustEncode(t, f, d.out, nil).JSON
				d.out = d.out[:len(d.out)-1]
				shared := 0
				for shared < min(len(before), len(body)) && before[shared] == body[shared] {
					shared++
				}
				if goal := bytes.LastIndex(before, []byte("Goal: x")); shared < goal {
					// The field names of the object with the goal may differ, no more.
					if begin := bytes.LastIndexByte(before[:goal], '{'); shared < begin-len(`{"role":"user","parts":[`) {
						t.Fatalf("seed %d, %s: %d of %d bytes are shared:\n%s\n%s", seed, f, shared, goal, before, body)
					}
				}
				before = body
			}
		}
	}
}
