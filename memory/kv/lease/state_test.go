package lease

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	s := state{"me", 3, time.UnixMicro(1_000_000).UTC(), Term}
	if got, want := hex.EncodeToString(s.encode()), "0a026d6510031880897a20b0ea01"; got != want {
		t.Errorf("lease %s, want %s", got, want)
	}
	if got, want := string(Tenant("acme", "expiry").key()), "acme\x00ylease/expiry\x00L"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if got, want := Scope(kv.AgentScope("acme", "bob"), "pack").owner, "lease/pack#39"; got != want {
		t.Errorf("owner %q, want %q", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(state{"me", 3, time.UnixMicro(1), Term}.encode())
	f.Add([]byte("\x0a\xff"))
	f.Fuzz(func(t *testing.T, value []byte) {
		read := func(value []byte) state {
			s, err := Tenant("acme", "work").read(t.Context(), func(context.Context, kv.Keyspace, []byte) ([]byte, error) { return value, nil })
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := read(value)
		if again := read(s.encode()); again.holder != s.holder || again.epoch != s.epoch || !again.until.Equal(s.until) || again.term != s.term {
			t.Errorf("%+v is read back as %+v", s, again)
		}
	})
}
