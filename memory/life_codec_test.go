package memory

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// TestLifeKeys holds the keys of versions, moments and the list of what expires.
func TestLifeKeys(t *testing.T) {
	scope := kv.Scope{Tenant: "t", Kind: kv.OwnerUser, Owner: "o"}
	at := time.Unix(120, 7000)
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"version": {record.VersionKey(scope, "id", 258), "7400756f00" + "68" + "69640001" + "0000000000000102"},
		"moment":  {expiryKey(scope, at, "id"), "7400756f00" + "74" + "0000000007270e07" + "6964"},
		"entry":   {due{expiryList.Part(scope), scope, spanOf(at)}.key(), "740079" + hex.EncodeToString([]byte("expiry#45")) + "00" + "65" + "00000002" + "75" + "6f"},
		"counts":  {countsKey(scope), "7400756f00" + "63"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	if d := (due{scope: scope, span: 2}); d.over(at) || !d.over(at.Add(time.Minute)) {
		t.Error("the span of a minute is not over when the next one begins")
	}
}

func FuzzDue(f *testing.F) {
	f.Add(due{expiryList.Whole("default"), kv.AgentScope("default", "a"), 7}.key())
	f.Add([]byte("t\x00yexpiry\x00e"))
	f.Fuzz(func(t *testing.T, key []byte) {
		d, err := decodeDue(key)
		if err != nil {
			return
		}
		if !bytes.Equal(d.key(), key) {
			t.Errorf("%q is %+v, which is %q", key, d, d.key())
		}
	})
}

func FuzzPageToken(f *testing.F) {
	scope := kv.AgentScope("default", "a")
	f.Add(listing{Listing: Listing{Filter: "x"}, scope: scope}.token(9), "x")
	f.Add("?", "")
	f.Fuzz(func(t *testing.T, token, filter string) {
		l := Listing{PageToken: token, Filter: filter}
		place, err := l.position(scope)
		switch {
		case err != nil && !errors.Is(err, ErrInvalid):
			t.Fatal(err)
		case err == nil && token != "" && place == 0:
			t.Error("a token without a place")
		}
		l.PageToken = listing{Listing: l, scope: scope}.token(place | 1)
		if again, err := l.position(scope); err != nil || again != place|1 {
			t.Errorf("%d came back as %d, %v", place|1, again, err)
		}
	})
}
