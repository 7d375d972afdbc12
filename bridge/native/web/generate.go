package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Defaults of llm:generate, as loom.v1 has them.
const (
	DefaultModelURL         = "http://localhost:8000/v1"
	DefaultModel            = "qwen2.5-0.5b-instruct"
	DefaultModelTemperature = 0.7
	DefaultModelTimeout     = 30 * time.Second

	defaultInputTokens  = 2048
	defaultOutputTokens = 512
	// charsPerToken is how loom.v1 counts.
	charsPerToken = 4
)

// The providers that a result names.
const (
	providerResponses = "responses"
	providerChat      = "chat.completions"
)

// Model says which model llm:generate asks. Zero fields mean the defaults.
type Model struct {
	// BaseURL is an OpenAI-compatible server. Default DefaultModelURL.
	BaseURL string
	// Name is the model. Default DefaultModel.
	Name string
	// Key is the API key. Default: none is sent.
	Key string
	// Temperature is that of sampling; negative is 0. Default DefaultModelTemperature.
	Temperature float64
	// Timeout bounds each request. Default DefaultModelTimeout.
	Timeout time.Duration
}

func (m Model) withDefaults() Model {
	if m.BaseURL == "" {
		m.BaseURL = DefaultModelURL
	}
	if m.Name == "" {
		m.Name = DefaultModel
	}
	if m.Temperature == 0 {
		m.Temperature = DefaultModelTemperature
	}
	m.Temperature = max(m.Temperature, 0)
	if m.Timeout <= 0 {
		m.Timeout = DefaultModelTimeout
	}
	return m
}

// message is one of a prompt.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// bundle is a prompt in parts.
type bundle struct {
	system, instructions string
	docs                 []string
	history              []message
	tools                any
}

func (w *web) generate(ctx context.Context, in tools.Input) (tools.Output, error) {
	budget, _ := in.Args["budget"].(map[string]any) // the schema says so
	most, out := int64(defaultInputTokens), int64(defaultOutputTokens)
	if n, ok := tools.Integer(budget["max_input_tokens"]); ok {
		most = n
	}
	if n, ok := tools.Integer(budget["max_output_tokens"]); ok {
		out = n
	}
	b := bundleOf(in)
	b.trim(charsPerToken * min(most, 1<<20))
	messages := b.messages()
	answer, err := w.respond(ctx, in, b, messages, out)
	if status, ok := errors.AsType[*statusError](err); ok && status.status != http.StatusUnauthorized && status.status != http.StatusForbidden && status.status != http.StatusTooManyRequests {
		answer, err = w.chat(ctx, in, b, messages, out)
	}
	if err != nil {
		return tools.Output{}, failure(err)
	}
	return tools.Output{Values: answer}, nil
}

// bundleOf reads the prompt of a call.
func bundleOf(in tools.Input) *bundle {
	input := in.String("input", "")
	given, ok := in.Args["bundle"].(map[string]any)
	if !ok {
		return &bundle{history: []message{{"user", input}}}
	}
	b := &bundle{system: textIn(given["system"]), instructions: textIn(given["instructions"]), tools: given["tools_json_schema"]}
	docs, _ := given["context_docs"].([]any) // the schema says so
	for _, d := range docs {
		b.docs = append(b.docs, textIn(d))
	}
	history, _ := given["history"].([]any) // as above
	for _, h := range history {
		m := message{Role: "user", Content: textIn(h)}
		if object, ok := h.(map[string]any); ok {
			if role, ok := object["role"].(string); ok && role != "" {
				m.Role = role
			}
		}
		b.history = append(b.history, m)
	}
	if n := len(b.history); n == 0 || b.history[n-1].Role != "user" {
		b.history = append(b.history, message{"user", input})
	}
	return b
}

// textIn is the text of a part: itself, or its content or text.
func textIn(part any) string {
	switch v := part.(type) {
	case string:
		return v
	case map[string]any:
		for _, name := range []string{"content", "text"} {
			if s, ok := v[name].(string); ok {
				return s
			}
		}
	case nil:
		return ""
	}
	raw, err := json.Marshal(part)
	if err != nil {
		return ""
	}
	return string(raw)
}

// trim makes the prompt fit, in the order of loom.v1: the oldest history goes first, then
// instructions, context and system. The last message stays, cut if it must be.
func (b *bundle) trim(chars int64) {
	over := func() int64 {
		n := len(b.system) + len(b.instructions)
		for _, d := range b.docs {
			n += len(d)
		}
		for _, m := range b.history {
			n += len(m.Content)
		}
		return int64(n) - chars
	}
	for over() > 0 && len(b.history) > 1 {
		b.history = b.history[1:]
	}
	b.instructions = shorter(b.instructions, over())
	for over() > 0 && len(b.docs) > 0 {
		last := len(b.docs) - 1
		if b.docs[last] = shorter(b.docs[last], over()); b.docs[last] == "" {
			b.docs = b.docs[:last]
		}
	}
	b.system = shorter(b.system, over())
	last := &b.history[len(b.history)-1]
	last.Content = shorter(last.Content, over())
}

// shorter is a text without so many bytes of its end.
func shorter(s string, over int64) string {
	if over <= 0 {
		return s
	}
	return text.Head(s, int(max(int64(len(s))-over, 0)))
}

func (b *bundle) messages() []message {
	parts := []string{}
	for _, part := range []string{b.system, b.instructions, strings.Join(b.docs, "\n\n")} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return b.history
	}
	return append([]message{{"system", strings.Join(parts, "\n\n")}}, b.history...)
}

// respond asks <base>/responses.
func (w *web) respond(ctx context.Context, in tools.Input, b *bundle, messages []message, most int64) (map[string]any, error) {
	request := map[string]any{"model": w.Model.Name, "input": messages, "temperature": w.Model.Temperature, "max_output_tokens": most}
	if b.tools != nil {
		request["tools"] = b.tools
	}
	var answer struct {
		Model      string
		OutputText string `json:"output_text"`
		Output     []struct{ Content []struct{ Text string } }
		Usage      map[string]any
	}
	if err := w.ask(ctx, in, "responses", request, &answer); err != nil {
		return nil, err
	}
	if answer.OutputText == "" {
		for _, o := range answer.Output {
			for _, c := range o.Content {
				answer.OutputText += c.Text
			}
		}
	}
	return w.generated(answer.OutputText, answer.Model, providerResponses, answer.Usage), nil
}

// chat asks <base>/chat/completions.
func (w *web) chat(ctx context.Context, in tools.Input, b *bundle, messages []message, most int64) (map[string]any, error) {
	request := map[string]any{"model": w.Model.Name, "messages": messages, "temperature": w.Model.Temperature, "max_tokens": most}
	if b.tools != nil {
		request["tools"] = b.tools
	}
	var answer struct {
		Model   string
		Choices []struct{ Message struct{ Content string } }
		Usage   map[string]any
	}
	if err := w.ask(ctx, in, "chat/completions", request, &answer); err != nil {
		return nil, err
	}
	if len(answer.Choices) == 0 {
		return nil, tools.Errorf(tools.Failed, "the model gave no choice")
	}
	return w.generated(answer.Choices[0].Message.Content, answer.Model, providerChat, answer.Usage), nil
}

func (w *web) generated(content, model, provider string, usage map[string]any) map[string]any {
	if model == "" {
		model = w.Model.Name
	}
	values := map[string]any{"text": content, "model": model, "provider": provider, "usage": nil}
	if usage != nil {
		values["usage"] = usage
	}
	return values
}

// ask posts a request to the model's server.
func (w *web) ask(ctx context.Context, in tools.Input, path string, request map[string]any, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, w.Model.Timeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return tools.Errorf(tools.Failed, "the prompt can't be written: %v", err)
	}
	u, err := url.Parse(strings.TrimRight(w.Model.BaseURL, "/") + "/" + path)
	if err != nil {
		return tools.Errorf(tools.Failed, "the address of the model is none (--llm-url)")
	}
	r := &http.Request{
		Method: http.MethodPost, URL: u, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	if w.Model.Key != "" {
		r.Header.Set("Authorization", "Bearer "+w.Model.Key)
	}
	return w.endpoint(ctx, in, toolGenerate, r, nil, answer)
}
