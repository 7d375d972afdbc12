package hand_test

import (
	"strings"
	"testing"
)

// P13: what an answer can't show is read on by the offset it tells, whatever
// there is in the text.
func TestEveryByteByTheOffsetsTold(t *testing.T) {
	for name, content := range map[string]string{
		"one line":           strings.Repeat("x", 3<<20),
		"one line of quotes": strings.Repeat(`"é`, 400_000),
		"lines":              strings.Repeat(strings.Repeat("0123456789", 8)+"\n", 40_000),
		"lines of escapes":   strings.Repeat(strings.Repeat("\x01\x02", 50)+"\n", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			w := MustWorld(t, map[string]string{"file": content}, nil)
			args := map[string]any{"path": "file"}
			var all strings.Builder
			for range 1000 {
				a := w.must(request("fs:read_file", args))
				all.WriteString(field(t, a.Output, "content").(string))
				args = map[string]any{"path": "step_001"} // read back from then on
				if next := field(t, a.Output, "next_offset_bytes"); next != nil {
					args["offset_bytes"], args["limit_bytes"] = next, 1<<20
				} else if next := field(t, a.Output, "next_offset"); next != nil {
					args["offset"], args["limit"] = next, 1_000_000
				} else {
					break
				}
			}
			if got := all.String(); got != content {
				t.Errorf("read %d bytes of %d", len(got), len(content))
			}
		})
	}
}
