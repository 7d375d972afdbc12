package compose

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// summarizer lets tools of attached agents summarize old messages.
type summarizer struct{ tools func() *tools.Catalogue }

var _ assemble.Summarizer = summarizer{}

// Summarize calls the tool with the text, the goal, how many messages it is of, and
// how many tokens the answer may have. The answer is text, a JSON string, or an object
// with the text under "summary". No tool of the server's own is called, nor one whose
// calls a person must agree to.
func (s summarizer) Summarize(ctx context.Context, r assemble.SummaryRequest) (string, error) {
	tool, ok := s.tools().Find(r.Scope.Tenant, r.Tool)
	switch {
	case !ok || !tool.Remote():
		return "", fmt.Errorf("compose: no attached agent has the tool %q", r.Tool)
	case tool.Descriptor().RequiresApproval:
		return "", fmt.Errorf("compose: calls of the tool %q need approval", r.Tool)
	}
	out, err := tool.Run(ctx, tools.Input{Scope: r.Scope, SessionID: r.SessionID, Args: map[string]any{
		"text": r.Text, "goal": r.Goal, "messages": int64(r.Messages), "max_tokens": int64(r.MaxTokens),
	}})
	if err != nil {
		return "", err
	}
	if out.Given.Form == step.FormText {
		return string(out.Given.Data), nil
	}
	for _, key := range []string{out.ValueKey, "summary"} {
		if text, ok := out.Values[key].(string); ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("compose: the answer of the tool %q is no text", r.Tool)
}
