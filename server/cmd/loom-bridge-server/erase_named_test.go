package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What an agent made, gave and saved in memories that others share does not name it after it
// was erased; its records there stay or go, as is asked for. A certificate to which something
// was added does not hold, and a key that others can read does not sign.
//
// Y23
func TestEraseNames(t *testing.T) {
	t.Parallel()
	const gone = "agent-to-be-erased-5c1e"
	for _, shared := range []string{"authorship", "records"} {
		t.Run(shared, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store, out, key := filepath.Join(dir, "store"), filepath.Join(dir, "out.json"), filepath.Join(dir, "key.pem")
			p := MustRun(t, dir)
			sharing := loombridgev1.NewSharingServiceClient(p.conn)
			_, err := sharing.CreateSpace(t.Context(), &loombridgev1.CreateSpaceRequest{AgentId: gone, SpaceId: "team"})
			must(t, err)
			_, err = sharing.GrantAccess(t.Context(), &loombridgev1.GrantAccessRequest{AgentId: gone, Owner: &loombridgev1.GrantAccessRequest_SpaceId{SpaceId: "team"}, Grantee: "b", Access: loombridgev1.Access_ACCESS_WRITE})
			must(t, err)
			for _, r := range []*loombridgev1.MemorySaveRequest{
				{SpaceId: "team"}, {UserId: "ann"},
			} {
				for _, agent := range []string{gone, "b"} {
					r.AgentId, r.Text = agent, "The heron stands in the reeds"
					if agent == "b" {
						r.Text = "The wren is small"
					}
					_, err := p.bridge().MemorySave(t.Context(), r)
					must(t, err)
				}
			}
			must(t, p.Stop())
			_, err = loomCommand(t, "erase", "--agent", gone, "--shared", shared, "--key", key, "--out", out, "--data-dir", store)
			must(t, err)
			engine, err := rockskv.OpenReadOnly(store, nil)
			must(t, err)
			herons := 0
			must(t, engine.Each(t.Context(), func(ks kv.Keyspace, p kv.Pair) error {
				if strings.Contains(string(p.Key)+string(p.Value), gone) {
					t.Errorf("left is %s %q = %q", ks, p.Key, p.Value)
				}
				if ks == kv.Records && bytes.Contains(p.Value, []byte("heron")) {
					herons++
				}
				return nil
			}))
			must(t, engine.Close())
			if want := map[string]int{"authorship": 2, "records": 0}[shared]; herons != want {
				t.Errorf("%d of its records are left, want %d", herons, want)
			}
			verify := func(file string) error {
				_, err := loomCommand(t, "erase", "verify", file, "--data-dir", store)
				return err
			}
			must(t, verify(out))
			if said, err := loomCommand(t, "check", "--data-dir", store); err != nil {
				t.Errorf("check: %v: %s", err, said)
			}

			text := mustRead(t, out)
			for name, changed := range map[string][]byte{
				"a field more":       bytes.Replace(text, []byte("{"), []byte(`{"note": "also of b",`), 1),
				"a field twice":      bytes.Replace(text, []byte(`"left": 0`), []byte(`"left": 0, "left": 0`), 1),
				"a field in another": bytes.Replace(text, []byte(`"kind": "agent"`), []byte(`"kind": "agent", "also": "b"`), 1),
				"something behind":   append(bytes.Clone(text), `{"also": "b"}`...),
			} {
				file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
				must(t, os.WriteFile(file, changed, 0o600))
				if err := verify(file); !errors.Is(err, erasure.ErrNotTrue) {
					t.Errorf("%s: %v", name, err)
				}
			}
			must(t, os.Chmod(key, 0o644))
			if _, err := loomCommand(t, "erase", "--agent", "b", "--key", key, "--out", out+"2", "--data-dir", store); err == nil || !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("with a key that others can read: %v", err)
			}

			// A running server's certificate is checked as one of the command is.
			p = MustRun(t, dir)
			done, err := p.eraseScope(t, erasedAgent("b"), false)
			must(t, err)
			must(t, p.Stop())
			live := filepath.Join(dir, "live.json")
			must(t, os.WriteFile(live, []byte(done.GetCertificate()), 0o600))
			must(t, verify(live))
			var c erasure.Certificate
			must(t, json.Unmarshal([]byte(done.GetCertificate()), &c))
			if c.Engine != erasure.RocksDB || c.Subject.ID != "b" || c.Found == 0 {
				t.Errorf("the certificate is %+v", c)
			}
		})
	}
}
