package hand_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// TestBytesThatAreNoUTF8HideNoText has commands print texts with bytes of other encodings: the
// model reads the text, and the blob has every byte.
func TestBytesThatAreNoUTF8HideNoText(t *testing.T) {
	for name, printed := range map[string]string{
		"one byte":     "first line ok\ncaf\xe9\nlast line ok\n",
		"at the start": "\xff\xfefirst line ok\nlast line ok\n",
		"cut off":      "first line ok\nlast line ok\xe6\xb8",
		"many":         "first line ok\n" + strings.Repeat("r\xe9sum\xe9\n", 100) + "last line ok\n",
		"long":         "first line ok\n" + strings.Repeat("a line of a long log\n", 20_000) + "\xe9\nlast line ok\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := MustWorld(t, nil, nil)
			w.add(tools.Descriptor{Name: "shell:print"}, func(context.Context, tools.Input) (tools.Output, error) {
				return tools.Output{BodyKey: "stdout", Body: io.NopCloser(strings.NewReader(printed)), BodyLossy: true, Values: map[string]any{"exit_code": int64(0)}}, nil
			})
			a := w.must(request("shell:print", nil))
			shown, _ := field(t, a.Output, "stdout").(string)
			if !strings.Contains(shown, "first line ok") || !strings.Contains(a.Step.Inline+a.Observation, "first line ok") {
				t.Errorf("shown %.200q, step %.200q, %.200q", shown, a.Step.Inline, a.Observation)
			}
			if a.Blob == nil || w.content(a.Blob.Path) != printed {
				t.Errorf("the bytes are not kept: %+v", a.Blob)
			}
		})
	}
}
