package live

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// An intent reads back as it was written, whatever it is about; one that can't be is damage.
func TestIntent(t *testing.T) {
	t.Parallel()
	keys := make(map[string]bool)
	for _, s := range []erasure.Subject{
		{Kind: erasure.Agent, ID: "a"},
		{Kind: erasure.User, ID: "a"},
		{Kind: erasure.Agent, ID: "a", Shared: erase.Records},
		{Kind: erasure.Agent, ID: "a", Session: "s"},
		{Kind: erasure.Agent, ID: "a", Session: "s", Shared: erase.Records},
		{Kind: erasure.Agent, ID: "a", Step: 12},
		{Kind: erasure.Agent, ID: "a", Session: "s", Step: 12},
		{Kind: erasure.User, ID: "a", Filter: `kind = "fact"`},
	} {
		s.Tenant = "t"
		want := intent{
			subject: s, began: time.UnixMicro(1234567).UTC(), found: erasure.Holdings{Counts: map[string]int64{"records": 3, "steps": 1}, Entries: 9, Bytes: 99},
			memories: []kv.Scope{kv.AgentScope("t", "a"), {Tenant: "t", Kind: kv.OwnerSpace, Owner: "team"}},
			digests:  []string{"00112233445566778899aabbccddeeff"}, quoted: map[string]int64{"what agents said": 2, "others": 1},
		}
		got, err := decodeIntent("t", want.encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
		scope, err := erasure.Scope(s)
		if err != nil {
			t.Fatal(err)
		}
		key := string(keyOf(s, scope))
		if keys[key] {
			t.Errorf("%s has the key of another subject", s)
		}
		keys[key] = true
	}
	// One of an older version has none of the later fields, and the same key.
	old := intent{subject: erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a"}}
	if got, err := decodeIntent("t", old.encode()); err != nil || got.memories != nil || got.subject.Shared != erase.Authorship {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range [][]byte{nil, {0xff}, bytes.Replace(old.encode(), []byte("agent"), []byte("anybo"), 1)} {
		if _, err := decodeIntent("t", bad); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
