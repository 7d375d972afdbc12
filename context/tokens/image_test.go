package tokens_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// MustImage returns an empty image of a size in base64.
func MustImage(tb testing.TB, kind string, width, height int) string {
	tb.Helper()
	picture := image.NewGray(image.Rect(0, 0, width, height))
	var out bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&out, picture)
	case "jpeg":
		err = jpeg.Encode(&out, picture, nil)
	case "gif":
		err = gif.Encode(&out, picture, nil)
	case "webp VP8":
		out.WriteString("RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a")
		out.Write([]byte{byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
	case "webp VP8L":
		sizes := uint32(width-1) | uint32(height-1)<<14
		out.WriteString("RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f")
		out.Write([]byte{byte(sizes), byte(sizes >> 8), byte(sizes >> 16), byte(sizes >> 24), 0, 0, 0, 0, 0})
	case "webp VP8X":
		out.WriteString("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00")
		out.Write([]byte{byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func openAIImage(data, detail string) string {
	return fmt.Sprintf(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s","detail":%q}}]`, data, detail)
}

func anthropicImage(data string) string {
	return fmt.Sprintf(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]`, data)
}

// Images count by the provider's rule, and as 1600 where their size is
// unknown.
// P31
func TestImages(t *testing.T) {
	c := MustCounter(t, nil)
	small, wide := MustImage(t, "png", 300, 200), MustImage(t, "png", 2000, 1000)
	for _, tt := range []struct {
		name, model, blocks string
		want                int
	}{
		{"one tile", "gpt-4o", openAIImage(small, "high"), 85 + 170},
		{"shorter side is 768", "gpt-4o", openAIImage(wide, "auto"), 85 + 3*2*170},
		{"low", "gpt-4o", openAIImage(wide, "low"), 85},
		{"mini", "gpt-4o-mini", openAIImage(small, ""), 2833 + 5667},
		{"responses", "gpt-4o", `[{"type":"input_image","detail":"low","image_url":"data:image/png;base64,` + wide + `"}]`, 85},
		{"patches", "gpt-4.1-mini", openAIImage(small, ""), 114}, // 10 × 7 × 1.62
		{"patches at most", "gpt-4.1-mini", openAIImage(wide, ""), 2489},
		{"elsewhere", "gpt-4o", `[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`, 1600},
		{"no image", "gpt-4o", openAIImage("QUFB", ""), 1600},
		{"no base64", "gpt-4o", openAIImage("????", ""), 1600},
		{"area", "claude-sonnet-5", anthropicImage(small), 80},
		{"edge", "claude-sonnet-5", anthropicImage(wide), 1640}, // 1568 × 784
		{"jpeg", "claude-sonnet-5", anthropicImage(MustImage(t, "jpeg", 300, 200)), 80},
		{"gif", "claude-sonnet-5", anthropicImage(MustImage(t, "gif", 300, 200)), 80},
		{"webp VP8", "claude-sonnet-5", anthropicImage(MustImage(t, "webp VP8", 300, 200)), 80},
		{"webp VP8L", "claude-sonnet-5", anthropicImage(MustImage(t, "webp VP8L", 300, 200)), 80},
		{"webp VP8X", "claude-sonnet-5", anthropicImage(MustImage(t, "webp VP8X", 300, 200)), 80},
		{"no rule", "of-nobody", anthropicImage(small), 1600},
		{"in a result", "claude-sonnet-5", `[{"type":"tool_result","tool_use_id":"","content":` + anthropicImage(small) + `}]`, 80},
	} {
		t.Run(tt.name, func(t *testing.T) {
			without, err := c.Message(tt.model, tokens.Message{Role: "user"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Message(tt.model, tokens.Message{Role: "user", Blocks: json.RawMessage(tt.blocks)})
			if err != nil || got.Exact || got.Tokens-without.Tokens != tt.want {
				t.Errorf("got %+v, %v, want %d more than %d", got, err, tt.want, without.Tokens)
			}
		})
	}
}

// Blocks come from outside: nothing in them may be more than a wrong count.
func FuzzBlocks(f *testing.F) {
	f.Add(openAIImage(MustImage(f, "png", 3, 2), "low"))
	f.Add(anthropicImage(MustImage(f, "webp VP8X", 3, 2)))
	f.Add(strings.Repeat(`[{"type":"tool_result","content":`, 40) + `""` + strings.Repeat(`}]`, 40))
	f.Add(`[{"type":"tool_use","id":"a","name":"b","input":{}},{"type":"thinking","thinking":"x"},{"type":"thinking"}]`)
	c := MustCounter(f, nil)
	f.Fuzz(func(t *testing.T, blocks string) {
		for _, model := range []string{"gpt-4o", "claude-sonnet-5", "gpt-4.1-mini", "of-nobody"} {
			got, err := c.Message(model, tokens.Message{Role: "user", Blocks: json.RawMessage(blocks)})
			if err != nil || got.Tokens < 4 {
				t.Errorf("%s: got %+v, %v", model, got, err)
			}
		}
	})
}
