package assemble_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	formats "github.com/loom-bridge/loom-bridge/context/assemble/provider"
)

// What says how to read something back names the tool as the format offers it.
func TestReadBackName(t *testing.T) {
	for _, format := range []assemble.Format{assemble.Neutral, formats.OpenAIChat, formats.OpenAIResponses, formats.Anthropic, formats.Gemini} {
		w := newWorld(t)
		w.request.Format, w.request.MaxTokens = format, 4000
		rng := rand.New(rand.NewPCG(3, 7))
		offered, _ := format.ToolName("fs:read_file")
		other := "fs_read_file"
		if format != assemble.Neutral {
			other = "fs:read_file"
		}
		folded := 0
		for i := range 60 {
			w.change(rng, i)
			p := w.prompt()
			text := string(p.Body) + string(p.OpenAIChatJSON)
			for _, m := range p.Messages {
				text += m.Content
			}
			for _, words := range []string{"Full text of step 012: ", "Full text: ", "Use "} {
				if strings.Contains(text, words+other) {
					t.Fatalf("prompt %d of %s names %s", i, format, other)
				}
			}
			if strings.Contains(text, "Full text of step 012: "+offered+" step_012; of m17: "+offered+" message_017") {
				folded++
			}
		}
		if folded < 10 {
			t.Errorf("%s: only %d prompts with folds", format, folded)
		}
	}
}
