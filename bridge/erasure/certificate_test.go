package erasure_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
)

func signed(t *testing.T) *erasure.Certificate {
	t.Helper()
	c := &erasure.Certificate{
		Format: 1, Version: "1", Engine: erasure.RocksDB, Subject: erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a <b>"}, Time: time.Unix(1, 0).UTC(),
		Found: 3, Erased: map[string]erasure.Tally{"records": {Erased: 3}}, Quoted: map[string]int64{"what others remember": 2}, Records: []string{"00"},
	}
	c.State()
	_, key, err := ed25519.GenerateKey(nil)
	if err == nil {
		err = c.Sign(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What is not signed is not in a certificate: nothing can be added, left out, said twice or
// said otherwise.
func TestCertificate(t *testing.T) {
	t.Parallel()
	c := signed(t)
	if !strings.Contains(c.Statement, "2 entries of others") {
		t.Errorf("it states %q", c.Statement)
	}
	compact, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{c.Text(), string(compact)} {
		got, err := erasure.Parse([]byte(text))
		if err == nil {
			err = got.Verify(nil)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for name, changed := range map[string]string{
			"more":         strings.Replace(text, "{", `{"also":"b",`, 1),
			"more inside":  strings.Replace(text, `"tenant"`, `"owner":"b","tenant"`, 1),
			"twice":        strings.Replace(text, `"found"`, `"found":9,"found"`, 1),
			"other case":   strings.Replace(text, `"found"`, `"Found"`, 1),
			"another":      strings.Replace(text, `"found": 3`, `"found": 4`, 1) + strings.Replace(text, `"found":3`, `"found":4`, 1),
			"less":         strings.Replace(strings.Replace(text, `"left": 0,`, "", 1), `"left":0,`, "", 1),
			"behind it":    text + "{}",
			"nothing":      "",
			"no object":    "[]",
			"another name": strings.Replace(text, `"t"`, `"u"`, 1),
		} {
			got, err := erasure.Parse([]byte(changed))
			if err == nil {
				err = got.Verify(nil)
			}
			if !errors.Is(err, erasure.ErrNotTrue) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Whom there can't be is refused, and the field is named.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject erasure.Subject
		field   string
	}{
		{erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a"}, ""},
		{erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a", Session: "s", Shared: "records"}, ""},
		{erasure.Subject{Tenant: "t", Kind: erasure.User, ID: "a", Filter: `kind = "x"`}, ""},
		{erasure.Subject{Tenant: "t", Kind: erasure.Tenant}, ""},
		{erasure.Subject{Tenant: "t", Kind: "anybody", ID: "a"}, "subject"},
		{erasure.Subject{Tenant: "t", Kind: erasure.Agent}, "subject"},
		{erasure.Subject{Kind: erasure.Agent, ID: "a"}, "subject"},
		{erasure.Subject{Tenant: "t", Kind: erasure.User, ID: "a", Session: "s"}, "session"},
		{erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a", Session: "s", Filter: `kind = "x"`}, "session"},
		{erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a", Filter: "what ="}, "filter"},
		{erasure.Subject{Tenant: "t", Kind: erasure.User, ID: "a", Shared: "records"}, "shared"},
		{erasure.Subject{Tenant: "t", Kind: erasure.Agent, ID: "a", Shared: "all"}, "shared"},
	} {
		err := erasure.Check(c.subject)
		if (err == nil) != (c.field == "") || err != nil && (!errors.Is(err, erasure.ErrInvalid) || !strings.Contains(err.Error(), c.field)) {
			t.Errorf("%+v: %v, want an error about %q", c.subject, err, c.field)
		}
	}
}
