package main

import (
	"strings"
	"testing"
)

// A model whose memory waits for review is told so where it saves and where it reads.
func TestHostIsToldOfReview(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0", "--hold-origins", "web")
	h := MustHost(t, p.mcpURL(t)+"?agent=anna", "2026-07-28", "", nil)
	for origin, held := range map[string]bool{"web": true, "agent": false} {
		var saved, read struct {
			ID, Review, Note string
		}
		h.works("memory_save", object{"text": "from " + origin, "origin": origin}, &saved)
		h.works("memory_get", object{"id": saved.ID}, &read)
		if strings.Contains(saved.Note, "no query finds it") != held || (saved.Review == "held") != held || read.Review != saved.Review {
			t.Errorf("of origin %s: %+v, read as %+v", origin, saved, read)
		}
	}
}
