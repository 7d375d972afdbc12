package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
)

type object = map[string]any

// strict refuses a body as its provider would: the same rules as the local servers of
// the Python tests, as far as bodies can break them by how they are put together.
func strict(f provider.Format, body []byte) error {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return err
	}
	switch f {
	case provider.OpenAIChat:
		return strictChat(list(o["messages"]))
	case provider.OpenAIResponses:
		return strictResponses(list(o["input"]))
	case provider.Anthropic:
		return strictAnthropic(o, body)
	case provider.Gemini:
		return strictGemini(list(o["contents"]))
	}
	return nil
}

func list(v any) []object {
	var out []object
	values, _ := v.([]any)
	for _, v := range values {
		o, _ := v.(object)
		out = append(out, o)
	}
	return out
}

func str(v any) string { s, _ := v.(string); return s }

func strictChat(messages []object) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m["role"] == "tool" {
			if !open[str(m["tool_call_id"])] {
				return fmt.Errorf("message %d answers %v, which nobody asked", i, m["tool_call_id"])
			}
			delete(open, str(m["tool_call_id"]))
			for _, b := range list(m["content"]) {
				if b["type"] != "text" {
					return fmt.Errorf("message %d is a result with a block %v", i, b["type"])
				}
			}
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d follows calls without results", i)
		}
		for _, b := range list(m["content"]) {
			switch b["type"] {
			case "text", "refusal", "image_url", "input_audio", "file":
			case "what", nil: // nobody knows it, so it stays
			default:
				return fmt.Errorf("message %d has a block %v", i, b["type"])
			}
		}
		for _, c := range list(m["tool_calls"]) {
			open[str(c["id"])] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the last calls have no results")
	}
	return nil
}

func strictResponses(items []object) error {
	open, done := map[string]bool{}, map[string]bool{}
	for i, item := range items {
		id := str(item["call_id"])
		switch item["type"] {
		case "function_call", "custom_tool_call":
			if open[id] || done[id] {
				return fmt.Errorf("item %d repeats the call %q", i, id)
			}
			open[id] = true
		case "function_call_output", "custom_tool_call_output":
			if !open[id] {
				return fmt.Errorf("item %d answers %q, which nobody asked", i, id)
			}
			delete(open, id)
			done[id] = true
		case "reasoning":
			if i+1 == len(items) || items[i+1]["role"] == "user" || items[i+1]["type"] == "function_call_output" {
				return fmt.Errorf("item %d thinks of nothing", i)
			}
		case "message":
		case "":
			return fmt.Errorf("item %d has no type", i)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without results: %v", open)
	}
	return nil
}

var plainID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func strictAnthropic(o object, body []byte) error {
	if n := strings.Count(string(body), `"cache_control"`); n > provider.MaxMarks {
		return fmt.Errorf("%d cache marks", n)
	}
	messages := list(o["messages"])
	if len(messages) == 0 || messages[0]["role"] != "user" {
		return fmt.Errorf("the user does not begin")
	}
	ids := map[string]bool{}
	var asked []string
	for i, m := range messages {
		blocks := list(m["content"])
		if len(blocks) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if i > 0 && messages[i-1]["role"] == m["role"] {
			return fmt.Errorf("message %d has the role of the one before", i)
		}
		answered := map[string]bool{}
		var now []string
		for j, b := range blocks {
			switch b["type"] {
			case "text":
				if strings.TrimSpace(str(b["text"])) == "" {
					return fmt.Errorf("message %d has a blank text", i)
				}
			case "tool_use":
				id := str(b["id"])
				if ids[id] || !plainID.MatchString(id) || !plainID.MatchString(str(b["name"])) || m["role"] != "assistant" {
					return fmt.Errorf("message %d: call %q of %v", i, id, b["name"])
				}
				if _, ok := b["input"].(object); !ok {
					return fmt.Errorf("message %d: input %v", i, b["input"])
				}
				ids[id], now = true, append(now, id)
			case "tool_result":
				if j > 0 && blocks[j-1]["type"] != "tool_result" {
					return fmt.Errorf("message %d: a result behind other blocks", i)
				}
				answered[str(b["tool_use_id"])] = true
			case "thinking", "redacted_thinking":
				if t := blocks[0]["type"]; m["role"] != "assistant" || t != "thinking" && t != "redacted_thinking" {
					return fmt.Errorf("message %d: a thought behind other blocks", i)
				}
			case "image", "document", "server_tool_use", "web_search_tool_result":
			default:
				return fmt.Errorf("message %d: a block %v", i, b["type"])
			}
		}
		if len(answered) != len(asked) {
			return fmt.Errorf("message %d answers %d of %d calls", i, len(answered), len(asked))
		}
		for _, id := range asked {
			if !answered[id] {
				return fmt.Errorf("message %d does not answer %q", i, id)
			}
		}
		asked = now
	}
	if len(asked) > 0 {
		return fmt.Errorf("the last calls have no results")
	}
	return nil
}

func strictGemini(contents []object) error {
	if len(contents) == 0 || contents[0]["role"] != "user" {
		return fmt.Errorf("the user does not begin")
	}
	asked := 0
	for i, c := range contents {
		parts := list(c["parts"])
		if len(parts) == 0 || i > 0 && contents[i-1]["role"] == c["role"] {
			return fmt.Errorf("content %d is empty, or has the role of the one before", i)
		}
		calls, answers := 0, 0
		for j, p := range parts {
			if call, ok := p["functionCall"].(object); ok {
				if _, isObject := call["args"].(object); call["args"] != nil && !isObject {
					return fmt.Errorf("content %d: args %v", i, call["args"])
				}
				if calls++; calls == 1 && p["thoughtSignature"] == nil {
					return fmt.Errorf("content %d: the first call is not signed", i)
				}
			}
			if p["functionResponse"] != nil {
				if answers++; answers != j+1 {
					return fmt.Errorf("content %d: a response behind other parts", i)
				}
			}
			if p["type"] != nil {
				return fmt.Errorf("content %d: a block of another provider: %v", i, p)
			}
		}
		if answers != asked {
			return fmt.Errorf("content %d has %d responses to %d calls", i, answers, asked)
		}
		asked = calls
	}
	if asked > 0 {
		return fmt.Errorf("the last calls have no responses")
	}
	return nil
}
